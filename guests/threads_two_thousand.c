// Two thousand threads at once: each waits until all are there.
#include "verdict.h"
#include <pthread.h>

enum { COUNT = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
static int here;
static long sum;

static void *work(void *argument)
{
    pthread_mutex_lock(&lock);
    sum += (long)argument;
    if (++here == COUNT) pthread_cond_broadcast(&all_here);
    while (here < COUNT) pthread_cond_wait(&all_here, &lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    static pthread_t threads[COUNT];
    pthread_attr_t small;
    pthread_attr_init(&small);
    CHECK(pthread_attr_setstacksize(&small, 64 << 10) == 0);
    for (long i = 0; i < COUNT; i++)
        CHECK(pthread_create(&threads[i], &small, work, (void *)i) == 0);
    long joined = 0;
    for (int i = 0; i < COUNT; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0);
        joined += (long)result;
    }
    printf("%ld %ld\n", sum, joined);
    return verdict();
}
