// Memory that is reserved and hardly touched, as sanitizers and managed languages do it:
// where the kernel puts it, and at an address of the program's choice.
#include "verdict.h"
#include <sys/mman.h>

enum { TOUCHED = 64 };

static void touch(char *at, size_t len)
{
    for (size_t i = 0; i < TOUCHED; i++) {
        CHECK(at[len / TOUCHED * i] == 0);
        at[len / TOUCHED * i] = (char)(i + 1);
    }
    for (size_t i = 0; i < TOUCHED; i++) CHECK(at[len / TOUCHED * i] == (char)(i + 1));
}

int main(void)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, prot = PROT_READ | PROT_WRITE;
    size_t len = (size_t)4 << 40;
    char *anywhere = mmap(NULL, len, prot, flags, -1, 0);
    CHECK(anywhere != MAP_FAILED);
    touch(anywhere, len);
    void *wanted = (void *)0x100000000000;
    char *there = mmap(wanted, 2 * len, prot, flags | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(there == wanted);
    touch(there, 2 * len);
    CHECK(mprotect(there + len, len, PROT_NONE) == 0);
    CHECK(munmap(anywhere + len / 2, len / 2) == 0);
    CHECK(anywhere[0] == 1 && there[0] == 1);
    return verdict();
}
