/* wordhist: counts words of many files at once and prints a table.
 *
 * usage: wordhist [-t THREADS] [-n TOP] [-r ROUNDS] FILE...
 *
 * Each thread takes the next file that nobody has taken; with -r every file is counted that many
 * times, as a benchmark. */
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 257, LOCKS = 16, MAX_WORD = 32, MAX_THREADS = 16, MAX_TASKS = 4096 };

struct entry {
    char word[MAX_WORD];
    long count;
    struct entry *next;
};

struct table {
    struct entry *buckets[BUCKETS];
    pthread_mutex_t locks[LOCKS]; /* bucket i is guarded by lock i % LOCKS */
};

struct tasks {
    pthread_mutex_t lock;
    const char *files[MAX_TASKS];
    int count;
    int next;
};

struct context {
    struct table *table;
    struct tasks *tasks;
    long words;
    long bytes;
};

static void die(const char *message, const char *detail) {
    fprintf(stderr, "wordhist: %s%s\n", message, detail);
    exit(2);
}

/* ---- the table ---- */

static unsigned hash(const char *word) {
    unsigned value = 2166136261u;
    while (*word)
        value = (value ^ (unsigned char)*word++) * 16777619u;
    return value;
}

static struct entry *find(struct table *table, unsigned bucket, const char *word) {
    for (struct entry *entry = table->buckets[bucket]; entry; entry = entry->next)
        if (strcmp(entry->word, word) == 0)
            return entry;
    return NULL;
}

static struct entry *insert(struct table *table, unsigned bucket, const char *word) {
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        die("out of memory", "");
    strcpy(entry->word, word);
    entry->next = table->buckets[bucket];
    table->buckets[bucket] = entry;
    return entry;
}

static void count_word(struct table *table, const char *word) {
    unsigned bucket = hash(word) % BUCKETS;
    pthread_mutex_t *lock = &table->locks[bucket % LOCKS];
    pthread_mutex_lock(lock);
    struct entry *entry = find(table, bucket, word);
    if (!entry)
        entry = insert(table, bucket, word);
    pthread_mutex_unlock(lock);
    entry->count++;
}

/* ---- files ---- */

static void count_file(struct context *context, const char *name) {
    FILE *file = fopen(name, "r");
    char word[MAX_WORD];
    int length = 0, c;
    if (!file)
        die("cannot open ", name);
    do {
        c = getc_unlocked(file);
        if (c != EOF)
            context->bytes++;
        if (c != EOF && isalpha(c)) {
            if (length < MAX_WORD - 1)
                word[length++] = (char)tolower(c);
        } else if (length > 0) {
            word[length] = '\0';
            count_word(context->table, word);
            context->words++;
            length = 0;
        }
    } while (c != EOF);
    fclose(file);
}

static const char *next_file(struct tasks *tasks) {
    const char *file = NULL;
    pthread_mutex_lock(&tasks->lock);
    if (tasks->next < tasks->count)
        file = tasks->files[tasks->next++];
    pthread_mutex_unlock(&tasks->lock);
    return file;
}

static void *work(void *argument) {
    struct context *context = argument;
    const char *file;
    while ((file = next_file(context->tasks)))
        count_file(context, file);
    return NULL;
}

/* ---- the report ---- */

static int by_count(const void *a, const void *b) {
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->word, y->word);
}

static struct entry **all_entries(struct table *table, size_t *count) {
    size_t capacity = 64;
    struct entry **entries = malloc(capacity * sizeof *entries);
    *count = 0;
    for (int i = 0; i < BUCKETS; i++) {
        for (struct entry *entry = table->buckets[i]; entry; entry = entry->next) {
            if (*count == capacity) {
                capacity *= 2;
                entries = realloc(entries, capacity * sizeof *entries);
            }
            if (!entries)
                die("out of memory", "");
            entries[(*count)++] = entry;
        }
    }
    qsort(entries, *count, sizeof *entries, by_count);
    return entries;
}

static void report(struct table *table, const struct context *contexts, int threads, int top) {
    size_t count;
    long words = 0, bytes = 0, counted = 0;
    struct entry **entries = all_entries(table, &count);
    for (int i = 0; i < threads; i++) {
        words += contexts[i].words;
        bytes += contexts[i].bytes;
    }
    for (size_t i = 0; i < count; i++)
        counted += entries[i]->count;
    for (size_t i = 0; i < count && (int)i < top; i++)
        printf("%8ld %s\n", entries[i]->count, entries[i]->word);
    printf("%zu distinct, %ld counted, %ld words, %ld bytes\n", count, counted, words, bytes);
    free(entries);
}

static int number(const char *text, int low, int high) {
    int value = atoi(text);
    if (value < low || value > high)
        die("out of range: ", text);
    return value;
}

int main(int argc, char **argv) {
    static struct table table;
    static struct tasks tasks = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static struct context contexts[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int thread_count = 4, top = 10, rounds = 1, letter;
    while ((letter = getopt(argc, argv, "t:n:r:")) != -1) {
        switch (letter) {
        case 't':
            thread_count = number(optarg, 1, MAX_THREADS);
            break;
        case 'n':
            top = number(optarg, 0, 1000);
            break;
        case 'r':
            rounds = number(optarg, 1, 1000);
            break;
        default:
            die("usage: wordhist [-t THREADS] [-n TOP] [-r ROUNDS] FILE...", "");
        }
    }
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&table.locks[i], NULL);
    for (int round = 0; round < rounds; round++)
        for (int i = optind; i < argc && tasks.count < MAX_TASKS; i++)
            tasks.files[tasks.count++] = argv[i];
    for (int i = 0; i < thread_count; i++) {
        contexts[i] = (struct context){.table = &table, .tasks = &tasks};
        if (pthread_create(&threads[i], NULL, work, &contexts[i]) != 0)
            die("cannot start a thread", "");
    }
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    report(&table, contexts, thread_count, top);
    return 0;
}
