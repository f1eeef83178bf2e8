#include <pthread.h>
#include <stdio.h>
int counter;
static void *work(void *p) { for (int i = 0; i < 100; i++) counter++; return p; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%d\n", counter);
    return 0;
}
