// SCM_RIGHTS: descriptors travel through a socket and refer to the same file.
#include "verdict.h"
#include <fcntl.h>
#include <sys/socket.h>

int main(void)
{
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    int file = open("passed", O_RDWR | O_CREAT | O_TRUNC, 0600), ends[2];
    CHECK(file >= 0 && pipe(ends) == 0);
    CHECK(write(file, "content", 7) == 7);
    union { char bytes[CMSG_SPACE(2 * sizeof(int))]; struct cmsghdr align; } control = {0};
    char payload = 'p';
    struct iovec part = {&payload, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int))};
    memcpy(CMSG_DATA(header), (int[]){file, ends[1]}, 2 * sizeof(int));
    CHECK(sendmsg(pair[0], &message, 0) == 1);
    close(file), close(ends[1]);
    memset(&control, 0, sizeof control), payload = 0;
    message.msg_controllen = sizeof control;
    CHECK(recvmsg(pair[1], &message, MSG_CMSG_CLOEXEC) == 1 && payload == 'p');
    header = CMSG_FIRSTHDR(&message);
    CHECK(header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(2 * sizeof(int)));
    int received[2];
    memcpy(received, CMSG_DATA(header), sizeof received);
    printf("received %d %d\n", received[0], received[1]);
    CHECK(fcntl(received[0], F_GETFD) == FD_CLOEXEC);
    CHECK(lseek(received[0], 0, SEEK_CUR) == 7);
    char buffer[10] = {0};
    CHECK(pread(received[0], buffer, 9, 0) == 7 && !strcmp(buffer, "content"));
    CHECK(write(received[1], "via", 3) == 3 && read(ends[0], buffer, 3) == 3);
    return verdict();
}
