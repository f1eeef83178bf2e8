// Real-time signals queue with their values, in order, lower numbers first.
#include "verdict.h"
#include <signal.h>

static volatile int got[64], numbers[64], count;
static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    numbers[count] = number - SIGRTMIN;
    got[count++] = info->si_value.sival_int;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigset_t set;
    sigemptyset(&set);
    for (int n = SIGRTMIN; n < SIGRTMIN + 3; n++) sigaddset(&set, n);
    action.sa_mask = set;
    for (int n = SIGRTMIN; n < SIGRTMIN + 3; n++) sigaction(n, &action, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 30; i++) {
        union sigval value = {.sival_int = i};
        CHECK(sigqueue(getpid(), SIGRTMIN + i % 3, value) == 0);
    }
    CHECK(count == 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(count == 30);
    // All masked while one is handled: strictly by number, then by age.
    for (int i = 0; i < 30; i++) printf("%d:%d ", numbers[i], got[i]);
    puts("");
    return verdict();
}
