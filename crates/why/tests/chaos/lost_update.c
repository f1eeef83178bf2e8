/* Two threads add to a number, each by reading, adding and writing. */
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *add(void *unused)
{
    for (int i = 0; i < 50; i++) {
        int seen = counter;
        counter = seen + 1;
    }
    return unused;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, add, NULL);
    pthread_create(&b, NULL, add, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d\n", counter);
    return counter != 100;
}
