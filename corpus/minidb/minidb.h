/* A small database: tables of fixed-size rows in B+ trees of pages. */
#ifndef MINIDB_H
#define MINIDB_H

#include <stdint.h>
#include <stdio.h>

enum {
    MAX_PAGES = 512,
    LEAF_KEYS = 6,      /* rows in a leaf */
    INNER_KEYS = 5,     /* keys in an inner page; one more child */
    MAX_TABLES = 8,
    MAX_COLUMNS = 6,
    NAME_SIZE = 16,
    TEXT_SIZE = 24,
    MAX_WORDS = 64,
};

typedef int32_t page_number; /* 0: none */

/* ---- values and rows ---- */

enum type { TYPE_NUMBER, TYPE_TEXT };

struct value {
    int is_null;
    int64_t number;
    char text[TEXT_SIZE];
};

struct row {
    int64_t key;
    struct value values[MAX_COLUMNS];
};

/* ---- pages ---- */

struct page {
    int is_leaf;
    int count; /* of keys */
    page_number parent;
    union {
        struct {
            struct row rows[LEAF_KEYS];
            page_number next;
        } leaf;
        struct {
            int64_t keys[INNER_KEYS];
            page_number children[INNER_KEYS + 1];
        } inner;
    };
};

page_number new_page(int is_leaf);
struct page *page_at(page_number number);
void free_page(page_number number);
int pages_used(void);

/* ---- trees ---- */

struct tree {
    page_number root;
    int64_t count;
};

struct cursor {
    page_number page;
    int index;
};

void tree_start(struct tree *tree);
int tree_insert(struct tree *tree, const struct row *row);
struct row *tree_find(const struct tree *tree, int64_t key);
int tree_delete(struct tree *tree, int64_t key);
struct cursor tree_seek(const struct tree *tree, int64_t key);
struct row *cursor_row(struct cursor *cursor);
void cursor_next(struct cursor *cursor);
int tree_depth(const struct tree *tree);
int tree_check(const struct tree *tree);
void tree_print(const struct tree *tree);

/* ---- tables ---- */

struct column {
    char name[NAME_SIZE];
    enum type type;
};

struct table {
    char name[NAME_SIZE];
    struct column columns[MAX_COLUMNS]; /* the first is the key */
    int column_count;
    struct tree tree;
};

struct table *find_table(const char *name);
struct table *add_table(const char *name);
int column_index(const struct table *table, const char *name);
void print_value(const struct value *value, enum type type);
int compare_values(const struct value *a, const struct value *b, enum type type);

/* ---- statements ---- */

/* Obeys one line; returns 0 if it was not understood, which was reported. */
int obey(char *line);

#endif
