// The handler repairs the base register in the saved context; the load is
// repeated and succeeds. It also finds the faulting instruction and all other
// registers as they were.
#include "verdict.h"
#include <signal.h>
#include <ucontext.h>

extern char faulting_load[];
static long good = 4711;
static volatile int repaired;

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (registers[REG_RIP] != (greg_t)faulting_load) _exit(3);
    if (registers[REG_R8] != 8 || registers[REG_R9] != 9 || registers[REG_R10] != 10 || registers[REG_R12] != 12 ||
        registers[REG_RBX] != 0x66 || registers[REG_R15] != 15)
        _exit(4);
    if (registers[REG_ERR] & 2) _exit(5); // a read
    if (!(registers[REG_EFL] & 1)) _exit(6); // carry was set
    registers[REG_RDX] = (greg_t)&good;
    registers[REG_R9] = 99;
    repaired++;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    long value, nine;
    unsigned char carry;
    __asm__ volatile(
        "mov $8, %%r8; mov $9, %%r9; mov $10, %%r10; mov $12, %%r12; mov $0x66, %%ebx; mov $15, %%r15\n"
        "mov $1, %%edx; stc\n"
        "faulting_load: mov (%%rdx), %%rax\n"
        "setc %2; mov %%r9, %1"
        : "=&a"(value), "=&r"(nine), "=&q"(carry)
        : : "rbx", "rdx", "r8", "r9", "r10", "r12", "r15", "cc");
    printf("value %ld r9 %ld carry %d repaired %d\n", value, nine, carry, repaired);
    return verdict();
}
