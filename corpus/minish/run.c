/* Running a tree. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

enum { MAX_FUNCTIONS = 32, MOST_ROUNDS = 10000 };

static struct {
    char *name;
    struct node *body; /* belongs to the script's tree */
} functions[MAX_FUNCTIONS];
static int function_count;

static struct node *find_function(const char *name) {
    for (int i = 0; i < function_count; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].body;
    return NULL;
}

static int define_function(struct node *node) {
    for (int i = 0; i < function_count; i++) {
        if (strcmp(functions[i].name, node->name) == 0) {
            functions[i].body = node->parts[1];
            return 0;
        }
    }
    if (function_count == MAX_FUNCTIONS)
        return 1;
    functions[function_count].name = copy(node->name);
    functions[function_count++].body = node->parts[1];
    return 0;
}

void forget_functions(void) {
    while (function_count > 0)
        free(functions[--function_count].name);
}

/* NAME=value at the start of a word; returns the length of the name, or 0. */
static size_t assignment_length(const char *word) {
    size_t length = 0;
    if (!isalpha((unsigned char)*word) && *word != '_')
        return 0;
    while (isalnum((unsigned char)word[length]) || word[length] == '_')
        length++;
    return word[length] == '=' ? length : 0;
}

static void assign(const char *word, size_t length) {
    char *name = copy(word), *value = expand_single(word + length + 1);
    name[length] = '\0';
    set_variable(name, value);
    free(name);
    free(value);
}

static int call_function(struct node *body, struct list *words, const struct text *input,
                         struct text *output) {
    struct list *outer = arguments;
    struct list inner = {0};
    for (int i = 1; i < words->count; i++)
        list_add(&inner, copy(words->items[i]));
    push_scope();
    arguments = &inner;
    int status = run(body, input, output);
    arguments = outer;
    pop_scope();
    list_free(&inner);
    return status;
}

static int run_command(struct node *node, const struct text *input, struct text *output) {
    struct list words = {0};
    int first = 0, status = 0;
    for (; first < node->words.count; first++) {
        size_t length = assignment_length(node->words.items[first]);
        if (length == 0)
            break;
        assign(node->words.items[first], length);
    }
    for (int i = first; i < node->words.count; i++)
        expand_word(node->words.items[i], &words);
    if (words.count > 0) {
        struct node *function = find_function(words.items[0]);
        command builtin = find_command(words.items[0]);
        if (function) {
            status = call_function(function, &words, input, output);
        } else if (builtin) {
            status = builtin(&words, input, output);
        } else {
            text_puts(output, words.items[0]);
            text_puts(output, ": no such command\n");
            status = 127;
        }
    }
    list_free(&words);
    return status;
}

/* Runs with the redirections of the node; files are written when all is done. */
static int run_redirected(struct node *node, const struct text *input, struct text *output,
                          int (*inner)(struct node *, const struct text *, struct text *)) {
    struct text collected = {0}, kept = {0};
    char *target = NULL;
    int append = 0, status = 0;
    for (int i = 0; i < node->redirect_count && status == 0; i++) {
        char *name = expand_single(node->redirects[i].target);
        if (node->redirects[i].kind == REDIRECT_IN) {
            struct text *file = find_file(name);
            if (file) {
                text_free(&kept);
                text_add(&kept, file->bytes, file->length);
                input = &kept;
            } else {
                text_puts(output, name);
                text_puts(output, ": no such file\n");
                status = 1;
            }
            free(name);
        } else {
            free(target);
            target = name;
            append = node->redirects[i].kind == REDIRECT_APPEND;
        }
    }
    if (status == 0)
        status = inner(node, input, target ? &collected : output);
    if (target) {
        struct text *file = find_file(target);
        if (!append || !file)
            file = make_file(target);
        text_add(file, collected.bytes ? collected.bytes : "", collected.length);
    }
    text_free(&collected);
    text_free(&kept);
    free(target);
    return status;
}

static int run_pipe(struct node *node, const struct text *input, struct text *output) {
    struct text between = {0};
    text_puts(&between, "");
    run(node->parts[0], input, &between);
    int status = run(node->parts[1], &between, output);
    text_free(&between);
    return status;
}

static int run_for(struct node *node, const struct text *input, struct text *output) {
    struct list words = {0};
    int status = 0;
    for (int i = 0; i < node->words.count; i++)
        expand_word(node->words.items[i], &words);
    for (int i = 0; i < words.count; i++) {
        set_variable(node->name, words.items[i]);
        status = run(node->parts[1], input, output);
    }
    list_free(&words);
    return status;
}

static int run_while(struct node *node, const struct text *input, struct text *output) {
    int status = 0;
    for (int round = 0; run(node->parts[0], input, output) == 0; round++) {
        if (round == MOST_ROUNDS) {
            text_puts(output, "a loop does not end\n");
            return 1;
        }
        status = run(node->parts[1], input, output);
    }
    return status;
}

static int run_compound(struct node *node, const struct text *input, struct text *output) {
    switch (node->kind) {
    case NODE_COMMAND:
        return run_command(node, input, output);
    case NODE_PIPE:
        return run_pipe(node, input, output);
    case NODE_AND:
        return run(node->parts[0], input, output) || run(node->parts[1], input, output);
    case NODE_OR: {
        int status = run(node->parts[0], input, output);
        return status ? run(node->parts[1], input, output) : 0;
    }
    case NODE_SEQUENCE:
        run(node->parts[0], input, output);
        return node->parts[1] ? run(node->parts[1], input, output) : last_status;
    case NODE_IF:
        if (run(node->parts[0], input, output) == 0)
            return run(node->parts[1], input, output);
        return node->parts[2] ? run(node->parts[2], input, output) : 0;
    case NODE_WHILE:
        return run_while(node, input, output);
    case NODE_FOR:
        return run_for(node, input, output);
    case NODE_FUNCTION:
        return define_function(node);
    case NODE_NOT:
        return !run(node->parts[0], input, output);
    }
    return 0;
}

int run(struct node *node, const struct text *input, struct text *output) {
    if (!node)
        return 0;
    last_status = node->redirect_count > 0 ? run_redirected(node, input, output, run_compound)
                                           : run_compound(node, input, output);
    return last_status;
}
