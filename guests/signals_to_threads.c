// pthread_kill reaches exactly the thread named, sleeping or busy; a process
// signal goes to a thread that does not block it; sigqueue to a thread.
#include "verdict.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static __thread volatile int mine;
static atomic_int ready, handled;
static void handle(int number) { (void)number; mine++; atomic_fetch_add(&handled, 1); }

static void *busy(void *argument)
{
    atomic_fetch_add(&ready, 1);
    while (mine < 3) {}
    return argument;
}
static void *asleep(void *argument)
{
    atomic_fetch_add(&ready, 1);
    while (mine < 1) usleep(2000);
    return argument;
}
static void *takes_process_signal(void *argument)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    atomic_fetch_add(&ready, 1);
    while (mine < 1) usleep(2000);
    return argument;
}

int main(void)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i < 2 ? busy : asleep, (void *)i);
    while (ready < 4) usleep(1000);
    for (int i = 0; i < 4; i++)
        for (int n = 0; n < (i < 2 ? 3 : 1); n++) {
            int before = handled;
            CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
            // A second one before the first is handled would be merged with it.
            while (handled == before) usleep(1000);
        }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    CHECK(mine == 0);
    puts("each its own");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&threads[0], NULL, takes_process_signal, NULL);
    while (ready < 5) usleep(1000);
    kill(getpid(), SIGUSR2);
    pthread_join(threads[0], NULL);
    CHECK(mine == 0);
    puts("the one that does not block it");
    return verdict();
}
