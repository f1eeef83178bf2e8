// __thread variables, initialised and zero, and pthread keys with destructors.
#include "verdict.h"
#include <pthread.h>
#include <sched.h>

static __thread int initialised = 42;
static __thread char zeroed[3000];
static pthread_key_t key;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int destroyed;

static void destroy(void *value)
{
    pthread_mutex_lock(&lock);
    destroyed += *(int *)value;
    pthread_mutex_unlock(&lock);
    free(value);
}

static void *work(void *argument)
{
    CHECK(initialised == 42);
    for (int i = 0; i < 3000; i++) CHECK(zeroed[i] == 0);
    int *own = malloc(sizeof *own);
    *own = (int)(long)argument;
    pthread_setspecific(key, own);
    initialised += *own;
    memset(zeroed, *own, sizeof zeroed);
    for (int i = 0; i < 50; i++) {
        sched_yield();
        CHECK(initialised == 42 + *own && zeroed[2999] == *own);
        CHECK(pthread_getspecific(key) == own);
    }
    errno = *own; // errno is thread-local too
    sched_yield();
    CHECK(errno == *own);
    return NULL;
}


int main(void)
{
    pthread_t threads[8];
    pthread_key_create(&key, destroy);
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    CHECK(initialised == 42);
    printf("destroyed %d\n", destroyed);
    return verdict();
}
