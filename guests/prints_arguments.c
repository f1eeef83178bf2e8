// argv and chosen environment variables, byte for byte in hexadecimal.
#include "verdict.h"

static void show(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        *at >= 32 && *at < 127 && *at != '%' ? putchar(*at) : printf("%%%02x", *at);
    putchar('\n');
}

int main(int argc, char **argv)
{
    printf("%d arguments\n", argc - 1);
    // A script's own path lies in the working folder: show only its last part.
    for (int i = 1; i < argc; i++) show(strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i]);
    for (char **variable = environ; *variable; variable++)
        if (!strncmp(*variable, "ODD", 3)) show(*variable);
    CHECK(argv[argc] == NULL);
    return verdict();
}
