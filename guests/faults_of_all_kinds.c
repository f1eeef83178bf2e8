// SIGFPE, SIGILL, SIGTRAP and SIGBUS reach their handlers with the right code and
// address; the handler steps over the instruction by changing rip.
#include "verdict.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static volatile int number_seen, code, skip, at_address;
static void *volatile address;
extern char divide[], undefined[], breakpoint[], aligned_load[];

static void handle(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    number_seen = number;
    code = info->si_code;
    address = info->si_addr;
    at_address = info->si_addr == (void *)registers[REG_RIP];
    registers[REG_RIP] += skip;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    for (int n = 1; n < 32; n++)
        if (n == SIGFPE || n == SIGILL || n == SIGTRAP || n == SIGBUS || n == SIGSEGV) sigaction(n, &action, NULL);
    skip = 2;
    __asm__ volatile("xor %%edx, %%edx; mov $5, %%eax; xor %%ecx, %%ecx\ndivide: div %%ecx" : : : "rax", "rcx", "rdx", "cc");
    CHECK(number_seen == SIGFPE && code == FPE_INTDIV && at_address && address == divide);
    puts("integer division by zero");
    __asm__ volatile("mov $0x80000000, %%eax; cltd; mov $-1, %%ecx\nidiv %%ecx" : : : "rax", "rcx", "rdx", "cc");
    CHECK(number_seen == SIGFPE && code == FPE_INTDIV);
    puts("quotient too large");
    number_seen = 0;
    __asm__ volatile("undefined: ud2");
    CHECK(number_seen == SIGILL && code == ILL_ILLOPN && at_address && address == undefined);
    puts("undefined instruction");
    skip = 0;
    __asm__ volatile("int3\nbreakpoint: nop");
    CHECK(number_seen == SIGTRAP && code == SI_KERNEL);
    puts("breakpoint");
    skip = 1;
    __asm__ volatile("hlt");
    CHECK(number_seen == SIGSEGV && code == SI_KERNEL);
    puts("privileged instruction");
    static char unaligned[64] __attribute__((aligned(16)));
    skip = 3;
    __asm__ volatile("movaps (%%rax), %%xmm0" : : "a"(unaligned + 1) : "xmm0");
    CHECK(number_seen == SIGSEGV && code == SI_KERNEL && address == NULL);
    puts("misaligned vector load");
    int file = open("short", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(ftruncate(file, 4096) == 0);
    char *mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    skip = 2;
    __asm__ volatile("mov (%%rcx), %%al" : : "c"(mapped + 5000) : "rax");
    CHECK(number_seen == SIGBUS && code == BUS_ADRERR && address == mapped + 5000);
    puts("mapping beyond the end of its file");
    double one = 1, zero = 0;
    unsigned unmasked = 0x1f80 & ~0x200u, normal = 0x1f80;
    skip = 4;
    __asm__ volatile("ldmxcsr %2; divsd %1, %0; ldmxcsr %3" : "+x"(one) : "x"(zero), "m"(unmasked), "m"(normal));
    CHECK(number_seen == SIGFPE && code == FPE_FLTDIV && at_address);
    puts("floating division by zero, unmasked");
    return verdict();
}
