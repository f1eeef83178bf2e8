// Returns, calls and jumps to what cannot be an address fault themselves: a handler sees
// the branch, and the stack as it was before.
#include "verdict.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

static sigjmp_buf back;
static volatile unsigned long seen_rip, seen_rsp, seen_rcx;
static volatile int code;

static void handler(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    seen_rip = (unsigned long)registers[REG_RIP];
    seen_rsp = (unsigned long)registers[REG_RSP];
    seen_rcx = (unsigned long)registers[REG_RCX];
    code = info->si_code;
    siglongjmp(back, signal);
}

#define NOWHERE "$0x4141414141414141"
// Each leaves where it branches, and its stack pointer there, before it branches.
#define STRAY(name, code) \
    __attribute__((noinline)) static void name(volatile unsigned long *at) \
    { \
        __asm__ volatile("leaq 1f(%%rip), %%rax\n movq %%rax, (%0)\n movl $77, %%ecx\n" code \
                         : : "D"(at) : "rax", "rcx", "rdx", "memory"); \
    }
STRAY(stray_return, "movabsq " NOWHERE ", %%rdx\n pushq %%rdx\n movq %%rsp, 8(%0)\n 1: ret\n")
STRAY(stray_return_popping,
      "movabsq " NOWHERE ", %%rdx\n subq $16, %%rsp\n pushq %%rdx\n movq %%rsp, 8(%0)\n 1: ret $16\n")
STRAY(stray_call, "movabsq " NOWHERE ", %%rdx\n movq %%rsp, 8(%0)\n 1: call *%%rdx\n")
STRAY(stray_call_by_memory,
      "movabsq " NOWHERE ", %%rdx\n movq %%rdx, 16(%0)\n movq %%rsp, 8(%0)\n 1: call *16(%0)\n")
STRAY(stray_jump, "movabsq " NOWHERE ", %%rdx\n movq %%rsp, 8(%0)\n 1: jmp *%%rdx\n")

static void check(const char *name, void (*branch)(volatile unsigned long *))
{
    volatile unsigned long at[3];
    if (sigsetjmp(back, 1) == 0) branch(at);
    printf("%s: code %d, at the branch %d, its stack %d, rcx %lu\n", name, code,
           seen_rip == at[0], seen_rsp == at[1], seen_rcx);
    CHECK(seen_rip == at[0]);
    CHECK(seen_rsp == at[1]);
    CHECK(seen_rcx == 77);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    // More than once: the code of the second time was translated before.
    for (int n = 0; n < 2; n++) {
        check("return", stray_return);
        check("return that pops", stray_return_popping);
        check("call", stray_call);
        check("call by memory", stray_call_by_memory);
        check("jump", stray_jump);
    }
    return verdict();
}
