// A process that ends while other threads are blocked, busy or ending; the first
// thread that leaves before the others; signals to threads that end.
#include "verdict.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

static int ends[2];
static volatile int busy, handled;
static void handle(int number) { (void)number; __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST); }

static void *blocked_in_read(void *unused)
{
    char byte;
    (void)!read(ends[0], &byte, 1);
    return unused;
}

static void *blocked_in_lock(void *lock)
{
    pthread_mutex_lock(lock);
    return NULL;
}

static void *spins(void *unused)
{
    while (busy >= 0) busy = 1;
    return unused;
}

static void *short_lived(void *unused) { return unused; }

static void start_all(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    CHECK(pipe(ends) == 0);
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, blocked_in_read, NULL);
    pthread_create(&thread, NULL, blocked_in_lock, &lock);
    pthread_create(&thread, NULL, spins, NULL);
    while (!busy) sched_yield();
}

static void *exits_group(void *unused)
{
    (void)unused;
    puts("exit_group from a thread");
    fflush(stdout);
    syscall(SYS_exit_group, 7);
    return NULL;
}

static void *goes_on(void *first)
{
    pthread_join(*(pthread_t *)first, NULL);
    puts("the first thread is gone, this one goes on");
    fflush(stdout);
    usleep(1000);
    FILE *file = fopen("left", "w");
    fputs("written later", file);
    fclose(file);
    return NULL;
}

static void *faults(void *unused)
{
    (void)unused;
    puts("a thread faults");
    fflush(stdout);
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
    return NULL;
}

// Signals sent to threads that are just ending reach them or ESRCH; never others.
static void signals_to_ending_threads(void)
{
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, short_lived, NULL);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        int result = pthread_kill(thread, SIGUSR1);
        CHECK(result == 0 || result == ESRCH);
        pthread_join(thread, NULL);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    CHECK(handled <= 50);
    puts("signals to ending threads");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "signals";
    static pthread_t first, thread;
    first = pthread_self();
    if (!strcmp(how, "signals")) {
        signals_to_ending_threads();
        return verdict();
    }
    if (!strcmp(how, "first_leaves")) {
        pthread_create(&thread, NULL, goes_on, &first);
        pthread_exit(NULL);
    }
    start_all();
    if (!strcmp(how, "group")) pthread_create(&thread, NULL, exits_group, NULL);
    if (!strcmp(how, "fault")) pthread_create(&thread, NULL, faults, NULL);
    if (!strcmp(how, "kill")) kill(getpid(), SIGTERM);
    if (!strcmp(how, "return")) return 5;
    for (;;) pause();
}
