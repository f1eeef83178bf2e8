// epoll: level triggered, edge triggered, one shot, modified, woken by a thread.
#include "verdict.h"
#include <pthread.h>
#include <sys/epoll.h>

static int ends[2];
static void *write_later(void *argument)
{
    usleep(20000);
    CHECK(write(ends[1], "z", 1) == 1);
    return argument;
}

int main(void)
{
    int poller = epoll_create1(EPOLL_CLOEXEC);
    CHECK(poller >= 0 && pipe(ends) == 0);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x1122334455667788UL}, got[4];
    CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &event) == 0);
    CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &event) == -1 && errno == EEXIST);
    CHECK(epoll_wait(poller, got, 4, 0) == 0);
    CHECK(write(ends[1], "ab", 2) == 2);
    for (int i = 0; i < 3; i++)
        CHECK(epoll_wait(poller, got, 4, 0) == 1 && got[0].events == EPOLLIN && got[0].data.u64 == 0x1122334455667788UL);
    event.events = EPOLLIN | EPOLLET;
    CHECK(epoll_ctl(poller, EPOLL_CTL_MOD, ends[0], &event) == 0);
    CHECK(epoll_wait(poller, got, 4, 0) == 1);
    CHECK(epoll_wait(poller, got, 4, 0) == 0);
    CHECK(write(ends[1], "c", 1) == 1);
    CHECK(epoll_wait(poller, got, 4, 0) == 1);
    CHECK(epoll_wait(poller, got, 4, 0) == 0);
    event.events = EPOLLIN | EPOLLONESHOT;
    CHECK(epoll_ctl(poller, EPOLL_CTL_MOD, ends[0], &event) == 0);
    CHECK(epoll_wait(poller, got, 4, 0) == 1);
    CHECK(write(ends[1], "d", 1) == 1);
    CHECK(epoll_wait(poller, got, 4, 10) == 0);
    char buffer[10];
    CHECK(read(ends[0], buffer, 10) == 4);
    event.events = EPOLLIN;
    CHECK(epoll_ctl(poller, EPOLL_CTL_MOD, ends[0], &event) == 0);
    pthread_t thread;
    pthread_create(&thread, NULL, write_later, NULL);
    CHECK(epoll_pwait(poller, got, 4, -1, NULL) == 1);
    pthread_join(thread, NULL);
    close(ends[1]);
    CHECK(read(ends[0], buffer, 10) == 1);
    CHECK(epoll_wait(poller, got, 4, -1) == 1 && (got[0].events & EPOLLHUP));
    CHECK(epoll_ctl(poller, EPOLL_CTL_DEL, ends[0], NULL) == 0);
    CHECK(epoll_wait(poller, got, 4, 0) == 0);
    return verdict();
}
