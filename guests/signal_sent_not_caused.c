// SIGSEGV, SIGFPE and SIGTRAP sent by kill, not caused by an instruction: they
// are ordinary signals, can be blocked and ignored.
#include "verdict.h"
#include <signal.h>

static volatile int handled;
static void handle(int number) { handled = number; }

int main(void)
{
    int numbers[] = {SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS, SIGSYS};
    for (int i = 0; i < 6; i++) {
        signal(numbers[i], SIG_IGN);
        CHECK(kill(getpid(), numbers[i]) == 0);
        signal(numbers[i], handle);
        sigset_t set;
        sigemptyset(&set), sigaddset(&set, numbers[i]);
        sigprocmask(SIG_BLOCK, &set, NULL);
        kill(getpid(), numbers[i]);
        CHECK(handled != numbers[i]);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        CHECK(handled == numbers[i]);
    }
    return verdict();
}
