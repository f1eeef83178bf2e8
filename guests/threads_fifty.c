// Fifty threads at once, each with its own stack data, joined in order.
#include "verdict.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void *work(void *argument)
{
    long n = (long)argument, local[100], sum = 0;
    for (int i = 0; i < 100; i++) local[i] = n * i;
    for (int i = 0; i < 100; i++) sum += local[i];
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&lock);
        total++;
        pthread_mutex_unlock(&lock);
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[50];
    for (long i = 0; i < 50; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    long sums = 0;
    for (int i = 0; i < 50; i++) {
        void *sum;
        CHECK(pthread_join(threads[i], &sum) == 0);
        sums += (long)sum;
    }
    printf("%ld %ld\n", sums, total);
    return verdict();
}
