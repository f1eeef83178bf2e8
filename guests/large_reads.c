// A 16 MB file written, read at once and in odd pieces; readahead, fadvise.
#include "verdict.h"
#include <fcntl.h>

enum { SIZE = 16 << 20 };

int main(void)
{
    unsigned *data = malloc(SIZE), *back = malloc(SIZE);
    unsigned state = 1;
    for (int i = 0; i < SIZE / 4; i++) data[i] = state = state * 1664525u + 1013904223u;
    int file = open("large", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(file, data, SIZE) == SIZE);
    CHECK(posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL) == 0);
    CHECK(readahead(file, 0, SIZE) == 0);
    CHECK(pread(file, back, SIZE, 0) == SIZE && !memcmp(data, back, SIZE));
    memset(back, 0, SIZE);
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    size_t done = 0;
    for (size_t piece = 1; done < SIZE; piece = piece * 3 % 1000003) {
        ssize_t n = read(file, (char *)back + done, piece);
        CHECK(n > 0);
        done += (size_t)n;
    }
    CHECK(done == SIZE && !memcmp(data, back, SIZE));
    CHECK(read(file, back, SIZE) == 0);
    unlink("large");
    return verdict();
}
