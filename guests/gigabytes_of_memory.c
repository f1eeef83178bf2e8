// A gigabyte that is written everywhere, and three that are written here and there.
#include "verdict.h"
#include <sys/mman.h>

int main(void)
{
    size_t dense = (size_t)1 << 30, sparse = (size_t)3 << 30, step = 1 << 16;
    uint64_t *words = malloc(dense), sum = 0;
    CHECK(words != NULL);
    for (size_t i = 0; i < dense / 8; i++) words[i] = i * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < dense / 8; i += 511) sum ^= words[i];
    char *bytes = mmap(NULL, sparse, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(bytes != MAP_FAILED);
    for (size_t i = 0; i < sparse; i += step) bytes[i] = (char)(i / step);
    for (size_t i = 0; i < sparse; i += step) CHECK(bytes[i] == (char)(i / step));
    printf("%llx\n", (unsigned long long)sum);
    return verdict();
}
