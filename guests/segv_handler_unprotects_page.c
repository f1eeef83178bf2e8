// A write barrier: the handler makes the page writable and returns; the store
// is repeated. Also in the middle of `rep stosb` over many pages, and of a copy.
#include "verdict.h"
#include <signal.h>
#include <sys/mman.h>

enum { PAGES = 16 };
static char *memory;
static volatile int faults;

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    char *page = (char *)((unsigned long)info->si_addr & ~4095UL);
    if (page < memory || page >= memory + PAGES * 4096) _exit(3);
    faults++;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    memory = mmap(NULL, PAGES * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGES * 4096; i += 512) memory[i] = (char)(i / 512);
    printf("stores %d\n", faults);
    CHECK(memory[4096] == 8 && memory[0] == 0);
    mprotect(memory, PAGES * 4096, PROT_READ);
    char *to = memory + 100;
    unsigned long count = 14 * 4096;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x77) : "memory");
    printf("rep stosb %d %lu\n", faults, count);
    CHECK(to == memory + 100 + 14 * 4096 && memory[99] == 0 && memory[100] == 0x77 && to[-1] == 0x77);
    mprotect(memory, PAGES * 4096, PROT_NONE);
    memmove(memory + 3000, memory + 5000, 5 * 4096);
    CHECK(memory[3000] == 0x77);
    int before = faults;
    memory[10]++, memory[11] = 5;
    CHECK(faults == before);
    mprotect(memory, 4096, PROT_READ);
    __atomic_fetch_add((int *)memory, 5, __ATOMIC_SEQ_CST);
    CHECK(faults == before + 1);
    return verdict();
}
