// Threads end in a chosen order, some detached, some by pthread_exit deep down;
// joins see each result, and a joined id can be used again.
#include "verdict.h"
#include <pthread.h>
#include <semaphore.h>

static sem_t go[8], detached_done;
static char order[9];
static int ended;

static void leave(long n) { pthread_exit((void *)(n * n)); }
static void *work(void *argument)
{
    long n = (long)argument;
    sem_wait(&go[n]);
    order[ended++] = (char)('0' + n);
    if (n > 0) sem_post(&go[n - 1]);
    leave(n);
    return NULL;
}
static void *detached(void *argument)
{
    (void)argument;
    pthread_detach(pthread_self());
    sem_post(&detached_done);
    return NULL;
}

int main(void)
{
    pthread_t threads[8], other;
    sem_init(&detached_done, 0, 0);
    for (long i = 0; i < 8; i++) {
        sem_init(&go[i], 0, 0);
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    sem_post(&go[7]);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("%d returned %ld\n", i, (long)result);
    }
    printf("ended in order %s\n", order);
    for (int i = 0; i < 100; i++) {
        CHECK(pthread_create(&other, NULL, detached, NULL) == 0);
        sem_wait(&detached_done);
    }
    return verdict();
}
