// /proc/self/fd lists the program's own descriptors and no others.
#include "verdict.h"
#include <dirent.h>
#include <fcntl.h>

static void list(void)
{
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    char seen[64] = {0};
    int others = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        int n = atoi(entry->d_name);
        if (n < 64) seen[n] = 1;
        else others++;
    }
    for (int n = 0; n < 64; n++)
        if (seen[n]) printf("%d%s ", n, n == dirfd(folder) ? "*" : "");
    printf("others %d\n", others);
    closedir(folder);
}

int main(void)
{
    for (int n = 3; n < 64; n++) close(n);
    list();
    int file = open("file", O_CREAT | O_RDWR, 0600);
    CHECK(dup2(file, 40) == 40);
    list();
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ssize_t n = readlink(path, target, sizeof target - 1);
    CHECK(n > 0);
    target[n] = 0;
    CHECK(strcmp(strrchr(target, '/'), "/file") == 0);
    CHECK(write(file, "again", 5) == 5);
    int reopened = open(path, O_RDONLY);
    char buffer[8] = {0};
    CHECK(reopened >= 0 && read(reopened, buffer, 8) == 5 && !strcmp(buffer, "again"));
    CHECK(readlink("/proc/self/fd/999", target, sizeof target) == -1 && errno == ENOENT);
    return verdict();
}
