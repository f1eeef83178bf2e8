// Two threads take turns by condition variable; a timed wait times out.
#include "verdict.h"
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static char played[201];

static void *play(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        while (turn % 2 != me) pthread_cond_wait(&changed, &lock);
        played[turn++] = me ? 'o' : 'i';
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, play, (void *)0);
    pthread_create(&two, NULL, play, (void *)1);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    puts(played);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += 20000000;
    if (deadline.tv_nsec >= 1000000000) deadline.tv_sec++, deadline.tv_nsec -= 1000000000;
    pthread_mutex_lock(&lock);
    CHECK(pthread_cond_timedwait(&changed, &lock, &deadline) == ETIMEDOUT);
    pthread_mutex_unlock(&lock);
    return verdict();
}
