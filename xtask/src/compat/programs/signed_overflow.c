#include <stdio.h>
#include <limits.h>
int main(int argc, char **argv)
{
    int x = INT_MAX;
    x += argc;
    printf("%d\n", x);
    int shift = 31 + argc;
    printf("%d\n", 1 << shift);
    return 0;
}
