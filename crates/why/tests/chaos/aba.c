/* A stack without locks: its top may be the same again and what is below it not. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct node {
    struct node *below;
    int out;
};

static struct node nodes[3];
static _Atomic(struct node *) top;

static struct node *pop(void)
{
    struct node *node = atomic_load(&top);
    while (node && !atomic_compare_exchange_weak(&top, &node, node->below))
        ;
    if (node && node->out++)
        abort();
    return node;
}

static void push(struct node *node)
{
    node->out = 0;
    node->below = atomic_load(&top);
    while (!atomic_compare_exchange_weak(&top, &node->below, node))
        ;
}

static void *takes(void *unused)
{
    pop();
    return unused;
}

static void *takes_and_returns(void *unused)
{
    struct node *first = pop();
    pop();
    if (first)
        push(first);
    return unused;
}

int main(void)
{
    pthread_t a, b;
    for (int i = 0; i < 3; i++)
        push(&nodes[i]);
    pthread_create(&a, NULL, takes, NULL);
    pthread_create(&b, NULL, takes_and_returns, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    while (pop())
        ;
    return 0;
}
