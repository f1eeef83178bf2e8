#include <stdio.h>

int main(void) {
    int x, y, s, t;
    x = 1; /* 1 */
    y = x << 1; /* 2 */
    if (x > 0) /* 3 */
        t = x << 2; /* 4 */
    else
        t = 0; /* 5 */
    s = y << 1; /* 6 */
    printf("%d\n", s + t > 0); /* 7 */
}
