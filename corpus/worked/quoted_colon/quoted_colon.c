#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the first `stop` in the text that no backslash quotes, and removes the quoting ones. */
static char *find_unquoted(char *text, char stop) {
    char *p = text;
    for (;;) {
        while (*p != '\0' && *p != stop)
            p++;
        if (*p == '\0')
            return NULL;
        if (p > text && p[-1] == '\\') {
            memmove(p - 1, p, strlen(p) + 1);
        }
        return p;
    }
}

int main(void) {
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        char *colon = find_unquoted(line, ':');
        if (!colon) {
            printf("no rule: %s\n", line);
            continue;
        }
        *colon = '\0';
        printf("target [%s] needs [%s]\n", line, colon + 1);
    }
}
