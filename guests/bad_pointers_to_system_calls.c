// System calls given bad pointers, descriptors and sizes fail as the kernel's do.
#include "verdict.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int main(void)
{
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY), file = open("f", O_RDWR | O_CREAT, 0600);
    CHECK(read(zero, (void *)1, 10) == -1 && errno == EFAULT);
    CHECK(write(file, (void *)1, 10) == -1 && errno == EFAULT);
    CHECK(read(77, page, 10) == -1 && errno == EBADF);
    CHECK(open((char *)1, O_RDONLY) == -1 && errno == EFAULT);
    memset(page, 'a', 4096);
    CHECK(open(page, O_RDONLY) == -1 && (errno == EFAULT || errno == ENAMETOOLONG));
    CHECK(write(file, page + 4000, 200) == 96 || errno == EFAULT);
    CHECK(syscall(SYS_stat, "f", (void *)1) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_clock_gettime, 0, (void *)1) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, (void *)1, NULL, 8) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 4) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_pipe2, (void *)1, 0) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_getcwd, (void *)1, 4096) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_nanosleep, (void *)1, NULL) == -1 && errno == EFAULT);
    CHECK(lseek(file, -5, SEEK_SET) == -1 && errno == EINVAL);
    CHECK(write(null, page, 100) == 100 && read(zero, page, 100) == 100 && page[50] == 0);
    CHECK(kill(getpid(), 999) == -1 && errno == EINVAL);
    return verdict();
}
