// Read-write locks, semaphores, spin locks, recursive, error-checking and
// priority-inheriting mutexes, timed locks, once.
#include "verdict.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_mutex_t recursive, checking, inheriting, plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t slots;
static int value, spun, inherited, initialised, inside;

static void initialise(void) { initialised++; }
static void *work(void *argument)
{
    (void)argument;
    pthread_once(&once, initialise);
    for (int i = 0; i < 200; i++) {
        if (i % 4 == 0) {
            pthread_rwlock_wrlock(&rwlock);
            value++;
        } else {
            pthread_rwlock_rdlock(&rwlock);
            CHECK(value >= 0);
        }
        pthread_rwlock_unlock(&rwlock);
        pthread_spin_lock(&spin);
        spun++;
        pthread_spin_unlock(&spin);
        pthread_mutex_lock(&recursive);
        pthread_mutex_lock(&recursive);
        pthread_mutex_unlock(&recursive);
        pthread_mutex_unlock(&recursive);
        CHECK(pthread_mutex_lock(&inheriting) == 0);
        inherited++;
        CHECK(pthread_mutex_unlock(&inheriting) == 0);
        sem_wait(&slots);
        CHECK(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) <= 2);
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        sem_post(&slots);
    }
    return NULL;
}
static void *try_locks(void *argument)
{
    (void)argument;
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    CHECK(pthread_mutex_timedlock(&plain, &deadline) == ETIMEDOUT);
    CHECK(pthread_mutex_trylock(&plain) == EBUSY);
    CHECK(pthread_mutex_unlock(&checking) == EPERM);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &attributes);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    CHECK(pthread_mutex_init(&inheriting, &attributes) == 0);
    pthread_spin_init(&spin, 0);
    sem_init(&slots, 0, 2);
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    printf("%d %d %d %d\n", value, spun, inherited, initialised);
    CHECK(pthread_mutex_lock(&checking) == 0 && pthread_mutex_lock(&checking) == EDEADLK);
    pthread_mutex_lock(&plain);
    pthread_create(&threads[0], NULL, try_locks, NULL);
    pthread_join(threads[0], NULL);
    return verdict();
}
