#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int starting_length;
} state;

static void visit(const char *start, int level) {
    if (state.starting_length == 0) /* 1 */
        state.starting_length = (int)strlen(start); /* 2 */
    (void)level;
}

static void print_start(char *path) {
    char kept = path[state.starting_length]; /* 5 */
    path[state.starting_length] = '\0'; /* 6 */
    printf("%s", path); /* 7 */
    path[state.starting_length] = kept; /* 8 */
    printf(" %s\n", path);
}

int main(int argc, char **argv) {
    char path[256];
    for (int i = 1; i < argc; i++) {
        visit(argv[i], 0);
        for (int k = 1; k <= 2; k++) {
            snprintf(path, sizeof path, "%s/file%d", argv[i], k);
            visit(argv[i], 1);
            print_start(path);
        }
    }
}
