#include <stdio.h>
#include <stdlib.h>

enum { END_POSITION = -1, ACTION_POSITION = 0 };

int main(void) {
    static int base[16], check[32], next[32];
    int last, end;
    if (scanf("%d %d", &last, &end) != 2 || last < 0 || last > 12 || end > 24)
        return 2;
    for (int i = 0; i <= end; i++) {
        check[i] = i + 1;
        next[i] = 2 * i;
    }
    for (int i = 0; i <= last; i++)
        if (scanf("%d", &base[i]) != 1 || base[i] < 1 || base[i] > end)
            return 2;
    base[last + 1] = end;
    for (int i = 0; i <= last; i++) { /* 2667 */
        int offset = base[i + 1]; /* 2673 */
        check[offset] = END_POSITION; /* 2677 */
        check[offset - 1] = ACTION_POSITION; /* 2681 */
    }
    for (int i = 0; i <= end; i++) { /* 2684 */
        if (check[i] == END_POSITION)
            printf("end");
        else if (check[i] == ACTION_POSITION) /* 2690 */
            printf("0"); /* 2692 */
        else
            printf("%d", check[i]); /* 2696 */
        printf(" %d\n", next[i]);
    }
}
