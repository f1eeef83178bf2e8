// Memory mapped shared, anonymous and of a file, that a parent and its children change:
// locks and semaphores in it, waiting with and without the kernel, and who sees what.
#include "verdict.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct common {
    pthread_mutex_t lock;
    sem_t ping, pong;
    volatile int spin, turn;
    int count, order[8], used;
};

static struct common *map(int fd)
{
    int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    struct common *common = mmap(NULL, 8192, PROT_READ | PROT_WRITE, flags, fd, 0);
    CHECK(common != MAP_FAILED);
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&common->lock, &how);
    sem_init(&common->ping, 1, 0), sem_init(&common->pong, 1, 0);
    return common;
}

static void work(struct common *common, int me)
{
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&common->lock);
        common->count++;
        pthread_mutex_unlock(&common->lock);
    }
    while (common->spin != me) // without a system call
        ;
    common->order[common->used++] = me;
    common->spin = me + 1;
}

static void several(struct common *common)
{
    for (int me = 0; me < 3; me++)
        if (!fork()) {
            work(common, me);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    printf("%d, %d processes in order %d %d %d\n", common->count, common->used, common->order[0],
           common->order[1], common->order[2]);
}

static void ping_pong(struct common *common)
{
    if (!fork()) {
        for (int i = 0; i < 50; i++)
            sem_wait(&common->ping), common->turn = 2 * i + 1, sem_post(&common->pong);
        _exit(0);
    }
    for (int i = 0; i < 50; i++) {
        sem_post(&common->ping), sem_wait(&common->pong);
        CHECK(common->turn == 2 * i + 1);
    }
    CHECK(wait(NULL) > 0);
}

int main(void)
{
    int file = open("common", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(ftruncate(file, 8192) == 0);
    struct common *anonymous = map(-1), *of_file = map(file);
    several(anonymous), several(of_file);
    ping_pong(anonymous), ping_pong(of_file);
    memset(of_file, 0, 8192);
    return verdict();
}
