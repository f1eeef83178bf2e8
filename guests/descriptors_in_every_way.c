// Duplicates, ranges, flags and owners of descriptors, ioctls on files, pipes,
// sockets and terminals, and the engine's own descriptors, which are nobody's.
#include "verdict.h"
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>

static void duplicates(void)
{
    int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(dup3(file, 50, O_CLOEXEC) == 50 && fcntl(50, F_GETFD) == FD_CLOEXEC);
    CHECK(dup3(file, file, 0) == -1 && errno == EINVAL);
    CHECK(dup2(file, file) == file && dup2(999, 51) == -1 && errno == EBADF);
    CHECK(fcntl(file, F_DUPFD_CLOEXEC, 60) == 60 && fcntl(file, F_DUPFD, 60) == 61);
    CHECK(fcntl(60, F_GETFD) == FD_CLOEXEC && fcntl(61, F_GETFD) == 0);
    CHECK(fcntl(61, F_SETFD, FD_CLOEXEC) == 0 && fcntl(61, F_GETFD) == FD_CLOEXEC);
    CHECK((fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR);
    CHECK(fcntl(file, F_SETFL, O_APPEND | O_NONBLOCK) == 0);
    CHECK((fcntl(60, F_GETFL) & (O_APPEND | O_NONBLOCK)) == (O_APPEND | O_NONBLOCK));
    CHECK(write(60, "shared offset", 13) == 13 && lseek(file, 0, SEEK_CUR) == 13);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5};
    CHECK(fcntl(file, F_SETLK, &lock) == 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK);
    CHECK(fcntl(file, F_SETOWN, getpid()) == 0 && fcntl(file, F_GETOWN) == getpid());
    struct f_owner_ex owner = {F_OWNER_PID, getpid()}, got;
    CHECK(fcntl(file, F_SETOWN_EX, &owner) == 0 && fcntl(file, F_GETOWN_EX, &got) == 0 && got.pid == getpid());
    CHECK(fcntl(file, F_GETSIG) == 0);
    CHECK(syscall(SYS_close_range, 60, 61, 4) == 0);  // CLOSE_RANGE_CLOEXEC
    CHECK(syscall(SYS_close_range, 50, 61, 0) == 0 && fcntl(60, F_GETFD) == -1);
    CHECK(syscall(SYS_close_range, 9, 3, 0) == -1 && errno == EINVAL);
    CHECK(fcntl(0, F_DUPFD, -1) == -1 && errno == EINVAL);
    int pipes[2];
    CHECK(pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0 && fcntl(pipes[0], F_GETFD) == FD_CLOEXEC);
    CHECK(fcntl(pipes[1], F_SETPIPE_SZ, 8192) == 8192 && fcntl(pipes[0], F_GETPIPE_SZ) == 8192);
    close(pipes[0]), close(pipes[1]), close(file);
}

static void ioctls(void)
{
    int pipes[2], value = -1;
    CHECK(pipe(pipes) == 0 && write(pipes[1], "12345", 5) == 5);
    CHECK(ioctl(pipes[0], FIONREAD, &value) == 0 && value == 5);
    int on = 1;
    CHECK(ioctl(pipes[0], FIONBIO, &on) == 0 && fcntl(pipes[0], F_GETFL) & O_NONBLOCK);
    CHECK(ioctl(pipes[0], FIOCLEX) == 0 && fcntl(pipes[0], F_GETFD) == FD_CLOEXEC);
    CHECK(ioctl(pipes[0], FIONCLEX) == 0 && fcntl(pipes[0], F_GETFD) == 0);
    CHECK(ioctl(pipes[0], TCGETS, &value) == -1 && errno == ENOTTY && !isatty(pipes[0]));
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "abc", 3) == 3);
    CHECK(ioctl(pair[1], FIONREAD, &value) == 0 && value == 3);
    CHECK(ioctl(pair[0], TIOCOUTQ, &value) == 0);
    CHECK(ioctl(999, FIONREAD, &value) == -1 && errno == EBADF);
    CHECK(ioctl(pair[1], FIONREAD, (void *)8) == -1 && errno == EFAULT);
    for (int i = 0; i < 2; i++) close(pipes[i]), close(pair[i]);
}

static void terminals(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0) {
        puts("no terminals here");
        return;
    }
    CHECK(grantpt(master) == 0 && unlockpt(master) == 0);
    char name[64];
    CHECK(ptsname_r(master, name, sizeof name) == 0);
    int slave = open(name, O_RDWR | O_NOCTTY);
    CHECK(slave >= 0 && isatty(slave));
    struct termios modes;
    CHECK(tcgetattr(slave, &modes) == 0);
    cfmakeraw(&modes);
    CHECK(tcsetattr(slave, TCSANOW, &modes) == 0 && tcgetattr(slave, &modes) == 0 && !(modes.c_lflag & ICANON));
    struct winsize size = {24, 80, 0, 0}, got = {0};
    CHECK(ioctl(master, TIOCSWINSZ, &size) == 0 && ioctl(slave, TIOCGWINSZ, &got) == 0 && got.ws_col == 80);
    int value = 0;
    CHECK(write(master, "typed", 5) == 5 && poll(&(struct pollfd){slave, POLLIN, 0}, 1, 5000) == 1);
    CHECK(ioctl(slave, FIONREAD, &value) == 0 && value == 5);
    char typed[8] = {0};
    CHECK(read(slave, typed, 8) == 5 && !strcmp(typed, "typed"));
    CHECK(write(slave, "shown\n", 6) == 6 && read(master, typed, 8) == 6);
    CHECK(tcflush(slave, TCIOFLUSH) == 0 && ioctl(slave, TIOCEXCL) == 0 && ioctl(slave, TIOCNXCL) == 0);
    CHECK(ioctl(slave, TIOCGETD, &value) == 0 && value == 0);
    pid_t group;
    CHECK(ioctl(slave, TIOCGPGRP, &group) == -1 && errno == ENOTTY);
    int packet = 1;
    CHECK(ioctl(master, TIOCPKT, &packet) == 0);
    puts("terminal");
    close(slave), close(master);
}

// Numbers around the engine's descriptors behave as closed ones.
static void nobody_elses(void)
{
    int open_ones = 0;
    for (int n = 3; n < 20000; n++) {
        struct stat stat;
        int value;
        open_ones += fcntl(n, F_GETFD) != -1 || fstat(n, &stat) != -1 || read(n, NULL, 0) != -1
            || ioctl(n, FIONREAD, &value) != -1 || lseek(n, 0, SEEK_CUR) != -1 || dup2(n, 30) != -1;
        CHECK(errno == EBADF);
    }
    CHECK(open_ones == 0);
    int poller = epoll_create1(0);
    for (int n = 900; n < 5000; n++) {
        struct epoll_event event = {EPOLLIN, {.fd = n}};
        CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, n, &event) == -1 && errno == EBADF);
        char path[64], target[64];
        sprintf(path, "/proc/self/fd/%d", n);
        CHECK(readlink(path, target, sizeof target) == -1 && errno == ENOENT);
        CHECK(open(path, O_RDONLY) == -1 && access(path, F_OK) == -1 && errno == ENOENT);
        CHECK(fchmod(n, 0600) == -1 && errno == EBADF && ftruncate(n, 0) == -1 && fsync(n) == -1);
        CHECK(sendfile64(1, n, NULL, 1) == -1 && errno == EBADF);
        CHECK(splice(n, NULL, poller, NULL, 1, 0) == -1 && errno == EBADF);
        CHECK(openat(n, "x", O_RDONLY) == -1 && errno == EBADF);
        CHECK(fstatat(n, "x", &(struct stat){0}, 0) == -1 && errno == EBADF);
        CHECK(pread(n, path, 1, 0) == -1 && pwrite(n, path, 1, 0) == -1 && errno == EBADF);
    }
    puts("no descriptors but ours");
    close(poller);
}

static void more_vectors(void)
{
    int file = open("vectors", O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct iovec out[2] = {{"one", 3}, {"two", 3}};
    CHECK(pwritev2(file, out, 2, 4, RWF_SYNC) == 6 && pwritev2(file, out, 1, -1, 0) == 3);
    char a[4] = {0}, b[4] = {0};
    struct iovec in[2] = {{a, 3}, {b, 3}};
    CHECK(preadv2(file, in, 2, 4, 0) == 6 && !strcmp(a, "one") && !strcmp(b, "two"));
    CHECK(lseek(file, 0, SEEK_CUR) == 3 && preadv2(file, in, 1, -1, 0) == 3 && lseek(file, 0, SEEK_CUR) == 6);
    CHECK(preadv2(file, in, 1, 0, 0x4000) == -1 && errno == EOPNOTSUPP);
    close(file);
}

int main(void)
{
    for (int n = 3; n < 20000; n++) close(n);
    duplicates();
    ioctls();
    terminals();
    nobody_elses();
    more_vectors();
    return verdict();
}
