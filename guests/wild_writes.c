// Stores across memory that is not its own until the first fault, from several
// starting points, recovering each time. Nothing else may be harmed.
#include "verdict.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf back;
static char *volatile fault;
extern char __executable_start[], _end[];

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    fault = info->si_addr;
    siglongjmp(back, 1);
}
// Stores a byte per `step` from `at` on; every byte it passes must be its own.
static char *sweep(char *volatile at, long step)
{
    if (sigsetjmp(back, 1) == 0)
        for (;; at += step) *(volatile char *)at = (char)0xa5;
    return at;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    for (unsigned long at = 0; at < 0x10000; at += 512) CHECK(sweep((char *)at, 512) == (char *)at && fault == (char *)at);
    puts("the null pages");
    char *own = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(own, 4096), munmap(own + 3 * 4096, 4096);
    CHECK(sweep(own + 4096, 64) == own + 3 * 4096);
    CHECK(sweep(own + 3 * 4096 - 64, -64) == own + 4096 - 64);
    puts("around a map");
    char *end = sbrk(0);
    CHECK(sweep(end - 8, 8) >= end);
    puts("past the break");
    CHECK(sweep(__executable_start, -4096) == __executable_start);
    CHECK(sweep(__executable_start - 4096, -4096) == __executable_start - 4096);
    puts("below the image");
    CHECK(sweep((char *)0x7ffffffff000UL, 4096) == (char *)0x7ffffffff000UL);
    CHECK(sweep((char *)0xffffffff80000000UL, 4096) == (char *)0xffffffff80000000UL);
    puts("the kernel's half");
    // System calls asked to write there fail politely.
    CHECK(read(0, (char *)0x1000, 0) <= 0);
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "xyz", 3) == 3);
    CHECK(read(ends[0], (char *)0x1000, 3) == -1 && errno == EFAULT);
    CHECK(read(ends[0], own + 3 * 4096, 3) == -1 && errno == EFAULT);
    CHECK(write(ends[1], own, 3) == -1 && errno == EFAULT);
    puts("by system call");
    return verdict();
}
