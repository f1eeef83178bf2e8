/* basic: runs a program in a small dialect of BASIC.
 *
 * usage: basic PROGRAM < INPUT */
#include <stdio.h>
#include <stdlib.h>

#include "basic.h"

void basic_error(int line, const char *message) {
    fflush(stdout);
    printf("error in line %d: %s\n", line, message);
    exit(1);
}

int main(int argc, char **argv) {
    static struct program program;
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!file) {
        fprintf(stderr, "usage: basic PROGRAM\n");
        return 2;
    }
    load_program(&program, file);
    fclose(file);
    run_program(&program);
    for (int i = 0; i < program.count; i++)
        free(program.lines[i]);
    return 0;
}
