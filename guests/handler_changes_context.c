// A handler rewrites the saved context: rip, a register, a vector register, the
// mask; execution goes on there.
#include "verdict.h"
#include <signal.h>
#include <ucontext.h>

static volatile int diverted;
static void landing(void)
{
    puts("landed elsewhere");
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    CHECK(sigismember(&now, SIGHUP));
    diverted = 1;
    exit(verdict());
}
static void handle(int number, siginfo_t *info, void *context)
{
    (void)info;
    ucontext_t *saved = context;
    if (number == SIGUSR1) {
        saved->uc_mcontext.gregs[REG_R14] = 1414;
        unsigned *xmm7 = saved->uc_mcontext.fpregs->_xmm[7].element;
        for (unsigned i = 0; i < 4; i++) xmm7[i] = 0x10 + i;
    } else {
        saved->uc_mcontext.gregs[REG_RIP] = (greg_t)landing;
        saved->uc_mcontext.gregs[REG_RSP] = (saved->uc_mcontext.gregs[REG_RSP] & ~15L) - 1024 - 8;
        sigaddset(&saved->uc_sigmask, SIGHUP);
    }
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
    long r14;
    unsigned vector[4];
    long number = 39, self = getpid();
    (void)number;
    __asm__ volatile("mov $0, %%r14d; pxor %%xmm7, %%xmm7\n"
                     "mov $62, %%eax; mov %2, %%rdi; mov $10, %%esi; syscall\n" // kill(self, SIGUSR1)
                     "mov %%r14, %0; movdqu %%xmm7, %1"
                     : "=&r"(r14), "=m"(vector) : "r"(self)
                     : "rax", "rcx", "rdi", "rsi", "r11", "r14", "xmm7", "memory");
    printf("r14 %ld xmm7 %x %x\n", r14, vector[0], vector[3]);
    fflush(stdout);
    __asm__ volatile("int3");
    puts("FAILED: not diverted");
    return 1;
}
