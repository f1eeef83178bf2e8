#include <stdio.h>
#include <stdlib.h>

static int next(int x, int y) {
    if (y == 0) /* 2 */
        return 0;
    return x + 1; /* 3 */
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    printf("%d\n", next(atoi(argv[1]), atoi(argv[2])));
}
