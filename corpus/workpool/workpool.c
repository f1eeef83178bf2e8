/* workpool: a pool of threads that works through batches of jobs.
 *
 * usage: workpool [-w WORKERS] [-q CAPACITY] < JOBS
 *
 * Jobs, one per line: `primes N` counts primes below N, `collatz N` gives the longest Collatz
 * chain below N, `sum TEXT` a checksum, `fib N` a Fibonacci number modulo 1000007, `wait` waits
 * for all jobs so far. Results are printed in the order of the jobs, a batch at a time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORKERS = 16, MAX_CAPACITY = 64, MAX_JOBS = 512, MAX_TEXT = 64 };

struct job {
    char kind[16];
    char argument[MAX_TEXT];
    long result;
    int known; /* whether the kind was understood */
};

struct pool {
    pthread_t threads[MAX_WORKERS];
    int workers;

    pthread_mutex_t lock;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    pthread_cond_t idle;

    struct job *queue[MAX_CAPACITY];
    int capacity;
    int head;
    int count;

    int running; /* jobs taken and not finished */
    int closing;
};

static void die(const char *message) {
    fprintf(stderr, "workpool: %s\n", message);
    exit(2);
}

/* ---- the work itself ---- */

static long count_primes(long limit) {
    long count = 0;
    for (long n = 2; n < limit; n++) {
        int prime = 1;
        for (long d = 2; d * d <= n && prime; d++)
            prime = n % d != 0;
        count += prime;
    }
    return count;
}

static long longest_collatz(long limit) {
    long longest = 0;
    for (long start = 1; start < limit; start++) {
        long steps = 0;
        for (long n = start; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
            steps++;
        if (steps > longest)
            longest = steps;
    }
    return longest;
}

static long checksum(const char *text) {
    unsigned long a = 1, b = 0;
    for (; *text; text++) {
        a = (a + (unsigned char)*text) % 65521;
        b = (b + a) % 65521;
    }
    return (long)(b << 16 | a);
}

static long fibonacci(long n) {
    long a = 0, b = 1;
    while (n-- > 0) {
        long next = (a + b) % 1000007;
        a = b;
        b = next;
    }
    return a;
}

static void do_job(struct job *job) {
    long number = atol(job->argument);
    job->known = 1;
    if (strcmp(job->kind, "primes") == 0)
        job->result = count_primes(number);
    else if (strcmp(job->kind, "collatz") == 0)
        job->result = longest_collatz(number);
    else if (strcmp(job->kind, "sum") == 0)
        job->result = checksum(job->argument);
    else if (strcmp(job->kind, "fib") == 0)
        job->result = fibonacci(number);
    else
        job->known = 0;
}

/* ---- the pool ---- */

/* The next job, or NULL when the pool closes. */
static struct job *take_job(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    while (pool->count == 0 && !pool->closing)
        pthread_cond_wait(&pool->not_empty, &pool->lock);
    struct job *job = NULL;
    if (pool->count > 0) {
        job = pool->queue[pool->head];
        pool->head = (pool->head + 1) % pool->capacity;
        pool->count--;
        pool->running++;
        pthread_cond_signal(&pool->not_full);
    }
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void finish_job(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->running--;
    if (pool->running == 0 && pool->count == 0)
        pthread_cond_signal(&pool->idle);
    pthread_mutex_unlock(&pool->lock);
}

static void *worker(void *argument) {
    struct pool *pool = argument;
    struct job *job;
    while ((job = take_job(pool))) {
        do_job(job);
        finish_job(pool);
    }
    return NULL;
}

static void pool_start(struct pool *pool, int workers, int capacity) {
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->not_empty, NULL);
    pthread_cond_init(&pool->not_full, NULL);
    pthread_cond_init(&pool->idle, NULL);
    pool->workers = workers;
    pool->capacity = capacity;
    for (int i = 0; i < workers; i++)
        if (pthread_create(&pool->threads[i], NULL, worker, pool) != 0)
            die("cannot start a thread");
}

static void pool_submit(struct pool *pool, struct job *job) {
    pthread_mutex_lock(&pool->lock);
    while (pool->count == pool->capacity)
        pthread_cond_wait(&pool->not_full, &pool->lock);
    pool->queue[(pool->head + pool->count) % pool->capacity] = job;
    pool->count++;
    pthread_cond_signal(&pool->not_empty);
    pthread_mutex_unlock(&pool->lock);
}

static void pool_wait(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    while (pool->count > 0 || pool->running > 0)
        pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void pool_stop(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->closing = 1;
    pthread_cond_signal(&pool->not_empty);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->workers; i++)
        pthread_join(pool->threads[i], NULL);
}

/* ---- jobs from the input ---- */

static struct job jobs[MAX_JOBS];

static void print_results(int from, int to) {
    for (int i = from; i < to; i++) {
        if (jobs[i].known)
            printf("%-8s %-12s %ld\n", jobs[i].kind, jobs[i].argument, jobs[i].result);
        else
            printf("%-8s %-12s unknown\n", jobs[i].kind, jobs[i].argument);
    }
}

static int run_batches(struct pool *pool, FILE *file) {
    char line[128];
    int submitted = 0, printed = 0;
    while (fgets(line, sizeof line, file)) {
        char kind[16] = "", argument[MAX_TEXT] = "";
        if (sscanf(line, "%15s %63s", kind, argument) < 1)
            continue;
        if (strcmp(kind, "wait") == 0) {
            pool_wait(pool);
            print_results(printed, submitted);
            printf("-- %d jobs done\n", submitted);
            printed = submitted;
            continue;
        }
        if (submitted == MAX_JOBS)
            die("too many jobs");
        struct job *job = &jobs[submitted++];
        strcpy(job->kind, kind);
        strcpy(job->argument, argument);
        pool_submit(pool, job);
    }
    pool_wait(pool);
    print_results(printed, submitted);
    return submitted;
}

int main(int argc, char **argv) {
    static struct pool pool;
    int workers = 4, capacity = 8, letter;
    while ((letter = getopt(argc, argv, "w:q:")) != -1) {
        if (letter == 'w')
            workers = atoi(optarg);
        else if (letter == 'q')
            capacity = atoi(optarg);
        else
            die("usage: workpool [-w WORKERS] [-q CAPACITY]");
    }
    if (workers < 1 || workers > MAX_WORKERS || capacity < 1 || capacity > MAX_CAPACITY)
        die("too few or too many");
    pool_start(&pool, workers, capacity);
    int count = run_batches(&pool, stdin);
    pool_stop(&pool);
    printf("%d jobs\n", count);
    return 0;
}
