#include <stdio.h>

enum tag { OTHER, BODY };

static int parse(const char *name) {
    int see_body = 0; /* 3 */
    const char *word = "body"; /* 4 */
    int order = 0;
    int i = 0; /* 6 */
    char c = name[i]; /* 7 */
    while (c == word[i]) { /* 8 */
        if (c == '\0') { /* 10 */
            order = 0; /* 12 */
            break;
        }
        i++; /* 15 */
        c = name[i]; /* 16 */
    }
    if (c != word[i]) { /* 18 */
        if (c > word[i]) /* 20 */
            order = 1; /* 21 */
        else
            order = -1; /* 23 */
    }
    enum tag tag = OTHER; /* 25 */
    if (order == 0) /* 26 */
        tag = BODY; /* 27 */
    if (tag == BODY) /* 28 */
        see_body = 1; /* 29 */
    return see_body; /* 30 */
}

int main(void) {
    char name[32];
    if (scanf("%31s", name) != 1)
        return 2;
    printf("%d\n", parse(name));
}
