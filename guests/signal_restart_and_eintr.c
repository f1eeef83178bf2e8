// A handler without SA_RESTART makes read fail with EINTR; with it, read goes on.
// nanosleep reports what remained; poll never restarts.
#include "verdict.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

static int ends[2];
static volatile int handled;
static pthread_t reader;
static volatile int write_after;

static void handle(int number) { (void)number; handled++; }
static void *send_signals(void *argument)
{
    (void)argument;
    usleep(30000);
    pthread_kill(reader, SIGUSR1);
    if (write_after) {
        usleep(30000);
        CHECK(write(ends[1], "x", 1) == 1);
    }
    return NULL;
}

int main(void)
{
    char byte = 0;
    pthread_t sender;
    reader = pthread_self();
    CHECK(pipe(ends) == 0);
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&sender, NULL, send_signals, NULL);
    CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR && handled == 1);
    pthread_join(sender, NULL);
    puts("read interrupted");
    pthread_create(&sender, NULL, send_signals, NULL);
    struct pollfd wait = {.fd = ends[0], .events = POLLIN};
    CHECK(poll(&wait, 1, -1) == -1 && errno == EINTR && handled == 2);
    pthread_join(sender, NULL);
    puts("poll interrupted");
    pthread_create(&sender, NULL, send_signals, NULL);
    struct timespec long_time = {100, 0}, rest = {0, 0};
    CHECK(nanosleep(&long_time, &rest) == -1 && errno == EINTR && handled == 3);
    CHECK(rest.tv_sec >= 90 && rest.tv_sec < 100);
    pthread_join(sender, NULL);
    puts("nanosleep interrupted");
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    write_after = 1;
    pthread_create(&sender, NULL, send_signals, NULL);
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x' && handled == 4);
    pthread_join(sender, NULL);
    puts("read restarted");
    pthread_create(&sender, NULL, send_signals, NULL);
    CHECK(poll(&wait, 1, -1) == -1 && errno == EINTR && handled == 5);
    pthread_join(sender, NULL);
    puts("poll not restarted");
    return verdict();
}
