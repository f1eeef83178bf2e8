// A program that writes code, runs it, changes it and runs it again: on a page
// writable and executable at once, and on one that switches.
#include "verdict.h"
#include <sys/mman.h>

static void write_constant_function(unsigned char *code, int value)
{
    code[0] = 0xb8; // mov $value, %eax; ret
    memcpy(code + 1, &value, 4);
    code[5] = 0xc3;
}

int main(void)
{
    unsigned char *both = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(both != MAP_FAILED);
    int (*function)(void) = (int (*)(void))both;
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        write_constant_function(both, i * 3);
        sum += function();
    }
    printf("rewritten %ld\n", sum);
    unsigned char *switched = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(switched != MAP_FAILED);
    function = (int (*)(void))switched;
    sum = 0;
    for (int i = 0; i < 20; i++) {
        CHECK(mprotect(switched, 4096, PROT_READ | PROT_WRITE) == 0);
        write_constant_function(switched, i);
        CHECK(mprotect(switched, 4096, PROT_READ | PROT_EXEC) == 0);
        sum += function();
    }
    printf("switched %ld\n", sum);
    CHECK(munmap(switched, 4096) == 0);
    unsigned char *again = mmap(switched, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(again == switched);
    write_constant_function(again, 4711);
    printf("mapped anew %d\n", function());
    return verdict();
}
