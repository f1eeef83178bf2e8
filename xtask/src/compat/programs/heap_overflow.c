#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    char *p = malloc(10);
    memset(p, 'a', 10);
    printf("%c\n", p[9]);
    fflush(stdout);
    int r = p[10 + argc - 1];
    free(p);
    return r;
}
