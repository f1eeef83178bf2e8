// Real-time signals queued while blocked: the handler of each makes system calls
// while the next one waits, blocked by the handler's own mask.
#include "verdict.h"
#include <signal.h>

static volatile int handled;
static void handle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    char line[] = "signal 0\n";
    line[7] = '0' + info->si_value.sival_int;
    (void)!write(1, line, sizeof line - 1);
    handled++;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    sigaction(SIGRTMIN, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGRTMIN), sigaddset(&set, SIGTRAP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 1; i <= 4; i++) CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}) == 0);
    CHECK(sigqueue(getpid(), SIGTRAP, (union sigval){.sival_int = 9}) == 0);
    (void)!write(1, "all blocked\n", 12);
    CHECK(handled == 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(handled == 5);
    return verdict();
}
