// The x87 stack, its control word, comparisons, transcendentals, BCD, and
// that fnstenv tells where the *guest's* instruction was.
#include "verdict.h"
#include <fenv.h>
#include <math.h>

static void print_bits(const char *name, long double value)
{
    unsigned char bytes[16] = {0};
    memcpy(bytes, &value, 10);
    printf("%s ", name);
    for (int i = 9; i >= 0; i--) printf("%02x", bytes[i]);
    printf("\n");
}

int main(void)
{
    volatile long double x = 2.0L, y = 3.0L;
    print_bits("sum", x + y);
    print_bits("quotient", x / y);
    print_bits("root", sqrtl(x));
    long double pi;
    __asm__ volatile("fldpi" : "=t"(pi));
    print_bits("pi", pi);
    long double rounded;
    __asm__ volatile("frndint" : "=t"(rounded) : "0"(pi));
    print_bits("rounded", rounded);
    unsigned short saved, single;
    __asm__ volatile("fnstcw %0" : "=m"(saved));
    single = (unsigned short)(saved & ~0x300);
    __asm__ volatile("fldcw %0" : : "m"(single));
    long double low = x / y;
    __asm__ volatile("fldcw %0" : : "m"(saved));
    print_bits("single", low);
    unsigned char bcd[10];
    long double number = 1234567890123.0L;
    __asm__ volatile("fldt %1; fbstp %0" : "=m"(bcd) : "m"(number) : "memory");
    for (int i = 9; i >= 0; i--) printf("%02x", bcd[i]);
    printf("\n");
    unsigned short status;
    __asm__ volatile("fldz; fld1; fcompp; fnstsw %0" : "=a"(status));
    printf("compare %x\n", status & 0x4500);
    int carry, zero;
    __asm__ volatile("fldz; fld1; fcomip %%st(1), %%st; setc %b0; setz %b1; fstp %%st(0)"
                     : "=q"(carry), "=q"(zero) : "0"(0), "1"(0) : "cc");
    printf("fcomip %d %d\n", carry & 1, zero & 1);
    struct { unsigned control, status, tag, ip, cs_opcode, dp, ds; } environment;
    unsigned long here;
    __asm__ volatile("1: fld1; lea 1b(%%rip), %1; fnstenv %0; fstp %%st(0)"
                     : "=m"(environment), "=r"(here));
    __asm__ volatile("fldcw %0" : : "m"(saved));
    // Some CPUs save the pointer only with a pending exception (it is then zero).
    CHECK(environment.ip == (unsigned)here || environment.ip == 0);
    fesetround(FE_UPWARD);
    volatile double one = 1.0, three = 3.0;
    printf("%a\n", one / three);
    fesetround(FE_DOWNWARD);
    printf("%a\n", one / three);
    fesetround(FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
    volatile double zero_d = 0.0;
    volatile double infinite = one / zero_d;
    CHECK(isinf(infinite) && fetestexcept(FE_DIVBYZERO) && !fetestexcept(FE_INVALID));
    return verdict();
}
