// Prints where things are: the same in every recording and every replay.
#include "verdict.h"
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static void *in_thread(void *argument)
{
    int local;
    printf("thread stack %p\n", (void *)&local);
    return argument;
}

int main(void)
{
    int local;
    static int data;
    printf("code %p data %p stack %p\n", (void *)main, (void *)&data, (void *)&local);
    printf("heap %p large %p\n", malloc(10), malloc(10 << 20));
    printf("printf %p break %p\n", (void *)printf, sbrk(0));
    printf("map %p\n", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    printf("environment %p execfn %p base %p\n", (void *)environ, (void *)getauxval(AT_EXECFN), (void *)getauxval(AT_BASE));
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    return 0;
}
