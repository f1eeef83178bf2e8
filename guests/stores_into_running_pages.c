// Pages that hold both code and data: a counter beside the code that runs, one
// store across two such pages, system calls and discarded contents, and a return
// from a stack that cannot be written.
#include "verdict.h"
#include <signal.h>
#include <sys/mman.h>

int main(void)
{
    unsigned char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // 1: incl counter(%rip); dec %edi; jnz 1b; ret
    unsigned char loop[] = {0xff, 0x05, 0xfa, 0x07, 0, 0, 0xff, 0xcf, 0x75, 0xf6, 0xc3};
    memcpy(page, loop, sizeof loop);
    ((void (*)(int))page)(20000);
    CHECK(*(int *)(page + 2048) == 20000);
    page[4096] = 0xc3;
    ((void (*)(void))(page + 4096))();
    *(unsigned long *)(page + 4092) = 0xc3c3c3c3c3c3c3c3;
    ((void (*)(void))(page + 4092))();
    sigset_t old;
    ((void (*)(int))page)(1);
    CHECK(sigprocmask(SIG_BLOCK, NULL, (sigset_t *)(page + 3000)) == 0);
    sigprocmask(SIG_BLOCK, NULL, &old);
    CHECK(!memcmp(page + 3000, &old, 8));
    ((void (*)(int))page)(1);
    CHECK(madvise(page, 4096, MADV_DONTNEED) == 0);
    page[0] = 0xc3;
    CHECK(*(int *)(page + 2048) == 0);
    ((void (*)(void))page)();
    // A return through a table that cannot be written.
    unsigned long *table = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long arrived = 0;
    __asm__ volatile("lea 1f(%%rip), %%rax\n mov %%rax, 64(%1)\n" : "=m"(arrived) : "r"(table) : "rax", "memory");
    __asm__ volatile("jmp 2f\n1: mov %%rbx, %%rsp\n mov $1, %%ecx\n jmp 3f\n2:" : : : "memory");
    mprotect(table, 4096, PROT_READ);
    __asm__ volatile("mov %%rsp, %%rbx\n xor %%ecx, %%ecx\n lea 64(%1), %%rsp\n ret\n3: movslq %%ecx, %0"
                     : "=r"(arrived) : "r"(table) : "rbx", "rcx", "rax", "memory");
    CHECK(arrived == 1);
    return verdict();
}
