#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int reentrant, more;

static void make_tables(void) {
    if (!reentrant) { /* 1813 */
        printf("extern int yylineno;\n");
    } else {
        if (more)
            printf("static int yy_prev_more_offset = 0;\n"); /* 1816 */
        printf("#define yylineno state->line\n");
    }
}

int main(int argc, char **argv) {
    int letter;
    while ((letter = getopt(argc, argv, "rm")) != -1) {
        if (letter == 'r')
            reentrant = 1;
        else if (letter == 'm')
            more = 1;
    }
    make_tables();
}
