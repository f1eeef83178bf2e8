#include <pthread.h>
#include <unistd.h>
static char buf[8];
static int fds[2];
static volatile int ready, count;
static void *reader(void *unused) {
    ready = 1;
    read(fds[0], buf, 4);
    return unused;
}
int main(void) {
    pthread_t thread;
    pipe(fds);
    pthread_create(&thread, 0, reader, 0);
    while (!ready) usleep(1000);
    usleep(50000);
    count = 1;
    write(fds[1], "abcd", 4);
    pthread_join(thread, 0);
    return buf[0] == 'a' ? 0 : count;
}
