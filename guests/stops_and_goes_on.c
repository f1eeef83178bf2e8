// SIGSTOP and SIGTSTP stop the program, SIGCONT (here from a timer) lets it go on;
// a stop that is blocked, ignored or caught does not; SIGCONT removes pending stops.
#include "verdict.h"
#include <signal.h>
#include <time.h>

static volatile sig_atomic_t continued, caught;
static void note(int number)
{
    if (number == SIGCONT) continued++;
    else caught++;
}

static void continue_later(timer_t timer)
{
    struct itimerspec soon = {.it_value = {0, 60000000}};
    CHECK(timer_settime(timer, 0, &soon, NULL) == 0);
}

int main(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    continue_later(timer);
    CHECK(raise(SIGSTOP) == 0);
    puts("went on after SIGSTOP");
    signal(SIGCONT, note);
    continue_later(timer);
    CHECK(raise(SIGSTOP) == 0);
    CHECK(continued == 1);
    puts("the handler of SIGCONT ran");
    signal(SIGTSTP, note);
    raise(SIGTSTP);
    CHECK(caught == 1);
    signal(SIGTSTP, SIG_IGN);
    raise(SIGTSTP);
    signal(SIGTSTP, SIG_DFL);
    sigset_t stop, pending;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    raise(SIGTSTP);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGTSTP));
    raise(SIGCONT);
    CHECK(continued == 2 && sigpending(&pending) == 0 && !sigismember(&pending, SIGTSTP));
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    puts("SIGCONT took the pending stop away");
    return verdict();
}
