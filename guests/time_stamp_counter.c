// rdtsc and rdtscp go forward, also in a tight loop.
#include "verdict.h"
#include <x86intrin.h>

int main(void)
{
    unsigned long long last = __rdtsc(), first = last;
    unsigned processor;
    for (int i = 0; i < 20000; i++) {
        unsigned long long t = i % 2 ? __rdtsc() : __rdtscp(&processor);
        CHECK(t >= last);
        last = t;
    }
    CHECK(last > first);
    return verdict();
}
