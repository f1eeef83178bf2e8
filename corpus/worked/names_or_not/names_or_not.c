#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int with_names, no_names, out_file;

static void print_line(const char *name, const char *line) {
    if (out_file) /* 7 */
        printf("%s:", name); /* 8 */
    printf("%s", line);
}

int main(int argc, char **argv) {
    char line[256];
    int letter;
    while ((letter = getopt(argc, argv, "Hh")) != -1) { /* 1 */
        switch (letter) {
        case 'H':
            with_names = 1; /* 2 */
            break;
        case 'h':
            no_names = 1; /* 3 */
            break;
        }
    }
    if ((argc - optind > 1 && !no_names) || with_names) /* 5 */
        out_file = 1; /* 6 */
    for (; optind < argc; optind++) {
        FILE *file = fopen(argv[optind], "r");
        if (!file)
            return 2;
        while (fgets(line, sizeof line, file))
            print_line(argv[optind], line);
        fclose(file);
    }
}
