/* Variables with scopes, and files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

enum { MAX_VARIABLES = 256, MAX_FILES = 64, MAX_SCOPES = 32 };

struct variable {
    char *name;
    char *value; /* NULL: not set */
};

/* A local variable hides the value kept here until its scope ends. */
struct hidden {
    int variable;
    char *value;
    int scope;
};

static struct variable variables[MAX_VARIABLES];
static int variable_count;
static struct hidden hidden[MAX_VARIABLES];
static int hidden_count;
static int scope;

static int find_variable(const char *name, size_t length) {
    for (int i = 0; i < variable_count; i++)
        if (strlen(variables[i].name) == length &&
            strncmp(variables[i].name, name, length) == 0)
            return i;
    return -1;
}

static int need_variable(const char *name) {
    int index = find_variable(name, strlen(name));
    if (index >= 0)
        return index;
    if (variable_count == MAX_VARIABLES) {
        printf("too many variables\n");
        exit(3);
    }
    variables[variable_count].name = copy(name);
    return variable_count++;
}

const char *get_variable(const char *name, size_t length) {
    int index = find_variable(name, length);
    return index >= 0 ? variables[index].value : NULL;
}

void set_variable(const char *name, const char *value) {
    int index = need_variable(name);
    char *fresh = copy(value);
    free(variables[index].value);
    variables[index].value = fresh;
}

void unset_variable(const char *name) {
    int index = find_variable(name, strlen(name));
    if (index >= 0) {
        free(variables[index].value);
        variables[index].value = NULL;
    }
}

void push_scope(void) {
    if (++scope == MAX_SCOPES) {
        printf("functions call each other too deeply\n");
        exit(3);
    }
}

void pop_scope(void) {
    while (hidden_count > 0 && hidden[hidden_count - 1].scope == scope) {
        struct hidden *last = &hidden[--hidden_count];
        free(variables[last->variable].value);
        variables[last->variable].value = last->value;
    }
    scope--;
}

void make_local(const char *name) {
    int index = need_variable(name);
    if (scope == 0 || hidden_count == MAX_VARIABLES)
        return;
    hidden[hidden_count++] = (struct hidden){index, variables[index].value, scope};
    variables[index].value = NULL;
}

/* ---- files ---- */

static struct {
    char *name;
    struct text content;
} files[MAX_FILES];
static int file_count;

struct text *find_file(const char *name) {
    for (int i = 0; i < file_count; i++)
        if (strcmp(files[i].name, name) == 0)
            return &files[i].content;
    return NULL;
}

struct text *make_file(const char *name) {
    struct text *content = find_file(name);
    if (!content) {
        if (file_count == MAX_FILES) {
            printf("too many files\n");
            exit(3);
        }
        files[file_count].name = copy(name);
        content = &files[file_count++].content;
    }
    text_free(content);
    text_puts(content, "");
    return content;
}

int remove_file(const char *name) {
    for (int i = 0; i < file_count; i++) {
        if (strcmp(files[i].name, name) != 0)
            continue;
        free(files[i].name);
        text_free(&files[i].content);
        files[i] = files[--file_count];
        return 1;
    }
    return 0;
}

void list_files(struct list *names) {
    for (int i = 0; i < file_count; i++)
        list_add(names, copy(files[i].name));
    list_sort(names, strcmp);
}
