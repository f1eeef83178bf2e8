#include <stdio.h>

int main(void) {
    int i = 0;
    while (i != 1000)
        i = i + 1;
    printf("%d\n", i);
}
