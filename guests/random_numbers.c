// rdrand and rdseed set the carry flag and give differing values of each width;
// getrandom and /dev/urandom too.
#include "verdict.h"
#include <cpuid.h>
#include <fcntl.h>
#include <sys/random.h>

int main(void)
{
    unsigned a, b, c, d;
    CHECK(__get_cpuid(1, &a, &b, &c, &d));
    if (c >> 30 & 1) {
        unsigned long values[50], differing = 0;
        for (int i = 0; i < 50; i++) {
            unsigned char ok = 0;
            for (int tries = 0; !ok && tries < 100; tries++)
                __asm__ volatile("rdrand %0; setc %1" : "=r"(values[i]), "=q"(ok) : : "cc");
            CHECK(ok);
            differing += i > 0 && values[i] != values[i - 1];
        }
        CHECK(differing == 49);
        unsigned half = 0;
        __asm__ volatile("mov $-1, %%rax; rdrand %%eax; shr $32, %%rax" : "=a"(half) : : "cc");
        CHECK(half == 0);
    }
    CHECK(__get_cpuid_count(7, 0, &a, &b, &c, &d));
    if (b >> 18 & 1) {
        unsigned long seed = 0;
        unsigned char ok = 0;
        for (int tries = 0; !ok && tries < 100000; tries++)
            __asm__ volatile("rdseed %0; setc %1" : "=r"(seed), "=q"(ok) : : "cc");
        CHECK(ok);
    }
    unsigned char one[32] = {0}, two[32] = {0}, three[32] = {0};
    CHECK(getrandom(one, 32, 0) == 32 && getrandom(two, 32, GRND_NONBLOCK) == 32);
    int file = open("/dev/urandom", O_RDONLY);
    CHECK(read(file, three, 32) == 32);
    CHECK(memcmp(one, two, 32) && memcmp(two, three, 32));
    return verdict();
}
