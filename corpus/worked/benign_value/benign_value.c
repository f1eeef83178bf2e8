#include <stdio.h>

int main(void) {
    int x, y, s, t, z;
    x = 1; /* 1 */
    y = x >= 0; /* 2 */
    if (x > 0) /* 3 */
        t = x << 2; /* 4 */
    else
        t = -4; /* 5 */
    s = y << 1; /* 6 */
    z = x << 1;
    printf("%d\n", s + t > 0); /* 7 */
    return z < 0;
}
