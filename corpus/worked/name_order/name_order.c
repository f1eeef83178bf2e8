#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int ignore_case;

static int compare_names(const char *a, const char *b) {
    if (ignore_case) {
        int r = strcasecmp(a, b); /* 1 */
        if (r) /* 2 */
            return r; /* 3 */
    }
    return strcmp(a, b); /* 4 */
}

static void compare_files(const char *a, const char *b) {
    if (!(a && b)) /* 11 */
        printf("only %s\n", a ? a : b); /* 12 */
    else
        printf("both %s\n", a);
}

/* The names of the second folder follow after `--`; both lists are sorted. */
int main(int argc, char **argv) {
    int i = 1, j;
    if (i < argc && strcmp(argv[i], "-i") == 0) {
        ignore_case = 1;
        i++;
    }
    for (j = i; j < argc && strcmp(argv[j], "--") != 0; j++)
        ;
    int middle = j++;
    while (i < middle || j < argc) { /* 5 */
        char *first = i < middle ? argv[i] : NULL, *second = j < argc ? argv[j] : NULL;
        if (first && second) {
            int order = compare_names(first, second); /* 6 */
            if (order < 0) /* 8 */
                second = NULL; /* 9 */
            else if (order > 0)
                first = NULL;
        }
        compare_files(first, second); /* 10 */
        i += first != NULL;
        j += second != NULL;
    }
}
