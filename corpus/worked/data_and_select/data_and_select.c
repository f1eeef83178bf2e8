#include <stdio.h>
#include <stdlib.h>

static int f(int a, int b) {
    return a + b;
}

static int g(int a, int b) {
    return a - b;
}

int main(void) {
    int a, b, c, d, x, y;
    if (scanf("%d %d", &a, &b) != 2 || b == 0) /* 1 */
        return 2;
    c = f(a, b); /* 2 */
    if (c < 5) /* 3 */
        x = a + b; /* 4 */
    else
        x = a - b; /* 5 */
    d = g(a, b); /* 7 */
    if (d < 5) /* 8 */
        y = a * b; /* 9 */
    else
        y = a / b; /* 10 */
    printf("%d\n", x + y); /* 12 */
}
