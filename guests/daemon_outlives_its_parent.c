// The double fork of daemons: a process without a terminal that goes on after the one
// that was started has ended.
#include "verdict.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

int main(void)
{
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (!child) {
        CHECK(setsid() == getpid());
        if (fork())
            _exit(0);
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
        umask(027);
        int log = open("daemon.log", O_WRONLY | O_CREAT, 0666);
        CHECK(write(log, "at work\n", 8) == 8 && close(log) == 0);
        CHECK(write(ready[1], "r", 1) == 1);
        usleep(200000);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    char c;
    close(ready[1]);
    CHECK(read(ready[0], &c, 1) == 1 && c == 'r');
    return verdict();
}
