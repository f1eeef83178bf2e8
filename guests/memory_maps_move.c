// mremap grows, moves, shrinks; fixed maps replace; munmap splits; hints and
// MAP_32BIT; MAP_FIXED_NOREPLACE refuses; madvise(DONTNEED) gives zeros.
#include "verdict.h"
#include <sys/mman.h>

static char *map(size_t size) { return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

int main(void)
{
    char *memory = map(4 * 4096);
    for (int i = 0; i < 4; i++) memory[i * 4096] = (char)('0' + i);
    memory = mremap(memory, 4 * 4096, 64 * 4096, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED && memory[3 * 4096] == '3' && memory[63 * 4096] == 0);
    memory[63 * 4096] = 'z';
    CHECK(mremap(memory, 64 * 4096, 4 * 4096, 0) == memory);
    char *elsewhere = map(4 * 4096);
    CHECK(mremap(memory, 4 * 4096, 4 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) == elsewhere);
    CHECK(elsewhere[2 * 4096] == '2');
    CHECK(madvise(elsewhere + 4096, 4096, MADV_DONTNEED) == 0);
    CHECK(elsewhere[0] == '0' && elsewhere[4096] == 0 && elsewhere[2 * 4096] == '2');
    CHECK(madvise(elsewhere + 1, 4096, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK(mmap(elsewhere + 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == elsewhere + 4096);
    CHECK(mmap(elsewhere, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    CHECK(munmap(elsewhere + 2 * 4096, 4096) == 0);
    CHECK(elsewhere[3 * 4096] == '3');
    unsigned char resident[4];
    CHECK(mincore(elsewhere, 4 * 4096, resident) == -1 && errno == ENOMEM);
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(low != MAP_FAILED && (unsigned long)low < 1UL << 31);
    low[0] = 1;
    char *hinted = mmap((void *)0x700000000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hinted != MAP_FAILED);
    hinted[0] = 1;
    char *huge = mmap(NULL, 1UL << 36, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(huge != MAP_FAILED && mprotect(huge + (1UL << 35), 4096, PROT_READ | PROT_WRITE) == 0);
    huge[1UL << 35] = 7;
    CHECK(munmap(huge, 1UL << 36) == 0);
    CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(munmap((void *)1, 4096) == -1 && errno == EINVAL);
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[8191] = 1;
    CHECK(mprotect(shared, 4096, PROT_NONE) == 0 && shared[8191] == 1);
    CHECK(mlock(shared + 4096, 4096) == 0 || errno == ENOMEM || errno == EPERM);
    return verdict();
}
