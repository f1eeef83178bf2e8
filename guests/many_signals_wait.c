// Hundreds of queued signals with values arrive in order, by every way to take them;
// lower numbers first; a set that is pending; none is lost.
#include "verdict.h"
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

enum { MANY = 600 };
static int seen[MANY], numbers[MANY], codes[MANY], count;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (count < MANY) {
        numbers[count] = number;
        codes[count] = info->si_code;
        seen[count] = info->si_value.sival_int;
    }
    count++;
}

static sigset_t set_of(int a, int b)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, a);
    sigaddset(&set, b);
    return set;
}

static void send_all(int number, int from, int to)
{
    for (int i = from; i < to; i++) {
        union sigval value = {.sival_int = i * 7};
        CHECK(sigqueue(getpid(), number, value) == 0);
    }
}

static void *sends(void *unused)
{
    (void)unused;
    send_all(SIGRTMIN + 2, 0, 300);
    return NULL;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN + 1, &action, NULL);
    sigaction(SIGRTMIN + 2, &action, NULL);
    sigset_t both = set_of(SIGRTMIN + 1, SIGRTMIN + 2), pending, old;
    sigprocmask(SIG_BLOCK, &both, &old);
    send_all(SIGRTMIN + 2, 0, 300);
    send_all(SIGRTMIN + 1, 300, MANY);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGRTMIN + 2) && sigismember(&pending, SIGRTMIN + 1));
    CHECK(count == 0);
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("delivered %d\n", count);
    CHECK(count == MANY);
    int right = 0;
    // Handlers nest: the lower number comes first, each kind in order of sending or,
    // where a later one interrupted the handler's first instruction, reversed.
    for (int i = 0; i < MANY; i++) right += codes[i] == SI_QUEUE;
    long sum = 0;
    for (int i = 0; i < MANY; i++) sum += seen[i];
    printf("codes %d, sum %ld\n", right, sum);
    // With all blocked in the handler, the order is exact.
    count = 0;
    sigfillset(&action.sa_mask);
    sigaction(SIGRTMIN + 1, &action, NULL);
    sigaction(SIGRTMIN + 2, &action, NULL);
    sigprocmask(SIG_BLOCK, &both, NULL);
    send_all(SIGRTMIN + 2, 0, 300);
    send_all(SIGRTMIN + 1, 300, MANY);
    sigprocmask(SIG_SETMASK, &old, NULL);
    CHECK(count == MANY);
    for (int i = 0; i < MANY; i++) {
        int wanted = i < 300 ? i + 300 : i - 300;
        CHECK(seen[i] == wanted * 7 && numbers[i] == SIGRTMIN + (i < 300 ? 1 : 2));
    }
    puts("in order");
    // Taken one by one instead of delivered.
    sigprocmask(SIG_BLOCK, &both, NULL);
    send_all(SIGRTMIN + 1, 0, 200);
    int descriptor = signalfd(-1, &both, SFD_NONBLOCK);
    for (int i = 0; i < 100; i++) {
        siginfo_t info;
        CHECK(sigwaitinfo(&both, &info) == SIGRTMIN + 1 && info.si_value.sival_int == i * 7);
    }
    for (int i = 100; i < 200; i++) {
        struct signalfd_siginfo info;
        CHECK(read(descriptor, &info, sizeof info) == sizeof info && info.ssi_int == i * 7);
    }
    struct timespec none = {0, 0};
    CHECK(sigtimedwait(&both, NULL, &none) == -1 && errno == EAGAIN);
    struct signalfd_siginfo info;
    CHECK(read(descriptor, &info, sizeof info) == -1 && errno == EAGAIN);
    // From another thread while this one waits in a call or computes.
    // The sender keeps them blocked, so that one thread alone counts.
    count = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, sends, NULL);
    sigprocmask(SIG_UNBLOCK, &both, NULL);
    while (__atomic_load_n(&count, __ATOMIC_RELAXED) < 300) usleep(100);
    pthread_join(thread, NULL);
    CHECK(count == 300);
    puts("from a thread");
    return verdict();
}
