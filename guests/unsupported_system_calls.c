// Calls an older kernel lacks: either they work or they say ENOSYS or EPERM.
#include "verdict.h"
#include <sys/syscall.h>

static int polite(long result) { return result >= 0 || errno == ENOSYS || errno == EPERM || errno == EFAULT || errno == EINVAL || errno == EACCES; }

int main(void)
{
    char parameters[256] = {0};
    CHECK(polite(syscall(425, 1, parameters)));             // io_uring_setup
    CHECK(polite(syscall(SYS_userfaultfd, 0)));
    CHECK(polite(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0)));
    CHECK(polite(syscall(SYS_bpf, 99, NULL, 0)));
    CHECK(polite(syscall(SYS_modify_ldt, 0, parameters, 16)));
    CHECK(syscall(999) == -1 && errno == ENOSYS);
    CHECK(syscall(-1L) == -1 && errno == ENOSYS);
    CHECK(syscall(SYS_tuxcall) == -1 && errno == ENOSYS);
    return verdict();
}
