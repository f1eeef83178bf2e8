// Every clock there is, by vDSO names and by system call: monotonic, consistent.
#include "verdict.h"
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

static int64_t nanoseconds(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }
static int64_t now(clockid_t clock)
{
    struct timespec t;
    CHECK(clock_gettime(clock, &t) == 0);
    return nanoseconds(t);
}

int main(void)
{
    clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE,
                          CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    for (unsigned c = 0; c < sizeof clocks / sizeof *clocks; c++) {
        int64_t last = 0;
        for (int i = 0; i < 1000; i++) {
            int64_t t = now(clocks[c]);
            CHECK(t >= last);
            last = t;
        }
        struct timespec resolution;
        CHECK(clock_getres(clocks[c], &resolution) == 0 && nanoseconds(resolution) > 0);
    }
    int64_t before = now(CLOCK_REALTIME);
    struct timeval day;
    struct timespec direct;
    CHECK(gettimeofday(&day, NULL) == 0);
    CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, &direct) == 0);
    int64_t after = now(CLOCK_REALTIME);
    CHECK(day.tv_sec * 1000000000LL + day.tv_usec * 1000LL >= before - 1000);
    CHECK(nanoseconds(direct) >= before && nanoseconds(direct) <= after);
    time_t seconds = time(NULL);
    CHECK(seconds >= before / 1000000000 - 1 && seconds <= after / 1000000000 + 1 && seconds > 1600000000);
    CHECK(clock() != (clock_t)-1);
    struct rusage usage;
    struct tms spent;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0 && times(&spent) != (clock_t)-1);
    CHECK(clock_gettime(99, &direct) == -1 && errno == EINVAL);
    unsigned cpu, node;
    CHECK(syscall(SYS_getcpu, &cpu, &node, NULL) == 0);
    return verdict();
}
