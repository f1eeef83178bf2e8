// Switch tables, computed goto, function pointers, tail calls, deep recursion,
// variadic functions, qsort callbacks, many call targets at one site.
#include "verdict.h"
#include <stdarg.h>

static long by_switch(int n)
{
    switch (n) {
    case 0: return 3; case 1: return 1; case 2: return 4; case 3: return 1; case 4: return 5; case 5: return 9;
    case 6: return 2; case 7: return 6; case 8: return 5; case 9: return 35; case 10: return 8; default: return -1;
    }
}
static long interpret(const unsigned char *code)
{
    static void *labels[] = {&&push, &&add, &&multiply, &&halt};
    long stack[16], *top = stack;
#define NEXT goto *labels[*code++]
    NEXT;
push: *top++ = *code++; NEXT;
add: top--, top[-1] += top[0]; NEXT;
multiply: top--, top[-1] *= top[0]; NEXT;
halt: return top[-1];
}
static long f0(long x) { return x + 1; }
static long f1(long x) { return x * 3; }
static long f2(long x) { return x ^ 0x55; }
static long f3(long x) { return x - 7; }
static long (*const functions[])(long) = {f0, f1, f2, f3};
__attribute__((noinline)) static long odd(long n);
__attribute__((noinline)) static long even(long n) { return n == 0 ? 1 : odd(n - 1); }
__attribute__((noinline)) static long odd(long n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) static long depth(long n) { return n == 0 ? 0 : 1 + depth(n - 1); }
static double sum(int n, ...)
{
    va_list arguments;
    double total = 0;
    va_start(arguments, n);
    for (int i = 0; i < n; i++) total += i % 2 ? va_arg(arguments, double) : va_arg(arguments, int);
    va_end(arguments);
    return total;
}
static int compare(const void *a, const void *b) { return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b; }

int main(void)
{
    long total = 0;
    for (int i = 0; i < 2000; i++) total = total * 7 % 1000003 + by_switch(i % 13);
    printf("switch %ld\n", total);
    printf("goto %ld\n", interpret((unsigned char[]){0, 6, 0, 7, 2, 0, 2, 1, 3}));
    for (int i = 0; i < 10000; i++) total = functions[(i * 7 + i / 3) & 3](total) % 1000003;
    printf("pointers %ld\n", total);
    printf("tail %ld deep %ld\n", even(100000), depth(20000));
    printf("variadic %.2f\n", sum(12, 1, 2.5, 3, 4.5, 5, 6.5, 7, 8.5, 9, 10.5, 11, 12.5));
    int numbers[1000];
    for (int i = 0; i < 1000; i++) numbers[i] = i * 7919 % 1009;
    qsort(numbers, 1000, sizeof *numbers, compare);
    for (int i = 1; i < 1000; i++) CHECK(numbers[i - 1] <= numbers[i]);
    return verdict();
}
