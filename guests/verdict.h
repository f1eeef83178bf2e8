// What every guest shares: a check that names what failed, and the final word.
// A guest prints the same bytes in every native run, so its output is its test.
#ifndef VERDICT_H
#define VERDICT_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            int error = errno;                                                 \
            printf("FAILED line %d: %s (errno %d)\n", __LINE__, #condition,    \
                   error);                                                     \
            fflush(stdout);                                                    \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static inline int verdict(void)
{
    puts("ok");
    return 0;
}
#endif
