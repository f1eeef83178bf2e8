// A thread spins without any call until another sets a flag: only a preemptive
// scheduler lets the other run.
#include "verdict.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int flag;

static void *set(void *argument)
{
    (void)argument;
    for (int i = 1; i <= 5; i++) {
        while (atomic_load(&flag) != 2 * i - 1) {}
        atomic_store(&flag, 2 * i);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, set, NULL);
    for (int i = 1; i <= 5; i++) {
        atomic_store(&flag, 2 * i - 1);
        while (atomic_load(&flag) != 2 * i) {}
    }
    pthread_join(thread, NULL);
    printf("flag %d\n", flag);
    return verdict();
}
