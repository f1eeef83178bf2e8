// CPUID offers x86-64-v3, and nothing it does not also let the program use.
// Under the engine AVX-512 is hidden; natively it may be there. Both are fine
// as long as CPUID, XGETBV and glibc agree.
#include "verdict.h"
#include <cpuid.h>

int main(int argc, char **argv)
{
    unsigned a, b, c, d;
    CHECK(__get_cpuid(1, &a, &b, &c, &d));
    struct { const char *name; int has; } level3[] = {
        {"sse3", c & 1}, {"ssse3", c >> 9 & 1}, {"fma", c >> 12 & 1}, {"cx16", c >> 13 & 1},
        {"sse4.1", c >> 19 & 1}, {"sse4.2", c >> 20 & 1}, {"movbe", c >> 22 & 1}, {"popcnt", c >> 23 & 1},
        {"osxsave", c >> 27 & 1}, {"avx", c >> 28 & 1}, {"f16c", c >> 29 & 1}, {"fxsr", d >> 24 & 1},
    };
    for (unsigned i = 0; i < sizeof level3 / sizeof *level3; i++)
        printf("%s %s\n", level3[i].name, level3[i].has ? "yes" : "NO");
    CHECK(__get_cpuid_count(7, 0, &a, &b, &c, &d));
    printf("bmi1 %d avx2 %d bmi2 %d\n", b >> 3 & 1, b >> 5 & 1, b >> 8 & 1);
    int avx512 = b >> 16 & 1;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    CHECK((low & 6) == 6);
    if (avx512) CHECK((low & 0xe6) == 0xe6);
    CHECK(__get_cpuid(0x80000001, &a, &b, &c, &d));
    printf("lzcnt %d lahf %d\n", c >> 5 & 1, c & 1);
    unsigned widest = __get_cpuid_max(0, NULL);
    CHECK(widest >= 7);
    // Started with the argument "hidden" (only under the engine): must not be claimed.
    if (argc > 1 && strcmp(argv[1], "hidden") == 0) CHECK(!avx512);
    __builtin_cpu_init();
    CHECK(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"));
    return verdict();
}
