/* The new thread uses what its parent sets once it has started it. */
#include <pthread.h>
#include <stdlib.h>

static const char *volatile name;

static void *worker(void *unused)
{
    if (name[0] != 'w')
        abort();
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    name = "worker";
    pthread_join(thread, NULL);
    return 0;
}
