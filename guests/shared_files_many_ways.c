// One file seen through several shared maps, read, write and every other call that
// changes files; maps made before it was opened for writing; msync; truncation.
#include "verdict.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

enum { PAGES = 4, SIZE = PAGES * 4096 };

static void fill(const char *name, char with)
{
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char block[4096];
    memset(block, with, sizeof block);
    for (int i = 0; i < PAGES; i++)
        CHECK(write(file, block, sizeof block) == sizeof block);
    close(file);
}

static char *map(int file, int prot)
{
    char *at = mmap(NULL, SIZE, prot, MAP_SHARED, file, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

// A read-only map made while nobody could write sees what a later writer does.
static void mapped_before_opened_for_writing(void)
{
    fill("early", 'e');
    int reader = open("early", O_RDONLY);
    char *seen = map(reader, PROT_READ);
    CHECK(seen[100] == 'e');
    int writer = open("early", O_WRONLY);
    CHECK(pwrite(writer, "later", 5, 100) == 5);
    CHECK(!memcmp(seen + 100, "later", 5));
    printf("early: %.7s\n", seen + 99);
    close(reader), close(writer);
    CHECK(munmap(seen, SIZE) == 0);
}

static void every_call_that_writes(void)
{
    fill("file", 'f');
    fill("source", 's');
    int file = open("file", O_RDWR), other = open("file", O_RDWR | O_APPEND);
    int source = open("source", O_RDONLY);
    char *one = map(file, PROT_READ | PROT_WRITE), *two = map(other, PROT_READ);
    struct iovec parts[2] = {{"ab", 2}, {"cd", 2}};
    CHECK(lseek(file, 10, SEEK_SET) == 10 && writev(file, parts, 2) == 4);
    CHECK(pwritev(file, parts, 2, 20) == 4 && pwritev2(file, parts, 2, 30, 0) == 4);
    CHECK(!memcmp(two + 10, "abcd", 4) && !memcmp(one + 20, "abcd", 4) && !memcmp(two + 30, "abcd", 4));
    CHECK(lseek(file, 40, SEEK_SET) == 40 && sendfile(file, source, NULL, 4) == 4);
    CHECK(!memcmp(two + 40, "ssss", 4) && two[44] == 'f');
    loff_t from = 0, to = 50;
    if (copy_file_range(source, &from, file, &to, 4, 0) == 4) CHECK(!memcmp(one + 50, "ssss", 4));
    int pipes[2];
    CHECK(pipe(pipes) == 0 && write(pipes[1], "pipe", 4) == 4);
    to = 60;
    CHECK(splice(pipes[0], NULL, file, &to, 4, 0) == 4 && !memcmp(two + 60, "pipe", 4));
    CHECK(write(other, "appended", 8) == 8 && lseek(file, 0, SEEK_END) == SIZE + 8);
    one[5000] = 'M';
    char back;
    CHECK(pread(other, &back, 1, 5000) == 1 && back == 'M');
    CHECK(msync(one, SIZE, MS_ASYNC) == 0 && msync(one, SIZE, MS_SYNC) == 0);
    CHECK(msync(one + 1, 4096, MS_SYNC) == -1 && errno == EINVAL);
    CHECK(ftruncate(file, 3 * 4096) == 0 && truncate("file", SIZE) == 0);
    CHECK(two[3 * 4096] == 0 && one[2 * 4096] == 'f');
    CHECK(fallocate(file, 0, SIZE, 4096) == 0 && lseek(file, 0, SEEK_END) == SIZE + 4096);
    CHECK(mprotect(one, SIZE, PROT_READ) == 0 && mprotect(one, SIZE, PROT_READ | PROT_WRITE) == 0);
    strcpy(one + 70, "through the map");
    printf("file: %s, %.4s\n", two + 70, two + 60);
    CHECK(munmap(one, SIZE) == 0 && munmap(two, SIZE) == 0);
    close(file), close(other), close(source);
}

// Unmapped, changed by calls alone, mapped again.
static void mapped_again_after_changes(void)
{
    int file = open("file", O_RDWR);
    CHECK(pwrite(file, "between", 7, 0) == 7);
    char *again = map(file, PROT_READ | PROT_WRITE);
    CHECK(!memcmp(again, "between", 7) && !strcmp(again + 70, "through the map"));
    close(file);
    // Opening with O_TRUNC empties it under the map; what is written then shows.
    file = open("file", O_RDWR | O_TRUNC);
    CHECK(ftruncate(file, SIZE) == 0 && again[70] == 0);
    CHECK(pwrite(file, "anew", 4, 4096) == 4);
    printf("again: %s\n", again + 4096);
    CHECK(munmap(again, SIZE) == 0);
    close(file);
}

static void memory_file_by_two_ways(void)
{
    int memory = memfd_create("m", 0);
    CHECK(ftruncate(memory, SIZE) == 0);
    char *writes = map(memory, PROT_READ | PROT_WRITE), *reads = map(memory, PROT_READ);
    char name[64];
    sprintf(name, "/proc/self/fd/%d", memory);
    int second = open(name, O_RDWR);
    CHECK(second >= 0 && pwrite(second, "second", 6, 8192) == 6);
    strcpy(writes, "first");
    char buffer[8] = {0};
    CHECK(read(second, buffer, 5) == 5);
    printf("memory: %s %s\n", buffer, reads + 8192);
    close(memory), close(second);
}

int main(void)
{
    mapped_before_opened_for_writing();
    every_call_that_writes();
    mapped_again_after_changes();
    memory_file_by_two_ways();
    return verdict();
}
