// Producers and consumers whose interleaving depends on timing, printed as it happens.
#include "verdict.h"
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int queue[8], used, produced_by[3], finished;

static void *produce(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < 40; i++) {
        struct timespec pause = {0, (me * 37 + i * 11) % 50 * 1000};
        if (i % 4 == 0) nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
        while (used == 8) pthread_cond_wait(&changed, &lock);
        queue[used++] = me * 100 + i;
        produced_by[me]++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    finished++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}
static void *consume(void *argument)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (used == 0 && finished < 3) pthread_cond_wait(&changed, &lock);
        if (used == 0) break;
        printf("consumer %d took %d, %d left\n", (int)(long)argument, queue[used - 1], used - 1);
        used--;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[5];
    for (long i = 0; i < 5; i++) pthread_create(&threads[i], NULL, i < 3 ? produce : consume, (void *)i);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    return 0;
}
