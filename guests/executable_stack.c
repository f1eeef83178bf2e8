// Linked with an executable stack: nested functions whose addresses are taken run
// from the stack; so does code written there by hand.
#include "verdict.h"

static int apply(int (*function)(int), int n) { return function(n); }

__attribute__((noinline)) static int nested(int add)
{
    int more(int n) { return n + add; }
    return apply(more, 10);
}

int main(void)
{
    printf("nested: %d %d\n", nested(5), nested(32));
    // mov $42, %eax; ret
    volatile unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
    printf("by hand: %d\n", ((int (*)(void))(uintptr_t)code)());
    code[1] = 43;
    printf("changed: %d\n", ((int (*)(void))(uintptr_t)code)());
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "[stack]")) printf("stack: %.4s\n", strchr(line, ' ') + 1);
    fclose(maps);
    return verdict();
}
