#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int x, y, a;
    if (scanf("%d %d", &x, &y) != 2) /* 1 */
        return 2;
    a = x + y; /* 2 */
    if (x < y) /* 3 */
        printf("%d\n", a); /* 4 */
    else
        printf("%d\n", a + 1); /* 6 */
}
