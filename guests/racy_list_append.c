// Four threads append to one linked list without a lock; nodes get lost.
#include "verdict.h"
#include <pthread.h>

struct node { struct node *next; int owner, value; };
static struct node *volatile head;

static void *append(void *argument)
{
    int owner = (int)(long)argument;
    for (int i = 0; i < 5000; i++) {
        struct node *node = malloc(sizeof *node);
        node->owner = owner, node->value = i;
        node->next = head;
        for (volatile int delay = 0; delay < 20; delay++) {}
        head = node;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, append, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    long count[4] = {0};
    unsigned long hash = 0;
    for (struct node *node = head; node; node = node->next) count[node->owner]++, hash = hash * 31 + (unsigned long)(node->owner * 7 + node->value);
    printf("kept %ld %ld %ld %ld order %lx\n", count[0], count[1], count[2], count[3], hash);
    return 0;
}
