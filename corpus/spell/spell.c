/* spell: checks words against a dictionary and suggests corrections.
 *
 * usage: spell [-d FILE] [-s] [-n COUNT] [-a WORD]... < TEXT
 *
 * The dictionary has a word per line; `-word` in it takes a word out again. Words are kept in a
 * hash table with open addressing that grows when it is three quarters full.
 *   -s  print statistics of the table      -n  how many suggestions (default 3)
 *   -a  accept this word too */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_CAPACITY = 16, MAX_WORD = 32, MAX_SUGGESTIONS = 10 };

/* Marks a slot whose word was taken out; searches go on behind it. */
static char removed_mark[] = "";

struct table {
    char **slots;
    size_t capacity;
    size_t words;
    size_t filled; /* words and removed marks */
    long probes;
};

static void *need(void *memory) {
    if (!memory) {
        fprintf(stderr, "spell: out of memory\n");
        exit(2);
    }
    return memory;
}

static size_t hash(const char *word) {
    size_t value = 5381;
    while (*word)
        value = value * 33 ^ (unsigned char)*word++;
    return value;
}

/* ---- the table ---- */

/* The slot of the word, or the slot where it would go. */
static size_t find_slot(struct table *table, const char *word) {
    size_t slot = hash(word) & (table->capacity - 1);
    size_t reusable = table->capacity;
    while (table->slots[slot]) {
        table->probes++;
        if (table->slots[slot] == removed_mark) {
            if (reusable == table->capacity)
                reusable = slot;
        } else if (strcmp(table->slots[slot], word) == 0) {
            return slot;
        }
        slot = (slot + 1) & (table->capacity - 1);
    }
    return reusable < table->capacity ? reusable : slot;
}

static int contains(struct table *table, const char *word) {
    size_t slot = find_slot(table, word);
    return table->slots[slot] && table->slots[slot] != removed_mark;
}

static void grow(struct table *table) {
    char **old = table->slots;
    size_t old_capacity = table->capacity;
    table->capacity = old_capacity ? old_capacity * 2 : FIRST_CAPACITY;
    table->slots = need(calloc(table->capacity, sizeof *table->slots));
    table->filled = table->words;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i] && old[i] != removed_mark)
            table->slots[find_slot(table, old[i])] = old[i];
    free(old);
}

static int add(struct table *table, const char *word) {
    if (table->capacity == 0 || table->words >= table->capacity / 4 * 3)
        grow(table);
    size_t slot = find_slot(table, word);
    char *there = table->slots[slot];
    if (there && there != removed_mark)
        return 0;
    if (!there)
        table->filled++;
    table->slots[slot] = need(malloc(strlen(word) + 1));
    strcpy(table->slots[slot], word);
    table->words++;
    return 1;
}

static int take_out(struct table *table, const char *word) {
    if (table->capacity == 0)
        return 0;
    size_t slot = find_slot(table, word);
    char *there = table->slots[slot];
    if (!there || there == removed_mark)
        return 0;
    free(there);
    table->slots[slot] = removed_mark;
    table->words--;
    return 1;
}

static void free_table(struct table *table) {
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i] != removed_mark)
            free(table->slots[i]);
    free(table->slots);
}

/* ---- suggestions ---- */

struct suggestions {
    char words[MAX_SUGGESTIONS][MAX_WORD + 2];
    int count;
    int limit;
};

static void suggest(struct table *table, struct suggestions *suggestions, const char *word) {
    if (suggestions->count == suggestions->limit || !*word || !contains(table, word))
        return;
    for (int i = 0; i < suggestions->count; i++)
        if (strcmp(suggestions->words[i], word) == 0)
            return;
    strcpy(suggestions->words[suggestions->count++], word);
}

static void try_swaps(struct table *table, const char *word, struct suggestions *suggestions) {
    char copy[MAX_WORD + 2];
    size_t length = strlen(word);
    for (size_t i = 0; i + 1 < length; i++) {
        strcpy(copy, word);
        copy[i] = word[i + 1];
        copy[i + 1] = word[i];
        suggest(table, suggestions, copy);
    }
}

static void try_changes(struct table *table, const char *word, struct suggestions *suggestions) {
    char copy[MAX_WORD + 2];
    size_t length = strlen(word);
    for (size_t i = 0; i < length; i++) {
        strcpy(copy, word);
        for (char c = 'a'; c <= 'z'; c++) {
            copy[i] = c;
            suggest(table, suggestions, copy);
        }
    }
}

static void try_deletions(struct table *table, const char *word,
                          struct suggestions *suggestions) {
    char copy[MAX_WORD + 2];
    size_t length = strlen(word);
    for (size_t i = 0; i < length; i++) {
        memcpy(copy, word, i);
        strcpy(copy + i, word + i + 1);
        suggest(table, suggestions, copy);
    }
}

static void try_insertions(struct table *table, const char *word,
                           struct suggestions *suggestions) {
    char copy[MAX_WORD + 2];
    size_t length = strlen(word);
    for (size_t i = 0; i <= length; i++) {
        memcpy(copy, word, i);
        strcpy(copy + i + 1, word + i);
        for (char c = 'a'; c <= 'z'; c++) {
            copy[i] = c;
            suggest(table, suggestions, copy);
        }
    }
}

static void print_suggestions(struct table *table, const char *word, int line, int limit) {
    struct suggestions suggestions = {.limit = limit};
    try_swaps(table, word, &suggestions);
    try_changes(table, word, &suggestions);
    try_deletions(table, word, &suggestions);
    try_insertions(table, word, &suggestions);
    printf("%d: %s", line, word);
    for (int i = 0; i < suggestions.count; i++)
        printf("%s%s", i ? ", " : " -> ", suggestions.words[i]);
    printf("\n");
}

/* ---- text ---- */

static int check_text(struct table *table, FILE *file, int limit) {
    char word[MAX_WORD + 1];
    int length = 0, line = 1, wrong = 0, c;
    do {
        c = getc(file);
        if (c != EOF && (isalpha(c) || (c == '\'' && length > 0))) {
            if (length < MAX_WORD)
                word[length++] = (char)tolower(c);
            continue;
        }
        if (length > 0) {
            word[length] = '\0';
            if (!contains(table, word)) {
                print_suggestions(table, word, line, limit);
                wrong++;
            }
            length = 0;
        }
        if (c == '\n')
            line++;
    } while (c != EOF);
    return wrong;
}

static void read_dictionary(struct table *table, const char *name) {
    char line[128];
    FILE *file = fopen(name, "r");
    if (!file) {
        fprintf(stderr, "spell: cannot open %s\n", name);
        exit(2);
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        for (char *c = line; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        if (line[0] == '-')
            take_out(table, line + 1);
        else if (line[0] && strlen(line) <= MAX_WORD)
            add(table, line);
    }
    fclose(file);
}

int main(int argc, char **argv) {
    struct table table = {0};
    int letter, statistics = 0, limit = 3;
    while ((letter = getopt(argc, argv, "d:sn:a:")) != -1) {
        switch (letter) {
        case 'd':
            read_dictionary(&table, optarg);
            break;
        case 's':
            statistics = 1;
            break;
        case 'n':
            limit = atoi(optarg);
            if (limit < 0 || limit > MAX_SUGGESTIONS)
                limit = MAX_SUGGESTIONS;
            break;
        case 'a':
            add(&table, optarg);
            break;
        default:
            fprintf(stderr, "usage: spell [-d FILE] [-s] [-n COUNT] [-a WORD]...\n");
            return 2;
        }
    }
    if (table.capacity == 0)
        grow(&table);
    int wrong = check_text(&table, stdin, limit);
    if (statistics)
        printf("%zu words in %zu slots\n", table.words, table.capacity);
    free_table(&table);
    return wrong > 0;
}
