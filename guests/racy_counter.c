// Four threads add to one counter without a lock; the final value differs from run to run.
#include "verdict.h"
#include <pthread.h>

static volatile long counter;
static pthread_barrier_t start;

static void *add(void *argument)
{
    pthread_barrier_wait(&start);
    for (int i = 0; i < 300000; i++) {
        long value = counter;
        for (volatile int delay = 0; delay < 2; delay++) {}
        counter = value + 1;
    }
    return argument;
}

int main(void)
{
    pthread_t threads[4];
    pthread_barrier_init(&start, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("counter %ld\n", counter);
    return 0;
}
