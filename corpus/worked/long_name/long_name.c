#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
    char name[1024];
    char other[2580];
    const char *environment;
};

static struct state state = {.environment = "-9"};

static void keep_name(const char *name) {
    strcpy(state.name, name);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    keep_name(argv[1]);
    printf("options %s\n", state.environment);
    printf("length %zu\n", strlen(state.name));
}
