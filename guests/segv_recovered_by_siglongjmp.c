// Reads, writes and calls through bad pointers, each survived; si_addr and
// si_code tell the cause, the mask is restored.
#include "verdict.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf back;
static void *volatile fault_address;
static volatile int code;

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    fault_address = info->si_addr;
    code = info->si_code;
    siglongjmp(back, 1);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    char *volatile null = (char *)8;
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile long sum = 0;
    for (int i = 0; i < 200; i++) {
        if (sigsetjmp(back, 1) == 0) { sum += *null; puts("FAILED"); }
        CHECK(fault_address == (void *)8 && code == SEGV_MAPERR);
        if (sigsetjmp(back, 1) == 0) { page[i] = 1; puts("FAILED"); }
        CHECK(fault_address == page + i && code == SEGV_ACCERR);
        if (sigsetjmp(back, 1) == 0) { ((void (*)(void))(void *)0x10)(); puts("FAILED"); }
        CHECK(fault_address == (void *)0x10);
        if (sigsetjmp(back, 1) == 0) { ((void (*)(void))(void *)page)(); puts("FAILED"); }
        CHECK(fault_address == page && code == SEGV_ACCERR);
        // A non-canonical address: si_addr is 0, si_code SI_KERNEL.
        if (sigsetjmp(back, 1) == 0) { sum += *(volatile char *)0x8000000000000000UL; puts("FAILED"); }
        CHECK(fault_address == NULL && code == SI_KERNEL);
    }
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    CHECK(!sigismember(&mask, SIGSEGV));
    return verdict();
}
