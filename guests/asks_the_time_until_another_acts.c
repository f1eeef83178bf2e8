// A thread that asks for the time over and over, until another one has done its part, must
// not keep that one from doing it. Runtimes (that of Go among them) wait like that.
#include "verdict.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int ready, answered;

static void *other(void *unused)
{
    ready = 1;
    for (int round = 0; round < 20; round++) {
        while (ready != round + 1) sched_yield();
        answered = round + 1;
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other, NULL) == 0);
    struct timespec now, last = {0, 0};
    int in_order = 1;
    while (!ready) clock_gettime(CLOCK_MONOTONIC, &now);
    for (int round = 0; round < 20; round++) {
        ready = round + 1;
        while (answered != round + 1) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            in_order &= now.tv_sec > last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec >= last.tv_nsec);
            last = now;
        }
    }
    CHECK(in_order);
    CHECK(pthread_join(thread, NULL) == 0);
    return verdict();
}
