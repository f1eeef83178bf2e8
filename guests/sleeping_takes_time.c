// nanosleep, clock_nanosleep (relative and absolute) and usleep last at least as long as asked.
#include "verdict.h"
#include <time.h>

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(void)
{
    struct timespec short_time = {0, 15000000};
    int64_t start = now();
    CHECK(nanosleep(&short_time, NULL) == 0 && now() - start >= 15000000);
    start = now();
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL) == 0 && now() - start >= 15000000);
    start = now();
    int64_t until = start + 15000000;
    struct timespec deadline = {until / 1000000000, until % 1000000000};
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == 0 && now() >= until);
    start = now();
    usleep(15000);
    CHECK(now() - start >= 15000000);
    struct timespec wrong = {0, 1000000000};
    CHECK(nanosleep(&wrong, NULL) == -1 && errno == EINVAL);
    return verdict();
}
