#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SUFFIX = 30 };

int force;

static char *lower(char *s) {
    for (char *t = s; *t; t++) /* 12 */
        *t = (char)tolower((unsigned char)*t); /* 13 */
    return s; /* 14 */
}

static const char *get_suffix(const char *name) {
    static char buffer[MAX_SUFFIX + 1];
    if (strlen(name) <= MAX_SUFFIX) /* 1 */
        strcpy(buffer, name); /* 2 */
    else
        strcpy(buffer, ""); /* 4 */
    lower(buffer); /* 5 */
    size_t length = strlen(buffer); /* 6 */
    if (length > strlen(".gz") && strcmp(buffer + length - 3, ".gz") == 0) /* 8 */
        return ".gz"; /* 9 */
    return NULL; /* 11 */
}

static int make_name(const char *name) {
    const char *suffix = get_suffix(name); /* 15 */
    if (suffix != NULL) { /* 17 */
        printf("%s already has %s suffix -- unchanged\n", name, suffix); /* 18 */
        return 0;
    }
    printf("%s.gz\n", name);
    return 1;
}

int main(int argc, char **argv) {
    int i = 1;
    if (i < argc && strcmp(argv[i], "-f") == 0) {
        force = 1;
        i++;
    }
    if (i >= argc)
        return 2;
    return make_name(argv[i]) ? 0 : 1;
}
