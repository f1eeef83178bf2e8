#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int x, y, z;
    if (scanf("%d %d", &x, &y) != 2) /* 1 */
        return 2;
    z = x + 2; /* 2 */
    if (y > 0)
        z = z * y; /* 3 */
    else
        z = z * 3; /* 4 */
    printf("%d\n", z); /* 5 */
}
