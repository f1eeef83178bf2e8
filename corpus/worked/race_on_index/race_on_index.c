#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct record {
    int data;
};

static int first = 1, second;
static int *const x = &first, *const y = &second;
static struct record *records[8], *records2[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int half_of_next(int value) {
    usleep(2000);
    return value;
}

static int same(int value) {
    return value;
}

static void *work(void *argument) {
    long *sum = argument;
    int a = half_of_next(*x); /* 1 */
    *x = *x + a; /* 2 */
    pthread_mutex_lock(&lock);
    *y = same(*x); /* 3 */
    int b = records[*y]->data; /* 4 */
    pthread_mutex_unlock(&lock);
    int c = records2[*x]->data; /* 5 */
    *sum = b + c;
    return NULL;
}

int main(void) {
    static struct record good = {1};
    pthread_t threads[2];
    long sums[2];
    for (int i = 0; i < 8; i += 2)
        records[i] = records2[i] = &good;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d %ld\n", *x, sums[0] + sums[1]);
}
