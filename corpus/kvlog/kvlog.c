/* kvlog: a key-value store with transactions, driven by a script.
 *
 * Orders:
 *     set KEY VALUE      get KEY      del KEY      count VALUE
 *     begin              commit       rollback     (nested)
 *     rename OLD NEW     keys [PREFIX]             dump */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 31, MAX_WORD = 64 };

struct item {
    char *key;
    char *value;
    struct item *next;
};

/* What to do to take one change back. */
struct undo {
    char *key;
    char *value; /* NULL: the key did not exist */
    struct undo *next;
};

struct transaction {
    struct undo *undos; /* newest first */
    struct transaction *outer;
};

struct store {
    struct item *buckets[BUCKETS];
    int count;
    struct transaction *transaction;
};

static void *need(void *memory) {
    if (!memory) {
        fprintf(stderr, "kvlog: out of memory\n");
        exit(2);
    }
    return memory;
}

static char *copy(const char *text) {
    return strcpy(need(malloc(strlen(text) + 1)), text);
}

/* ---- the table ---- */

static unsigned bucket_of(const char *key) {
    unsigned hash = 5381;
    while (*key)
        hash = hash * 33 + (unsigned char)*key++;
    return hash % BUCKETS;
}

static struct item **find_slot(struct store *store, const char *key) {
    struct item **slot = &store->buckets[bucket_of(key)];
    while (*slot && strcmp((*slot)->key, key) != 0)
        slot = &(*slot)->next;
    return slot;
}

static const char *value_of(struct store *store, const char *key) {
    struct item *item = *find_slot(store, key);
    return item ? item->value : NULL;
}

/* The store takes the value over; the key is copied. */
static void put(struct store *store, const char *key, char *value) {
    struct item **slot = find_slot(store, key);
    if (*slot) {
        free((*slot)->value);
        (*slot)->value = value;
        return;
    }
    *slot = need(calloc(1, sizeof **slot));
    (*slot)->key = copy(key);
    (*slot)->value = value;
    store->count++;
}

static int take_out(struct store *store, const char *key) {
    struct item **slot = find_slot(store, key);
    struct item *item = *slot;
    if (!item)
        return 0;
    *slot = item->next;
    free(item->key);
    free(item->value);
    free(item);
    store->count--;
    return 1;
}

/* ---- transactions ---- */

static void remember(struct store *store, const char *key) {
    if (!store->transaction)
        return;
    const char *old = value_of(store, key);
    struct undo *undo = need(malloc(sizeof *undo));
    undo->key = copy(key);
    undo->value = old ? copy(old) : NULL;
    undo->next = store->transaction->undos;
    store->transaction->undos = undo;
}

static void begin(struct store *store) {
    struct transaction *transaction = need(calloc(1, sizeof *transaction));
    transaction->outer = store->transaction;
    store->transaction = transaction;
}

static void free_undo(struct undo *undo) {
    free(undo->key);
    free(undo->value);
    free(undo);
}

static int rollback(struct store *store) {
    struct transaction *transaction = store->transaction;
    if (!transaction)
        return 0;
    while (transaction->undos) {
        struct undo *undo = transaction->undos;
        transaction->undos = undo->next;
        if (undo->value) {
            put(store, undo->key, undo->value);
        } else {
            take_out(store, undo->key);
        }
        free_undo(undo);
    }
    store->transaction = transaction->outer;
    free(transaction);
    return 1;
}

/* The changes of an inner transaction become those of the outer one. */
static int commit(struct store *store) {
    struct transaction *transaction = store->transaction;
    if (!transaction)
        return 0;
    struct transaction *outer = transaction->outer;
    struct undo *undo = transaction->undos;
    if (outer) {
        struct undo **end = &transaction->undos;
        while (*end)
            end = &(*end)->next;
        *end = outer->undos;
        outer->undos = transaction->undos;
    } else {
        while (undo) {
            struct undo *next = undo->next;
            free_undo(undo);
            undo = next;
        }
    }
    store->transaction = outer;
    free(transaction);
    return 1;
}

/* ---- orders ---- */

static int compare_items(const void *a, const void *b) {
    return strcmp((*(struct item *const *)a)->key, (*(struct item *const *)b)->key);
}

/* All items in order of their keys; the caller frees the array. */
static struct item **sorted(struct store *store) {
    struct item **items = need(malloc(((size_t)store->count + 1) * sizeof *items));
    int count = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct item *item = store->buckets[i]; item; item = item->next)
            items[count++] = item;
    qsort(items, (size_t)count, sizeof *items, compare_items);
    return items;
}

static void print_keys(struct store *store, const char *prefix, int values) {
    struct item **items = sorted(store);
    for (int i = 0; i < store->count; i++) {
        if (strncmp(items[i]->key, prefix, strlen(prefix)) != 0)
            continue;
        if (values)
            printf("%s = %s\n", items[i]->key, items[i]->value);
        else
            printf("%s\n", items[i]->key);
    }
    free(items);
}

static int count_value(struct store *store, const char *value) {
    int count = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct item *item = store->buckets[i]; item; item = item->next)
            if (strcmp(item->value, value) == 0)
                count++;
    return count;
}

static void rename_key(struct store *store, const char *old, const char *fresh) {
    const char *value = value_of(store, old);
    if (!value) {
        printf("no %s\n", old);
        return;
    }
    char *kept = copy(value);
    remember(store, old);
    take_out(store, old);
    remember(store, fresh);
    put(store, fresh, kept);
}

static void say(int done, const char *otherwise) {
    if (!done)
        printf("%s\n", otherwise);
}

static int obey(struct store *store, const char *line) {
    char order[MAX_WORD] = "", key[MAX_WORD] = "", value[MAX_WORD] = "";
    int words = sscanf(line, "%63s %63s %63s", order, key, value);
    if (words < 1 || order[0] == '#')
        return 1;
    if (strcmp(order, "set") == 0 && words == 3) {
        remember(store, key);
        put(store, key, copy(value));
    } else if (strcmp(order, "get") == 0 && words == 2) {
        const char *found = value_of(store, key);
        printf("%s\n", found ? found : "(none)");
    } else if (strcmp(order, "del") == 0 && words == 2) {
        remember(store, key);
        say(take_out(store, key), "nothing to delete");
    } else if (strcmp(order, "count") == 0 && words == 2) {
        printf("%d\n", count_value(store, key));
    } else if (strcmp(order, "begin") == 0) {
        begin(store);
    } else if (strcmp(order, "commit") == 0) {
        say(commit(store), "no transaction");
    } else if (strcmp(order, "rollback") == 0) {
        say(rollback(store), "no transaction");
    } else if (strcmp(order, "rename") == 0 && words == 3) {
        rename_key(store, key, value);
    } else if (strcmp(order, "keys") == 0) {
        print_keys(store, key, 0);
    } else if (strcmp(order, "dump") == 0) {
        print_keys(store, "", 1);
    } else {
        return 0;
    }
    return 1;
}

static void free_store(struct store *store) {
    while (store->transaction)
        commit(store);
    for (int i = 0; i < BUCKETS; i++) {
        while (store->buckets[i]) {
            struct item *item = store->buckets[i];
            store->buckets[i] = item->next;
            free(item->key);
            free(item->value);
            free(item);
        }
    }
}

int main(void) {
    static struct store store;
    char line[256];
    int number = 0, status = 0;
    while (status == 0 && fgets(line, sizeof line, stdin)) {
        number++;
        if (!obey(&store, line)) {
            printf("line %d: cannot understand this\n", number);
            status = 1;
        }
    }
    free_store(&store);
    return status;
}
