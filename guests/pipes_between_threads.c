// Pipes: blocking, full, nonblocking, end of file, between threads.
#include "verdict.h"
#include <fcntl.h>
#include <pthread.h>

static int to_worker[2], from_worker[2];
static void *upcase(void *argument)
{
    char buffer[1000];
    ssize_t n;
    while ((n = read(to_worker[0], buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < n; i++) buffer[i] = (char)(buffer[i] - 32);
        for (ssize_t done = 0; done < n;) done += write(from_worker[1], buffer + done, (size_t)(n - done));
    }
    close(from_worker[1]);
    return argument;
}
static void *feed(void *argument)
{
    static char text[200000];
    memset(text, 'a', sizeof text);
    for (size_t done = 0; done < sizeof text;) done += (size_t)write(to_worker[1], text + done, sizeof text - done);
    close(to_worker[1]);
    return argument;
}

int main(void)
{
    pthread_t worker, feeder;
    CHECK(pipe(to_worker) == 0 && pipe2(from_worker, O_CLOEXEC) == 0);
    pthread_create(&worker, NULL, upcase, NULL);
    pthread_create(&feeder, NULL, feed, NULL);
    char buffer[777];
    long total = 0, wrong = 0;
    ssize_t n;
    while ((n = read(from_worker[0], buffer, sizeof buffer)) > 0) {
        total += n;
        for (ssize_t i = 0; i < n; i++) wrong += buffer[i] != 'A';
    }
    pthread_join(worker, NULL), pthread_join(feeder, NULL);
    printf("%ld %ld\n", total, wrong);
    int ends[2];
    CHECK(pipe2(ends, O_NONBLOCK) == 0);
    CHECK(read(ends[0], buffer, 1) == -1 && errno == EAGAIN);
    CHECK(fcntl(ends[0], F_SETPIPE_SZ, 4096) == 4096);
    long filled = 0;
    while ((n = write(ends[1], buffer, sizeof buffer)) > 0) filled += n;
    CHECK(errno == EAGAIN && filled > 3000 && filled <= 4096);
    return verdict();
}
