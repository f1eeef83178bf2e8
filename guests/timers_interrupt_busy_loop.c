// setitimer, timer_create, and alarm each interrupt a loop that makes no calls;
// expirations carry their value; the loop's own sums stay right.
#include "verdict.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t ticks;
static volatile int value, code;

static void tick(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    ticks++;
    code = info->si_code;
    value = info->si_value.sival_int;
}
// Each sum is checked, so an interruption that lost a register would show.
static void busy_until(int wanted)
{
    while (ticks < wanted) {
        unsigned long sum = 0;
        for (unsigned long i = 0; i < 1000; i++) {
            sum += i * i;
            __asm__ volatile("" : "+r"(sum));
        }
        CHECK(sum == 332833500);
    }
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGVTALRM, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}}, left;
    setitimer(ITIMER_REAL, &every, NULL);
    busy_until(20);
    CHECK(getitimer(ITIMER_REAL, &left) == 0 && left.it_interval.tv_usec == 2000);
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(code == SI_KERNEL);
    puts("setitimer");
    ticks = 0;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 4711};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec period = {{0, 1000000}, {0, 1000000}};
    CHECK(timer_settime(timer, 0, &period, NULL) == 0);
    busy_until(20);
    CHECK(timer_getoverrun(timer) >= 0);
    CHECK(timer_delete(timer) == 0);
    CHECK(code == SI_TIMER && value == 4711);
    puts("timer_create");
    ticks = 0;
    CHECK(alarm(1) == 0);
    busy_until(1);
    CHECK(alarm(0) == 0);
    puts("alarm");
    return verdict();
}
