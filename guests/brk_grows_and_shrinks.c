// The program break: grows with zeros, shrinks, grows with zeros again.
#include "verdict.h"

int main(void)
{
    char *start = sbrk(0);
    CHECK(sbrk(10 * 4096) == start);
    for (int i = 0; i < 10 * 4096; i++) CHECK(start[i] == 0);
    memset(start, 1, 10 * 4096);
    CHECK(sbrk(0) == start + 10 * 4096);
    CHECK(brk(start) == 0 && sbrk(0) == start);
    CHECK(sbrk(10 * 4096) == start);
    char *page = (char *)(((unsigned long)start + 4095) & ~4095UL);
    for (char *at = page; at < start + 10 * 4096; at++) CHECK(*at == 0);
    CHECK(sbrk(64L << 20) != (void *)-1);
    start[64L << 20] = 5;
    CHECK(brk((char *)8) == -1 || sbrk(0) != (char *)8);
    void *blocks[100];
    for (int i = 0; i < 100; i++) memset(blocks[i] = malloc((size_t)(i * 1000 + 1)), i, (size_t)(i * 1000 + 1));
    for (int i = 0; i < 100; i++) CHECK(((unsigned char *)blocks[i])[i * 1000] == i);
    for (int i = 0; i < 100; i++) free(blocks[i]);
    return verdict();
}
