// Socket pairs: stream, datagram, seqpacket; shutdown, MSG_PEEK, truncation.
#include "verdict.h"
#include <sys/socket.h>

int main(void)
{
    int pair[2];
    char buffer[100] = {0};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(write(pair[0], "stream", 6) == 6);
    CHECK(recv(pair[1], buffer, 3, MSG_PEEK) == 3 && !memcmp(buffer, "str", 3));
    CHECK(read(pair[1], buffer, 100) == 6);
    shutdown(pair[0], SHUT_WR);
    CHECK(read(pair[1], buffer, 100) == 0);
    CHECK(write(pair[1], "back", 4) == 4 && read(pair[0], buffer, 100) == 4);
    close(pair[0]);
    CHECK(send(pair[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) == 0);
    send(pair[0], "one", 3, 0), send(pair[0], "second", 6, 0);
    CHECK(recv(pair[1], buffer, 100, 0) == 3);
    CHECK(recv(pair[1], buffer, 2, MSG_TRUNC) == 6 && !memcmp(buffer, "se", 2));
    CHECK(recv(pair[1], buffer, 2, 0) == -1 && errno == EAGAIN);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    struct mmsghdr messages[2] = {0};
    struct iovec parts[2] = {{"abc", 3}, {"defg", 4}};
    for (int i = 0; i < 2; i++) messages[i].msg_hdr.msg_iov = &parts[i], messages[i].msg_hdr.msg_iovlen = 1;
    CHECK(sendmmsg(pair[0], messages, 2, 0) == 2);
    char received[2][10] = {{0}};
    struct iovec into[2] = {{received[0], 10}, {received[1], 10}};
    for (int i = 0; i < 2; i++) messages[i].msg_hdr.msg_iov = &into[i];
    CHECK(recvmmsg(pair[1], messages, 2, 0, NULL) == 2 && messages[0].msg_len == 3 && messages[1].msg_len == 4);
    printf("%s %s\n", received[0], received[1]);
    return verdict();
}
