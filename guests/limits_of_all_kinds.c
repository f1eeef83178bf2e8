// Resource limits as the program sets them for itself: of memory, of files, of
// descriptors beyond what it was started with, of the stack.
#include "verdict.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

static struct rlimit of(int resource)
{
    struct rlimit limit;
    CHECK(getrlimit(resource, &limit) == 0);
    return limit;
}

static int set_soft(int resource, rlim_t soft)
{
    struct rlimit limit = of(resource);
    limit.rlim_cur = soft;
    return setrlimit(resource, &limit);
}

static volatile sig_atomic_t too_large;
static void note(int number) { (void)number; too_large++; }

static void size_of_files(void)
{
    int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    rlim_t before = of(RLIMIT_FSIZE).rlim_cur;
    signal(SIGXFSZ, note);
    CHECK(set_soft(RLIMIT_FSIZE, 10) == 0);
    CHECK(write(file, "0123456789abcdef", 16) == 10);
    CHECK(write(file, "x", 1) == -1 && errno == EFBIG && too_large == 1);
    CHECK(ftruncate(file, 11) == -1 && errno == EFBIG && too_large == 2);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(pwrite(file, "x", 1, 10) == -1 && errno == EFBIG);
    CHECK(lseek(file, 0, SEEK_END) == 10);
    CHECK(set_soft(RLIMIT_FSIZE, before) == 0 && write(file, "more", 4) == 4);
    close(file);
}

static void descriptors(void)
{
    struct rlimit limit = of(RLIMIT_NOFILE);
    rlim_t most = limit.rlim_max > 5000 ? 5000 : limit.rlim_max;
    CHECK(set_soft(RLIMIT_NOFILE, most) == 0 && of(RLIMIT_NOFILE).rlim_cur == most);
    int last = 0;
    // Machines differ in what they allow; every one allows 1,000.
    int high = most > 3600 ? 3500 : 900;
    CHECK((last = fcntl(0, F_DUPFD, high)) == high);
    CHECK(dup2(0, (int)most - 1) == (int)most - 1 && dup2(0, (int)most) == -1 && errno == EBADF);
    CHECK(fcntl(0, F_DUPFD, (int)most) == -1 && errno == EINVAL);
    // More than most programs ever have, one after another.
    for (int n = 0; most == 5000 && n < 4300; n++) CHECK((last = dup(0)) >= 0);
    CHECK(most < 5000 || (last >= 4302 && write(last, "", 0) <= 0));
    for (int n = 3; n < 5000; n++) close(n);
    CHECK(set_soft(RLIMIT_NOFILE, 4) == 0);
    int pair[2] = {77, 78};
    CHECK(pipe(pair) == -1 && errno == EMFILE && pair[0] == 77 && pair[1] == 78);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1 && errno == EMFILE && pair[0] == 77);
    CHECK(open("file", O_RDONLY) == 3 && open("file", O_RDONLY) == -1 && errno == EMFILE);
    CHECK(set_soft(RLIMIT_NOFILE, 64) == 0 && pipe(pair) == 0 && pair[0] == 4 && pair[1] == 5);
    struct rlimit wrong = {10, 5};
    CHECK(setrlimit(RLIMIT_NOFILE, &wrong) == -1 && errno == EINVAL);
}

static void memory(void)
{
    struct rlimit before = of(RLIMIT_AS), tight = {64 << 20, before.rlim_max};
    CHECK(prlimit(getpid(), RLIMIT_AS, &tight, NULL) == 0 && of(RLIMIT_AS).rlim_cur == 64 << 20);
    CHECK(mmap(NULL, 128 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(malloc(100 << 20) == NULL);
    char *small = malloc(1 << 20);
    CHECK(small);
    memset(small, 1, 1 << 20);
    free(small);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    char *large = malloc(100 << 20);
    CHECK(large);
    free(large);
    struct rlimit data = of(RLIMIT_DATA), little = {1 << 20, data.rlim_max};
    CHECK(setrlimit(RLIMIT_DATA, &little) == 0);
    CHECK(mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    CHECK(setrlimit(RLIMIT_DATA, &data) == 0);
}

static int deep(int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth == 0 ? 0 : 1 + deep(depth - 1) + room[0] * 0;
}

static void stack_and_others(void)
{
    struct rlimit stack = of(RLIMIT_STACK);
    if (stack.rlim_max >= 64 << 20) {
        CHECK(set_soft(RLIMIT_STACK, 64 << 20) == 0);
        CHECK(deep(5000) == 5000);
    }
    CHECK(set_soft(RLIMIT_CORE, 0) == 0 && of(RLIMIT_CORE).rlim_cur == 0);
    struct rlimit pending;
    CHECK(prlimit(0, RLIMIT_SIGPENDING, NULL, &pending) == 0 && pending.rlim_cur > 0);
    CHECK(getrlimit(99, &pending) == -1 && errno == EINVAL);
    CHECK(prlimit(0, RLIMIT_NOFILE, NULL, (void *)8) == -1 && errno == EFAULT);
    // Lowering a hard limit; raising it again needs a privilege that we may have.
    struct rlimit limit = of(RLIMIT_NOFILE), lower = {32, 48}, higher = {32, limit.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &lower) == 0);
    int raised = setrlimit(RLIMIT_NOFILE, &higher) == 0;
    CHECK(raised || errno == EPERM);
    printf("hard limit raised: %s\n", raised ? "yes" : "no");
    CHECK(of(RLIMIT_NOFILE).rlim_max == (raised ? limit.rlim_max : 48));
}

int main(void)
{
    size_of_files();
    descriptors();
    memory();
    stack_and_others();
    return verdict();
}
