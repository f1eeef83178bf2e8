#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int data[100]; /* 1 */
    int positive = 0; /* 2 */
    int negative = 0; /* 3 */
    int number;
    int i;
    int count = 0; /* 6 */
    while (!feof(stdin)) { /* 7 */
        if (count >= 100) /* 9 */
            break;
        if (scanf("%d", &number) != 1) /* 11 */
            break;
        data[count] = number; /* 12 */
        count++; /* 13 */
    }
    i = 0; /* 15 */
    while (i < count) { /* 16 */
        number = data[i]; /* 18 */
        if (number == 0) /* 19 */
            break;
        if (number > 0) /* 21 */
            positive += number; /* 22 */
        else
            negative += number; /* 24 */
        i++; /* 25 */
    }
    printf("%d\n", positive); /* 27 */
    printf("%d\n", negative); /* 28 */
}
