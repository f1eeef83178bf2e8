// Reads standard input in pieces of growing size, then through stdio, to its end.
#include "verdict.h"

int main(void)
{
    char buffer[256];
    unsigned hash = 2166136261u;
    long total = 0;
    for (size_t piece = 1; piece <= 16; piece *= 2) {
        size_t done = 0;
        while (done < piece) {
            ssize_t n = read(0, buffer + done, piece - done);
            CHECK(n > 0);
            done += (size_t)n;
        }
        for (size_t i = 0; i < piece; i++) hash = (hash ^ (unsigned char)buffer[i]) * 16777619u;
        total += (long)piece;
    }
    int lines = 0;
    while (fgets(buffer, sizeof buffer, stdin)) {
        lines++, total += (long)strlen(buffer);
        for (char *at = buffer; *at; at++) hash = (hash ^ (unsigned char)*at) * 16777619u;
    }
    CHECK(feof(stdin));
    printf("%ld bytes %d lines %08x\n", total, lines, hash);
    return verdict();
}
