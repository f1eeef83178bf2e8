// A handler leaves by longjmp many times, also out of a blocked call and a loop.
#include "verdict.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf back;
static void handle(int number) { siglongjmp(back, number); }

int main(void)
{
    signal(SIGALRM, handle);
    signal(SIGUSR1, handle);
    volatile int count = 0;
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(back, 1) == 0) {
            raise(SIGUSR1);
            puts("FAILED");
        } else {
            count++;
        }
    }
    printf("raised %d\n", count);
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    for (volatile int i = 0; i < 5; i++) {
        struct itimerval soon = {{0, 0}, {0, 5000}};
        if (sigsetjmp(back, 1) == 0) {
            setitimer(ITIMER_REAL, &soon, NULL);
            if (i % 2) for (;;) __asm__ volatile("");
            (void)!read(ends[0], &byte, 1);
            puts("FAILED");
        }
    }
    puts("out of read and loop");
    return verdict();
}
