#include <stdio.h>
#include <stdlib.h>

struct record {
    int f;
};

int *x, *y, *numbers;
struct record **records;

static int read_int(void) {
    int value = 0;
    if (scanf("%d", &value) != 1)
        exit(2);
    return value;
}

int main(void) {
    x = calloc(2, sizeof *x);
    y = calloc(2, sizeof *y);
    numbers = calloc(100, sizeof *numbers);
    records = calloc(100, sizeof *records);
    for (int i = 0; i < 100; i++)
        records[i] = calloc(1, sizeof **records);
    int *p1 = &x[1]; /* 1 */
    int *p2 = &x[0]; /* 2 */
    int *q1 = &y[1]; /* 3 */
    int *q2 = &x[0]; /* 4 */
    *p1 = read_int(); /* 5 */
    *p2 = read_int(); /* 6 */
    *q1 = read_int(); /* 7 */
    *q2 = read_int(); /* 8 */
    int a = *p1 + *p2; /* 9 */
    int b = *q1 + *q2; /* 10 */
    int c = a + b + 1; /* 11 */
    numbers[c] = 0; /* 12 */
    records[*p2]->f = 0; /* 13 */
    free(p2); /* 14 */
    free(q2); /* 15 */
    printf("done\n");
}
