// getcwd, chdir, fchdir, mkdir, getdents, *at calls, relative paths, umask.
#include "verdict.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

int main(void)
{
    char start[PATH_MAX], now[PATH_MAX];
    CHECK(getcwd(start, sizeof start));
    umask(022);
    CHECK(mkdir("folder", 0777) == 0 && mkdir("folder/inner", 0700) == 0);
    CHECK(mkdir("folder", 0777) == -1 && errno == EEXIST);
    CHECK(chdir("folder/inner") == 0 && getcwd(now, sizeof now));
    CHECK(!strcmp(now + strlen(start), "/folder/inner"));
    int here = open(".", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "entry%03d", i);
        int file = openat(here, name, O_CREAT | O_WRONLY | O_EXCL, 0666);
        CHECK(file >= 0);
        close(file);
    }
    CHECK(chdir("..") == 0 && fchdir(here) == 0 && chdir(start) == 0);
    struct dirent **entries;
    int count = scandir("folder/inner", &entries, NULL, by_name);
    printf("%d %s %s\n", count, entries[2]->d_name, entries[count - 1]->d_name);
    CHECK(entries[2]->d_type == DT_REG || entries[2]->d_type == DT_UNKNOWN);
    for (int i = 2; i < count; i++) CHECK(unlinkat(here, entries[i]->d_name, 0) == 0);
    struct stat status;
    CHECK(fstatat(here, ".", &status, 0) == 0 && S_ISDIR(status.st_mode));
    CHECK(stat("folder", &status) == 0 && (status.st_mode & 0777) == 0755);
    CHECK(rmdir("folder") == -1 && errno == ENOTEMPTY);
    CHECK(rmdir("folder/inner") == 0 && rmdir("folder") == 0);
    CHECK(umask(0) == 022);
    char buffer[3];
    CHECK(getcwd(buffer, sizeof buffer) == NULL && errno == ERANGE);
    CHECK(chdir("nonexistent/path") == -1 && errno == ENOENT);
    return verdict();
}
