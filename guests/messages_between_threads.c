// recvmsg and recvmmsg that wait while other threads run: payload, address and
// control data arrive where they belong.
#include "verdict.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int ends[2];
static void *send_later(void *argument)
{
    (void)argument;
    usleep(20000);
    for (int i = 0; i < 4; i++) {
        char text[16];
        snprintf(text, sizeof text, "message %d", i);
        CHECK(send(ends[1], text, strlen(text) + 1, 0) == (ssize_t)strlen(text) + 1);
        usleep(5000);
    }
    return NULL;
}

int main(void)
{
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    pthread_t thread;
    pthread_create(&thread, NULL, send_later, NULL);
    char one[4] = {0}, two[16] = {0}, control[64];
    struct sockaddr_un from;
    struct iovec parts[2] = {{one, 3}, {two, sizeof two}};
    struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = parts,
                             .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control};
    CHECK(recvmsg(ends[0], &message, 0) == 10);
    printf("%s|%s\n", one, two);
    CHECK(message.msg_iov == parts && message.msg_controllen == 0);
    char rest[3][16] = {{0}};
    struct iovec each[3] = {{rest[0], 16}, {rest[1], 16}, {rest[2], 16}};
    struct mmsghdr several[3] = {{{.msg_iov = &each[0], .msg_iovlen = 1}, 0},
                                 {{.msg_iov = &each[1], .msg_iovlen = 1}, 0},
                                 {{.msg_iov = &each[2], .msg_iovlen = 1}, 0}};
    CHECK(recvmmsg(ends[0], several, 3, 0, NULL) == 3);
    for (int i = 0; i < 3; i++) printf("%s (%u)\n", rest[i], several[i].msg_len);
    pthread_join(thread, NULL);
    return verdict();
}
