#include <stdio.h>

int main(void) {
    int n = 0;
    for (int i = 0; i < 2; i++) /* 1 */
        n += 2; /* 2 */
    printf("%d\n", n); /* 4 */
}
