// The same small program, linked in every way: dynamic, static, PIE, non-PIE,
// glibc, musl. Constructors run before main, destructors after.
#include "verdict.h"

static int constructed;
__attribute__((constructor)) static void before_main(void) { constructed = 1; }
__attribute__((destructor)) static void after_main(void) { puts("destroyed"); }

int main(int argc, char **argv, char **envp)
{
    CHECK(constructed == 1);
    CHECK(argc == 3 && strcmp(argv[1], "one") == 0 && argv[3] == NULL);
    CHECK(envp[0] != NULL);
    char *text = malloc(100);
    snprintf(text, 100, "hello %s %s %.3f", argv[1], argv[2], 22.0 / 7);
    puts(text);
    free(text);
    return 0;
}
