// Four threads meet at a barrier after each phase; exactly one is the serial one.
#include "verdict.h"
#include <pthread.h>
#include <stdatomic.h>

static pthread_barrier_t barrier;
static atomic_int in_phase[20], serial;

static void *work(void *argument)
{
    (void)argument;
    for (int phase = 0; phase < 20; phase++) {
        atomic_fetch_add(&in_phase[phase], 1);
        int result = pthread_barrier_wait(&barrier);
        CHECK(atomic_load(&in_phase[phase]) == 4);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD) atomic_fetch_add(&serial, 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("serial %d\n", serial);
    return verdict();
}
