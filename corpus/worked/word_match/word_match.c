#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include <unistd.h>

static int match_words;

/* Where the word is in the text, or -1. */
static long find(const char *text, const char *word, long from) {
    size_t length = strlen(word);
    for (long start = from;; start++) {
        const char *found = strstr(text + start, word);
        if (!found)
            return -1;
        start = found - text;
        if (match_words) { /* 1 */
            int left = start > 0 && isalnum((unsigned char)text[start - 1]);
            int right = isalnum((unsigned char)text[start + (long)length]);
            if (left || right)
                return -1; /* 3 */
        }
        return start;
    }
}

int main(int argc, char **argv) {
    char line[256];
    int letter, lines = 0;
    while ((letter = getopt(argc, argv, "w")) != -1) /* 7 */
        if (letter == 'w')
            match_words = 1; /* 9 */
    if (optind >= argc)
        return 2;
    while (fgets(line, sizeof line, stdin)) {
        long offset = find(line, argv[optind], 0); /* 4 */
        if (offset != -1) { /* 5 */
            printf("%s", line);
            lines++;
        }
    }
    return lines ? 0 : 1;
}
