#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int x, y, z, t = 0;
    if (scanf("%d %d", &y, &x) != 2) /* 0, 1 */
        return 2;
    z = y * 4; /* 2 */
    x = x + 1; /* 3 */
    if (x > y) { /* 4 */
        x = x * 2; /* 5 */
        t = z % 2; /* 6 */
        z = z + 1; /* 7 */
    }
    printf("%d\n", x); /* 8 */
    printf("%d\n", t); /* 9 */
    printf("%d\n", z); /* 10 */
}
