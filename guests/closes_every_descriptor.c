// A daemon's opening moves: close everything it might have inherited, take over
// high numbers, raise and lower limits. Nothing but its own may break.
#include "verdict.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

int main(void)
{
    int closed = 0;
    for (int n = 3; n < 70000; n++) closed += close(n) == 0;
    printf("closed %d\n", closed);
#ifdef SYS_close_range
    long result = syscall(SYS_close_range, 3, ~0U, 0);
    CHECK(result == 0 || errno == ENOSYS);
#endif
    int file = open("file", O_RDWR | O_CREAT, 0600);
    CHECK(file == 3);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    int highest = limit.rlim_cur > 4096 ? 4096 : (int)limit.rlim_cur;
    for (int n = 500; n < highest; n++) CHECK(dup2(file, n) == n);
    CHECK(write(highest - 1, "high", 4) == 4);
    for (int n = 500; n < highest; n++) CHECK(close(n) == 0);
    CHECK(close(highest - 1) == -1 && errno == EBADF);
    CHECK(dup2(file, (int)limit.rlim_cur) == -1 && errno == EBADF);
    CHECK(fcntl(file, F_DUPFD, 300) == 300);
    limit.rlim_cur = 20;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 20);
    int opened = 0;
    while (dup(file) >= 0) opened++;
    CHECK(errno == EMFILE);
    printf("opened %d more\n", opened);
    CHECK(fcntl(300, F_GETFD) == 0);
    CHECK(sysconf(_SC_OPEN_MAX) == 20);
    return verdict();
}
