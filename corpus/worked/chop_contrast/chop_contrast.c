#include <stdio.h>

int main(void) {
    int x, y;
    x = 1; /* 1 */
    y = x + 1; /* 2 */
    if (x >= 0) /* 3 */
        printf("%d\n", y); /* 4 */
}
