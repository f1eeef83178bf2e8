// A thread ends while it holds a robust mutex; the next owner is told, and
// makes it consistent. Two mutexes, so the list has more than one entry.
#include "verdict.h"
#include <pthread.h>

static pthread_mutex_t first, second;

static void *hold_and_die(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    return NULL;
}

static void *wait_for_it(void *argument)
{
    int result = pthread_mutex_lock(&first);
    *(int *)argument = result;
    if (result == EOWNERDEAD) pthread_mutex_consistent(&first);
    pthread_mutex_unlock(&first);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&first, &attributes);
    pthread_mutex_init(&second, &attributes);
    pthread_t dying, waiting;
    pthread_create(&dying, NULL, hold_and_die, NULL);
    pthread_join(dying, NULL);
    int seen = -1;
    pthread_create(&waiting, NULL, wait_for_it, &seen);
    pthread_join(waiting, NULL);
    CHECK(seen == EOWNERDEAD);
    CHECK(pthread_mutex_lock(&first) == 0);
    CHECK(pthread_mutex_lock(&second) == EOWNERDEAD);
    CHECK(pthread_mutex_unlock(&second) == 0);
    CHECK(pthread_mutex_lock(&second) == ENOTRECOVERABLE);
    return verdict();
}
