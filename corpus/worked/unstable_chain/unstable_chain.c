#include <stdio.h>

int main(void) {
    int x;
    x = 1; /* 1 */
    if (x == 0) /* 2 */
        x = 5; /* 3 */
    ; /* 4 */
    printf("%d\n", x); /* 5 */
}
