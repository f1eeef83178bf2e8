/* A shell that runs everything within itself: files and commands are its own. */
#ifndef SHELL_H
#define SHELL_H

#include <stddef.h>

/* ---- text.c ---- */

struct text {
    char *bytes;
    size_t length;
    size_t capacity;
};

void *need(void *memory);
char *copy(const char *text);
void text_add(struct text *text, const char *bytes, size_t length);
void text_puts(struct text *text, const char *string);
void text_putc(struct text *text, char c);
void text_free(struct text *text);

struct list {
    char **items;
    int count;
    int capacity;
};

void list_add(struct list *list, char *item); /* takes the item over */
void list_free(struct list *list);
void list_sort(struct list *list, int (*compare)(const char *, const char *));

/* ---- store.c ---- */

const char *get_variable(const char *name, size_t length);
void set_variable(const char *name, const char *value);
void unset_variable(const char *name);
void push_scope(void);
void pop_scope(void);
void make_local(const char *name);

struct text *find_file(const char *name);
struct text *make_file(const char *name); /* empty */
int remove_file(const char *name);
void list_files(struct list *names);

/* ---- syntax.c ---- */

enum node_kind {
    NODE_COMMAND,
    NODE_PIPE,
    NODE_AND,
    NODE_OR,
    NODE_SEQUENCE,
    NODE_IF,
    NODE_WHILE,
    NODE_FOR,
    NODE_FUNCTION,
    NODE_NOT,
};

enum redirection { REDIRECT_IN, REDIRECT_OUT, REDIRECT_APPEND };

struct redirect {
    enum redirection kind;
    char *target; /* unexpanded */
};

struct node {
    enum node_kind kind;
    struct list words; /* COMMAND, FOR: unexpanded */
    struct redirect redirects[4];
    int redirect_count;
    struct node *parts[3]; /* left/condition, right/body, else */
    char *name;            /* FOR, FUNCTION */
};

struct node *parse(const char *script, char *error, size_t error_size);
void free_node(struct node *node);

/* ---- expand.c ---- */

extern int last_status;
extern struct list *arguments; /* $1, $2, … */

void expand_word(const char *word, struct list *words);
char *expand_single(const char *word);
int glob_matches(const char *pattern, const char *name);
long evaluate(const char *expression);

/* ---- commands.c ---- */

typedef int (*command)(struct list *words, const struct text *input, struct text *output);

command find_command(const char *name);

/* ---- run.c ---- */

int run(struct node *node, const struct text *input, struct text *output);
void forget_functions(void);

#endif
