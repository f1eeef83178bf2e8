// Files mapped private (changes stay here), shared (written back, seen by read
// and by a second mapping), msync, offsets, partial last page.
#include "verdict.h"
#include <fcntl.h>
#include <sys/mman.h>

int main(void)
{
    int file = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char block[4096];
    for (int i = 0; i < 4; i++) {
        memset(block, 'a' + i, sizeof block);
        CHECK(write(file, block, sizeof block) == sizeof block);
    }
    CHECK(write(file, "tail", 4) == 4);
    char *private = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    char *shared = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *second = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 2 * 4096);
    CHECK(private != MAP_FAILED && shared != MAP_FAILED && second != MAP_FAILED);
    CHECK(private[4096] == 'b' && shared[3 * 4096] == 'd' && second[0] == 'c');
    CHECK(!memcmp(private + 4 * 4096, "tail\0\0", 6));
    private[0] = 'P';
    shared[2 * 4096] = 'S';
    CHECK(shared[0] == 'a' && second[0] == 'S');
    CHECK(pread(file, block, 1, 2 * 4096) == 1 && block[0] == 'S');
    CHECK(pwrite(file, "W", 1, 4096) == 1);
    CHECK(shared[4096] == 'W');
    CHECK(msync(shared, 5 * 4096, MS_SYNC) == 0);
    CHECK(munmap(shared, 5 * 4096) == 0 && munmap(private, 5 * 4096) == 0);
    CHECK(ftruncate(file, 4096) == 0 && ftruncate(file, 8192) == 0);
    shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared[4096] == 0);
    strcpy(shared + 5000, "written through the map");
    CHECK(munmap(shared, 8192) == 0);
    close(file);
    int read_only = open("mapped", O_RDONLY);
    CHECK(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, read_only, 0) == MAP_FAILED && errno == EACCES);
    char *after_close = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, read_only, 0);
    close(read_only);
    unlink("mapped_gone");
    puts(after_close + 5000);
    return verdict();
}
