// /proc/self tells the program about itself: exe, cmdline, comm, status, environ,
// stat, cwd, task; also by pid and thread-self.
#include "verdict.h"
#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <sys/prctl.h>

static char text[65536];
static size_t slurp(const char *path)
{
    FILE *file = fopen(path, "r");
    CHECK(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = 0;
    fclose(file);
    return n;
}

int main(int argc, char **argv)
{
    char path[PATH_MAX], own[PATH_MAX], name[16], by_pid[64];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(n > 0);
    path[n] = 0;
    CHECK(realpath(argv[0], own) && !strcmp(own, path));
    snprintf(by_pid, sizeof by_pid, "/proc/%d/exe", getpid());
    CHECK(readlink(by_pid, path, sizeof path) == n && !strncmp(own, path, (size_t)n));
    n = (ssize_t)slurp("/proc/self/cmdline");
    CHECK(!strcmp(text, argv[0]) && argc == 3);
    CHECK((size_t)n == strlen(argv[0]) + strlen(argv[1]) + strlen(argv[2]) + 3);
    CHECK(!strcmp(text + strlen(argv[0]) + 1, argv[1]));
    snprintf(name, sizeof name, "%s", basename(argv[0]));
    slurp("/proc/self/comm");
    CHECK(!strncmp(text, name, strlen(name)) && text[strlen(name)] == '\n');
    slurp("/proc/self/status");
    CHECK(!strncmp(text, "Name:\t", 6) && !strncmp(text + 6, name, strlen(name)));
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\nPid:\t%d\n", getpid());
    CHECK(strstr(text, wanted));
    CHECK(strstr(text, "\nThreads:\t1\n"));
    CHECK(strstr(text, "\nTracerPid:\t0\n"));
    slurp("/proc/self/stat");
    CHECK(atoi(text) == getpid() && strchr(text, '(') && !strncmp(strchr(text, '(') + 1, name, strlen(name)));
    n = (ssize_t)slurp("/proc/self/environ");
    CHECK(n > 0 && memmem(text, (size_t)n, "GUEST_MARK=here", 16));
    n = readlink("/proc/self/cwd", path, sizeof path - 1);
    path[n] = 0;
    CHECK(getcwd(own, sizeof own) && !strcmp(own, path));
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(tasks));)
        if (entry->d_name[0] != '.') {
            count++;
            CHECK(atoi(entry->d_name) == getpid());
        }
    CHECK(count == 1);
    CHECK(prctl(PR_SET_NAME, "renamed") == 0);
    slurp("/proc/thread-self/comm");
    CHECK(!strcmp(text, "renamed\n"));
    return verdict();
}
