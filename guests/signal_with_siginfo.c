// SA_SIGINFO handlers learn who sent the signal and how; integer registers and
// vector registers survive the handler.
#include "verdict.h"
#include <signal.h>
#include <sys/syscall.h>

static volatile int seen, code, from_me;
static volatile double scratch;

static void handle(int number, siginfo_t *info, void *context)
{
    CHECK(context != NULL && number == info->si_signo);
    seen = number;
    code = info->si_code;
    from_me = info->si_pid == getpid() && info->si_uid == getuid();
    for (int i = 1; i < 50; i++) scratch += 1.0 / i; // dirties vector registers
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO}, old;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_sigaction == handle && (old.sa_flags & SA_SIGINFO));
    double a = 1.25, b = 2.5, c = 3.75;
    long x = 111, y = 222;
    __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+r"(x), "+r"(y));
    kill(getpid(), SIGUSR1);
    __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+r"(x), "+r"(y));
    CHECK(a == 1.25 && b == 2.5 && c == 3.75 && x == 111 && y == 222);
    CHECK(seen == SIGUSR1 && code == SI_USER && from_me);
    seen = 0;
    syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGUSR1);
    CHECK(seen == SIGUSR1 && code == SI_TKILL && from_me);
    return verdict();
}
