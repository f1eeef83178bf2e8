#include <stdio.h>
#include <stdlib.h>

static int thresholds[4];

int main(int argc, char **argv) {
    int layer = argc > 1 ? atoi(argv[1]) & 3 : 0;
    thresholds[0] = 400; /* 1 */
    thresholds[1] = 550; /* 2 */
    thresholds[2] = 640; /* 3 */
    thresholds[3] = 740; /* 4 */
    if (thresholds[layer] < 525) /* 5 */
        printf("0\n"); /* 6 */
    else
        printf("1\n"); /* 8 */
}
