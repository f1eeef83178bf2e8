// eventfd counters and semaphores, timerfd expirations, memfd with seals and maps.
#include "verdict.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>

int main(void)
{
    uint64_t value;
    int event = eventfd(3, EFD_NONBLOCK);
    CHECK(write(event, &(uint64_t){4}, 8) == 8);
    CHECK(read(event, &value, 8) == 8 && value == 7);
    CHECK(read(event, &value, 8) == -1 && errno == EAGAIN);
    int semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    CHECK(read(semaphore, &value, 8) == 8 && value == 1 && read(semaphore, &value, 8) == 8);
    CHECK(read(semaphore, &value, 8) == -1);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec period = {{0, 5000000}, {0, 5000000}}, left;
    CHECK(timerfd_settime(timer, 0, &period, NULL) == 0);
    uint64_t expirations = 0;
    while (expirations < 4) {
        CHECK(read(timer, &value, 8) == 8 && value >= 1);
        expirations += value;
    }
    CHECK(timerfd_gettime(timer, &left) == 0 && left.it_interval.tv_nsec == 5000000);
    struct pollfd wait = {timer, POLLIN, 0};
    CHECK(poll(&wait, 1, 1000) == 1);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int absolute = timerfd_create(CLOCK_REALTIME, 0);
    struct itimerspec at = {{0, 0}, {now.tv_sec, now.tv_nsec}};
    CHECK(timerfd_settime(absolute, TFD_TIMER_ABSTIME, &at, NULL) == 0);
    CHECK(read(absolute, &value, 8) == 8 && value == 1);
    int memory = memfd_create("named", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(memory >= 0 && ftruncate(memory, 8192) == 0);
    char *one = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    char *two = mmap(NULL, 8192, PROT_READ, MAP_SHARED, memory, 0);
    strcpy(one + 4096, "double mapped");
    CHECK(!strcmp(two + 4096, "double mapped"));
    char buffer[32] = {0};
    CHECK(pread(memory, buffer, 13, 4096) == 13 && !strcmp(buffer, "double mapped"));
    CHECK(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0 && ftruncate(memory, 4096) == -1 && errno == EPERM);
    return verdict();
}
