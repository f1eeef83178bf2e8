// Standard output is a pipe nobody reads: EPIPE when SIGPIPE is ignored, else death.
#include "verdict.h"
#include <signal.h>

int main(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE);
    fputs("ignored at first\n", stderr);
    signal(SIGPIPE, SIG_DFL);
    dup2(ends[1], 1);
    puts("never seen");
    fflush(stdout);
    fputs("FAILED: alive\n", stderr);
    return 1;
}
