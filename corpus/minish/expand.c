/* Expansion of words: variables, $(commands), $((arithmetic)), quotes, then patterns. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

int last_status;
struct list *arguments;

/* A word under construction. Quoted pattern characters are marked by a backslash before them. */
struct builder {
    struct text text;
    struct list *words;
    int started; /* there is a word, even if it is empty */
    int split;   /* unquoted blanks end words */
};

/* ---- patterns ---- */

int glob_matches(const char *pattern, const char *name) {
    if (*pattern == '\0')
        return *name == '\0';
    if (*pattern == '*')
        return glob_matches(pattern + 1, name) || (*name && glob_matches(pattern, name + 1));
    if (*pattern == '\\' && pattern[1])
        pattern++;
    else if (*pattern == '?')
        return *name && glob_matches(pattern + 1, name + 1);
    return *pattern == *name && glob_matches(pattern + 1, name + 1);
}

static int is_pattern(const char *word) {
    for (; *word; word++) {
        if (*word == '\\' && word[1])
            word++;
        else if (*word == '*' || *word == '?')
            return 1;
    }
    return 0;
}

static char *without_marks(const char *word) {
    char *result = copy(word), *out = result;
    for (; *word; word++) {
        if (*word == '\\' && word[1])
            word++;
        *out++ = *word;
    }
    *out = '\0';
    return result;
}

static void finish_word(struct builder *builder) {
    if (!builder->started)
        return;
    text_puts(&builder->text, "");
    int before = builder->words->count;
    if (builder->split && is_pattern(builder->text.bytes)) {
        struct list names = {0};
        list_files(&names);
        for (int i = 0; i < names.count; i++)
            if (glob_matches(builder->text.bytes, names.items[i]))
                list_add(builder->words, copy(names.items[i]));
        list_free(&names);
    }
    if (builder->words->count == before)
        list_add(builder->words, without_marks(builder->text.bytes));
    text_free(&builder->text);
    builder->started = 0;
}

static void add_quoted(struct builder *builder, const char *bytes, size_t length) {
    builder->started = 1;
    for (size_t i = 0; i < length; i++) {
        if (strchr("*?\\", bytes[i]))
            text_putc(&builder->text, '\\');
        text_putc(&builder->text, bytes[i]);
    }
}

/* What comes out of an unquoted expansion is split at blanks. */
static void add_split(struct builder *builder, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (builder->split && isspace((unsigned char)bytes[i])) {
            finish_word(builder);
        } else {
            builder->started = 1;
            text_putc(&builder->text, bytes[i]);
        }
    }
}

static void add_value(struct builder *builder, const char *value, int quoted) {
    if (quoted)
        add_quoted(builder, value, strlen(value));
    else
        add_split(builder, value, strlen(value));
}

/* ---- arithmetic ---- */

struct arithmetic {
    const char *cursor;
};

static long comparison(struct arithmetic *a);

static void skip(struct arithmetic *a) {
    while (isspace((unsigned char)*a->cursor))
        a->cursor++;
}

static int accept(struct arithmetic *a, const char *token) {
    skip(a);
    if (strncmp(a->cursor, token, strlen(token)) != 0)
        return 0;
    a->cursor += strlen(token);
    return 1;
}

static long factor(struct arithmetic *a) {
    skip(a);
    if (accept(a, "(")) {
        long value = comparison(a);
        accept(a, ")");
        return value;
    }
    if (accept(a, "-"))
        return -factor(a);
    if (*a->cursor == '$')
        a->cursor++;
    if (isalpha((unsigned char)*a->cursor) || *a->cursor == '_') {
        const char *start = a->cursor;
        while (isalnum((unsigned char)*a->cursor) || *a->cursor == '_')
            a->cursor++;
        const char *value = get_variable(start, (size_t)(a->cursor - start));
        return value ? atol(value) : 0;
    }
    char *end;
    long value = strtol(a->cursor, &end, 10);
    a->cursor = end;
    return value;
}

static long product(struct arithmetic *a) {
    long value = factor(a);
    for (;;) {
        if (accept(a, "*")) {
            value *= factor(a);
        } else if (accept(a, "/")) {
            long right = factor(a);
            value = right ? value / right : 0;
        } else if (accept(a, "%")) {
            long right = factor(a);
            value = right ? value % right : 0;
        } else {
            return value;
        }
    }
}

static long sum(struct arithmetic *a) {
    long value = product(a);
    for (;;) {
        if (accept(a, "+"))
            value += product(a);
        else if (accept(a, "-"))
            value -= product(a);
        else
            return value;
    }
}

static long comparison(struct arithmetic *a) {
    long value = sum(a);
    if (accept(a, "<="))
        return value <= sum(a);
    if (accept(a, ">="))
        return value >= sum(a);
    if (accept(a, "=="))
        return value == sum(a);
    if (accept(a, "!="))
        return value != sum(a);
    if (accept(a, "<"))
        return value < sum(a);
    if (accept(a, ">"))
        return value > sum(a);
    return value;
}

long evaluate(const char *expression) {
    struct arithmetic a = {expression};
    return comparison(&a);
}

/* ---- substitution ---- */

/* The end of what the bracket at `open` encloses. */
static const char *matching(const char *open) {
    int depth = 0;
    for (const char *c = open; *c; c++) {
        if (*c == '(')
            depth++;
        else if (*c == ')' && --depth == 0)
            return c;
    }
    return open + strlen(open);
}

static const char *expand_brackets(struct builder *builder, const char *open, int quoted) {
    const char *end = matching(open);
    char *inner = copy(open + 1);
    inner[end - open - 1] = '\0';
    if (open[1] == '(') {
        char number[32];
        snprintf(number, sizeof number, "%ld", evaluate(inner));
        add_value(builder, number, quoted);
    } else {
        char error[128];
        struct text output = {0}, nothing = {0};
        struct node *node = parse(inner, error, sizeof error);
        text_puts(&output, "");
        if (node)
            last_status = run(node, &nothing, &output);
        while (output.length > 0 && output.bytes[output.length - 1] == '\n')
            output.bytes[--output.length] = '\0';
        add_value(builder, output.bytes, quoted);
        text_free(&output);
        free_node(node);
    }
    free(inner);
    return *end ? end + 1 : end;
}

static void expand_arguments(struct builder *builder, int quoted) {
    for (int i = 0; arguments && i < arguments->count; i++) {
        if (i > 0 && builder->split)
            finish_word(builder);
        else if (i > 0)
            text_putc(&builder->text, ' ');
        add_value(builder, arguments->items[i], quoted);
    }
}

/* ${name}, ${name:-default}, ${#name} */
static const char *expand_braces(struct builder *builder, const char *cursor, int quoted) {
    const char *end = strchr(cursor, '}');
    char number[32];
    if (!end)
        return cursor + strlen(cursor);
    if (*cursor == '#') {
        const char *value = get_variable(cursor + 1, (size_t)(end - cursor - 1));
        snprintf(number, sizeof number, "%zu", value ? strlen(value) : 0);
        add_value(builder, number, quoted);
        return end + 1;
    }
    const char *colon = memchr(cursor, ':', (size_t)(end - cursor));
    size_t length = (size_t)((colon ? colon : end) - cursor);
    const char *value = get_variable(cursor, length);
    if (colon && colon[1] == '-' && (!value || !*value)) {
        char *fallback = copy(colon + 2);
        fallback[end - colon - 2] = '\0';
        add_value(builder, fallback, quoted);
        free(fallback);
    } else if (value) {
        add_value(builder, value, quoted);
    }
    return end + 1;
}

/* Expands what follows a dollar; returns where to go on. */
static const char *expand_dollar(struct builder *builder, const char *cursor, int quoted) {
    char number[32];
    if (*cursor == '(')
        return expand_brackets(builder, cursor, quoted);
    if (*cursor == '{')
        return expand_braces(builder, cursor + 1, quoted);
    if (*cursor == '?' || *cursor == '#') {
        int value = *cursor == '?' ? last_status : arguments ? arguments->count : 0;
        snprintf(number, sizeof number, "%d", value);
        add_value(builder, number, quoted);
        return cursor + 1;
    }
    if (*cursor == '@') {
        expand_arguments(builder, quoted);
        return cursor + 1;
    }
    if (isdigit((unsigned char)*cursor)) {
        int index = *cursor - '1';
        if (arguments && index >= 0 && index < arguments->count)
            add_value(builder, arguments->items[index], quoted);
        return cursor + 1;
    }
    const char *start = cursor;
    while (isalnum((unsigned char)*cursor) || *cursor == '_')
        cursor++;
    if (cursor == start) {
        add_quoted(builder, "$", 1);
        return cursor;
    }
    const char *value = get_variable(start, (size_t)(cursor - start));
    if (value)
        add_value(builder, value, quoted);
    return cursor;
}

static const char *expand_double_quotes(struct builder *builder, const char *cursor) {
    builder->started = 1;
    while (*cursor && *cursor != '"') {
        if (*cursor == '\\' && cursor[1] && strchr("\"\\$", cursor[1])) {
            add_quoted(builder, cursor + 1, 1);
            cursor += 2;
        } else if (*cursor == '$') {
            cursor = expand_dollar(builder, cursor + 1, 0);
        } else {
            add_quoted(builder, cursor, 1);
            cursor++;
        }
    }
    return *cursor ? cursor + 1 : cursor;
}

static void build(struct builder *builder, const char *word) {
    while (*word) {
        if (*word == '\'') {
            const char *end = strchr(word + 1, '\'');
            builder->started = 1;
            add_quoted(builder, word + 1, (size_t)(end - word - 1));
            word = end + 1;
        } else if (*word == '"') {
            word = expand_double_quotes(builder, word + 1);
        } else if (*word == '\\' && word[1]) {
            add_quoted(builder, word + 1, 1);
            word += 2;
        } else if (*word == '$') {
            word = expand_dollar(builder, word + 1, 0);
        } else {
            builder->started = 1;
            text_putc(&builder->text, *word++);
        }
    }
    finish_word(builder);
}

void expand_word(const char *word, struct list *words) {
    struct builder builder = {.words = words, .split = 1};
    build(&builder, word);
}

/* One word, neither split nor matched with files: for assignments and redirections. */
char *expand_single(const char *word) {
    struct list words = {0};
    struct builder builder = {.words = &words, .split = 0};
    builder.started = 1;
    build(&builder, word);
    char *result = copy(words.items[0]);
    list_free(&words);
    return result;
}
