#include <stdio.h>

int main(void) {
    int values[2];
    for (int i = 0; i < 2; i++) /* 1 */
        values[i] = 0; /* 2 */
    printf("%d\n", values[1]); /* 4 */
}
