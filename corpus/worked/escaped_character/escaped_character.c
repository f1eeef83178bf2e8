#include <stdio.h>
#include <string.h>

static char escape(const char *text, int *i) {
    char result;
    if (text[*i] != '@') {
        result = text[*i];
    } else if (text[*i + 1] == '\0') {
        result = '\0'; /* 1 */
    } else {
        (*i)++;
        result = text[*i] == 'n' ? '\n' : text[*i];
    }
    return result; /* 2 */
}

static void add(char c, char *set, int *j) {
    set[*j] = c; /* 3 */
    (*j)++;
}

static void make_replacement(const char *argument, char *replacement) {
    int j = 0;
    for (int i = 0; argument[i] != '\0' && j < 90; i++) {
        char c = escape(argument, &i); /* 4 */
        add(c, replacement, &j); /* 5 */
    }
    add('>', replacement, &j);
    add('\0', replacement, &j);
}

static void put(const char *replacement) {
    int i = 0;
    while (replacement[i] != '\0') { /* 6 */
        putchar(replacement[i]); /* 7 */
        i++;
    }
    putchar('\n');
}

int main(int argc, char **argv) {
    char replacement[100];
    if (argc < 2 || strlen(argv[1]) > 80)
        return 2;
    make_replacement(argv[1], replacement); /* 8 */
    put(replacement); /* 9 */
}
