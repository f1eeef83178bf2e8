// Reads the clock a million times (or as often as its argument says).
#include "verdict.h"
#include <time.h>

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000000, backwards = 0;
    struct timespec last = {0, 0}, now;
    for (long i = 0; i < rounds; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        backwards += now.tv_sec < last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec);
        last = now;
    }
    printf("%ld readings, %ld backwards\n", rounds, backwards);
    return backwards != 0;
}
