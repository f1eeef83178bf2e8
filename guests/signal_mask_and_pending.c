// Blocked signals stay pending, once each, and arrive on unblocking, lowest
// first; ignored ones vanish; SIGKILL and SIGSTOP cannot be blocked or caught.
#include "verdict.h"
#include <signal.h>

static char order[16];
static volatile int at;
static void handle(int number) { order[at++] = number == SIGUSR1 ? '1' : number == SIGUSR2 ? '2' : 'h'; }

int main(void)
{
    struct sigaction action = {.sa_handler = handle};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigset_t block, old, pending;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1), sigaddset(&block, SIGUSR2), sigaddset(&block, SIGHUP);
    CHECK(sigprocmask(SIG_BLOCK, &block, &old) == 0);
    for (int i = 0; i < 3; i++) raise(SIGUSR2), kill(getpid(), SIGUSR1), raise(SIGHUP);
    CHECK(at == 0);
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGUSR2) && !sigismember(&pending, SIGINT));
    signal(SIGHUP, SIG_IGN); // discards the pending one
    CHECK(sigprocmask(SIG_SETMASK, &old, NULL) == 0);
    CHECK(at == 2);
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGUSR1));
    CHECK(strchr(order, '1') && strchr(order, '2') && !strchr(order, 'h'));
    CHECK(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
    sigfillset(&block);
    sigprocmask(SIG_SETMASK, &block, NULL);
    sigprocmask(SIG_SETMASK, NULL, &old);
    CHECK(!sigismember(&old, SIGKILL) && !sigismember(&old, SIGSTOP) && sigismember(&old, SIGSEGV));
    return verdict();
}
