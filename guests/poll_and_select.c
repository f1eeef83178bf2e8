// poll, ppoll, select, pselect: readiness, timeouts, masks swapped while waiting.
#include "verdict.h"
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <time.h>

static volatile int handled;
static void handle(int number) { (void)number; handled++; }

int main(void)
{
    int one[2], two[2];
    char byte;
    CHECK(pipe(one) == 0 && pipe(two) == 0);
    struct pollfd wait[3] = {{one[0], POLLIN, 0}, {two[1], POLLOUT, 0}, {-1, POLLIN, 7}};
    CHECK(poll(wait, 3, 0) == 1 && wait[0].revents == 0 && wait[1].revents == POLLOUT && wait[2].revents == 0);
    CHECK(write(one[1], "x", 1) == 1);
    CHECK(poll(wait, 3, -1) == 2 && wait[0].revents == POLLIN);
    wait[2].fd = 900;
    CHECK(poll(wait, 3, -1) == 3 && wait[2].revents == POLLNVAL);
    fd_set readable;
    FD_ZERO(&readable); FD_SET(one[0], &readable); FD_SET(two[0], &readable);
    struct timeval soon = {0, 10000};
    CHECK(select(two[1] + 1, &readable, NULL, NULL, &soon) == 1 && FD_ISSET(one[0], &readable) && !FD_ISSET(two[0], &readable));
    CHECK(read(one[0], &byte, 1) == 1);
    FD_ZERO(&readable); FD_SET(one[0], &readable);
    soon.tv_usec = 10000, soon.tv_sec = 0;
    CHECK(select(one[0] + 1, &readable, NULL, NULL, &soon) == 0);
    signal(SIGUSR1, handle);
    sigset_t block, none;
    sigemptyset(&none), sigemptyset(&block), sigaddset(&block, SIGUSR1);
    sigprocmask(SIG_BLOCK, &block, NULL);
    raise(SIGUSR1);
    struct timespec long_time = {10, 0};
    FD_ZERO(&readable); FD_SET(one[0], &readable);
    CHECK(pselect(one[0] + 1, &readable, NULL, NULL, &long_time, &none) == -1 && errno == EINTR && handled == 1);
    raise(SIGUSR1);
    CHECK(ppoll(wait, 1, &long_time, &none) == -1 && errno == EINTR && handled == 2);
    close(one[1]);
    CHECK(poll(wait, 1, -1) == 1 && wait[0].revents == POLLHUP);
    return verdict();
}
