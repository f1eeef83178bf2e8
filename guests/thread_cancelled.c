// pthread_cancel: in a blocking read, in a condition wait, and asynchronously in
// a busy loop; cleanup handlers run.
#include "verdict.h"
#include <pthread.h>

static int cleaned;
static int pipe_ends[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile int spinning;

static void clean(void *argument) { cleaned += *(int *)argument; }
static void unlock(void *argument) { pthread_mutex_unlock(argument); }

static void *read_forever(void *argument)
{
    char byte;
    pthread_cleanup_push(clean, argument);
    (void)!read(pipe_ends[0], &byte, 1);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *wait_forever(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock, &lock);
    for (;;) pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(1);
    return NULL;
}
static void *spin_forever(void *argument)
{
    (void)argument;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) spinning++;
    return NULL;
}

int main(void)
{
    int amount = 10;
    void *result;
    pthread_t thread;
    CHECK(pipe(pipe_ends) == 0);
    pthread_create(&thread, NULL, read_forever, &amount);
    usleep(10000);
    CHECK(pthread_cancel(thread) == 0);
    pthread_join(thread, &result);
    CHECK(result == PTHREAD_CANCELED && cleaned == 10);
    pthread_create(&thread, NULL, wait_forever, NULL);
    usleep(10000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(pthread_mutex_trylock(&lock) == 0);
    pthread_create(&thread, NULL, spin_forever, NULL);
    while (!spinning) usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    CHECK(result == PTHREAD_CANCELED);
    return verdict();
}
