// A timer signal interrupts a computation at instants that differ; the handler's
// view of the running sum is printed.
#include "verdict.h"
#include <signal.h>
#include <sys/time.h>

static volatile unsigned long sum;
static unsigned long seen[10];
static volatile sig_atomic_t count;
static void tick(int number) { (void)number; if (count < 10) seen[count++] = sum; }

int main(void)
{
    signal(SIGALRM, tick);
    struct itimerval every = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, NULL);
    for (unsigned long i = 0; count < 10; i++) sum = sum * 6364136223846793005UL + i;
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 10; i++) printf("%lx\n", seen[i]);
    return 0;
}
