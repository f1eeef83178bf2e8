// Four threads compute, each its share, and meet at a lock now and then.
#include "verdict.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long total;
static long rounds;

static void *work(void *argument)
{
    unsigned long state = (unsigned long)argument + 1, table[256] = {0};
    for (long i = 0; i < rounds; i++) {
        for (int j = 0; j < 1000; j++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            table[state & 255] += state >> 32;
        }
        pthread_mutex_lock(&lock);
        total += table[i & 255];
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atol(argv[1]) : 100;
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%lx\n", total);
    return 0;
}
