// The futex call itself: wait on a changed value, wake, timeouts relative and
// absolute, bitsets, requeue.
#include "verdict.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

static atomic_int word, other, woken, waiting;

static long futex(atomic_int *address, int op, int value, const void *timeout, atomic_int *second, int third)
{
    return syscall(SYS_futex, address, op, value, timeout, second, third);
}
static void *wait_here(void *argument)
{
    int bits = (int)(long)argument;
    atomic_fetch_add(&waiting, 1);
    while (futex(&word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, bits) != 0 && errno == EINTR) {}
    atomic_fetch_add(&woken, 1);
    return NULL;
}
// Wakes until as many as wanted have been: a waiter may not have gone to sleep yet.
static void wake_exactly(atomic_int *address, int count, int bits)
{
    for (int done = 0; done < count;) {
        long n = futex(address, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, count - done, NULL, NULL, bits);
        CHECK(n >= 0);
        done += (int)n;
        if (n == 0) usleep(1000);
    }
}

int main(void)
{
    struct timespec soon = {0, 10000000};
    CHECK(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0) == -1 && errno == EAGAIN);
    CHECK(futex(&word, FUTEX_WAIT, 0, &soon, NULL, 0) == -1 && errno == ETIMEDOUT);
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    CHECK(futex(&word, FUTEX_WAIT_BITSET, 0, &deadline, NULL, -1) == -1 && errno == ETIMEDOUT);
    CHECK(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
    CHECK(futex((atomic_int *)((char *)&word + 1), FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EINVAL);
    pthread_t threads[6];
    for (long i = 0; i < 6; i++) pthread_create(&threads[i], NULL, wait_here, (void *)(i < 3 ? 1L : 2L));
    wake_exactly(&word, 3, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    CHECK(woken == 3);
    int moved = 0;
    while (moved < 3) {
        long n = futex(&word, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0, (void *)3L, &other, 0);
        CHECK(n >= 0);
        moved += (int)n;
        if (n == 0) usleep(1000);
    }
    CHECK(futex(&word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 9, NULL, NULL, 0) == 0);
    wake_exactly(&other, 3, -1);
    for (int i = 3; i < 6; i++) pthread_join(threads[i], NULL);
    CHECK(woken == 6);
    return verdict();
}
