// stat family, append, truncate, rename, link, symlink, unlink, locks, times,
// permissions, fallocate, sparse files.
#include "verdict.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>

int main(void)
{
    char buffer[100] = {0};
    struct stat one, two;
    int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0640);
    CHECK(write(file, "0123456789", 10) == 10);
    int appending = open("file", O_WRONLY | O_APPEND);
    CHECK(lseek(appending, 0, SEEK_SET) == 0 && write(appending, "end", 3) == 3);
    CHECK(lseek(appending, 0, SEEK_CUR) == 13);
    CHECK(fstat(file, &one) == 0 && one.st_size == 13 && S_ISREG(one.st_mode) && one.st_nlink == 1);
    CHECK(link("file", "hard") == 0 && symlink("file", "soft") == 0);
    CHECK(stat("hard", &two) == 0 && two.st_ino == one.st_ino && two.st_nlink == 2);
    CHECK(lstat("soft", &two) == 0 && S_ISLNK(two.st_mode) && two.st_size == 4);
    CHECK(stat("soft", &two) == 0 && two.st_ino == one.st_ino);
    CHECK(readlink("soft", buffer, sizeof buffer) == 4 && !strcmp(buffer, "file"));
    CHECK(open("soft", O_RDONLY | O_NOFOLLOW) == -1 && errno == ELOOP);
    CHECK(rename("hard", "renamed") == 0 && access("hard", F_OK) == -1 && access("renamed", R_OK | W_OK) == 0);
    CHECK(truncate("renamed", 5) == 0 && fstat(file, &one) == 0 && one.st_size == 5);
    CHECK(ftruncate(file, 100000) == 0 && pread(file, buffer, 100, 50000) == 100 && buffer[50] == 0);
    CHECK(lseek(file, 0, SEEK_HOLE) >= 5);
    CHECK(posix_fallocate(file, 0, 200000) == 0 && fstat(file, &one) == 0 && one.st_size == 200000);
    CHECK(chmod("renamed", 0400) == 0 && fstat(file, &one) == 0 && (one.st_mode & 0777) == 0400);
    struct timespec times[2] = {{1000000000, 5}, {1234567890, 123456789}};
    CHECK(futimens(file, times) == 0 && fstat(file, &one) == 0 && one.st_mtim.tv_nsec == 123456789);
    struct statx extended;
    CHECK(statx(AT_FDCWD, "renamed", 0, STATX_BASIC_STATS, &extended) == 0 && extended.stx_size == 200000);
    CHECK(flock(file, LOCK_EX) == 0 && flock(appending, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    CHECK(fcntl(file, F_SETLK, &lock) == 0);
    CHECK(unlink("file") == 0 && unlink("renamed") == 0 && unlink("soft") == 0 && unlink("soft") == -1 && errno == ENOENT);
    CHECK(fstat(file, &one) == 0 && one.st_nlink == 0);
    CHECK(pwrite(file, "deleted but open", 16, 0) == 16 && pread(file, buffer, 16, 0) == 16);
    buffer[16] = 0;
    puts(buffer);
    struct statfs filesystem;
    CHECK(fstatfs(file, &filesystem) == 0 && filesystem.f_bsize > 0);
    int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
    CHECK(unnamed >= 0 || errno == EOPNOTSUPP || errno == EISDIR);
    CHECK(open("missing/file", O_RDONLY) == -1 && errno == ENOENT);
    CHECK(open("/dev/null", O_WRONLY | O_CREAT | O_EXCL, 0600) == -1 && errno == EEXIST);
    return verdict();
}
