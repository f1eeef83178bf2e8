#include <stdio.h>

int main(int argc, char **argv) {
    (void)argv;
    if (argc < 3) /* 1 */
        printf("Too few\n"); /* 2 */
    else
        printf("Okay\n"); /* 4 */
}
