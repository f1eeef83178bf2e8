// One thread checks a pointer and uses it, another clears it in between:
// sometimes it crashes, after a number of rounds that differs.
#include "verdict.h"
#include <pthread.h>

static int target;
static int *volatile pointer = &target;
static volatile int stop;

static void *clear(void *argument)
{
    while (!stop) {
        for (volatile int delay = 0; delay < 300; delay++) {}
        pointer = NULL;
        for (volatile int delay = 0; delay < 30; delay++) {}
        pointer = &target;
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, clear, NULL);
    long used = 0;
    for (int round = 0; round < 400000; round++) {
        if (round % 20000 == 0) printf("round %d used %ld\n", round, used), fflush(stdout);
        if (pointer != NULL) {
            for (volatile int delay = 0; delay < 3; delay++) {}
            *pointer += 1; // between the check and this, it may have been cleared
            used++;
        }
    }
    stop = 1;
    pthread_join(thread, NULL);
    printf("survived, used %ld, target %d\n", used, target);
    return 0;
}
