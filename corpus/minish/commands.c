/* The commands: filters and such, on texts. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

/* ---- helpers ---- */

static void add_lines(struct list *lines, const struct text *text) {
    const char *cursor = text->bytes ? text->bytes : "", *end = cursor + text->length;
    while (cursor < end) {
        const char *newline = memchr(cursor, '\n', (size_t)(end - cursor));
        size_t length = newline ? (size_t)(newline - cursor) : (size_t)(end - cursor);
        char *line = need(malloc(length + 1));
        memcpy(line, cursor, length);
        line[length] = '\0';
        list_add(lines, line);
        cursor += length + 1;
    }
}

/* Lines of the named files, or of the input if there are none. Returns 0 if a file is missing. */
static int read_lines(struct list *lines, const struct list *words, int first,
                      const struct text *input, struct text *output) {
    if (first >= words->count) {
        add_lines(lines, input);
        return 1;
    }
    for (int i = first; i < words->count; i++) {
        const struct text *file = find_file(words->items[i]);
        if (!file) {
            text_puts(output, words->items[i]);
            text_puts(output, ": no such file\n");
            return 0;
        }
        add_lines(lines, file);
    }
    return 1;
}

static void put_line(struct text *output, const char *line) {
    text_puts(output, line);
    text_putc(output, '\n');
}

/* Options such as -rn; returns the index of the first other word. */
static int take_options(const struct list *words, const char *known, int *found) {
    int i = 1;
    for (; i < words->count && words->items[i][0] == '-' && words->items[i][1]; i++) {
        for (const char *c = words->items[i] + 1; *c; c++) {
            const char *place = strchr(known, *c);
            if (!place)
                return i;
            found[place - known] = 1;
        }
    }
    return i;
}

/* ---- commands ---- */

static int do_echo(struct list *words, const struct text *input, struct text *output) {
    (void)input;
    int plain = words->count > 1 && strcmp(words->items[1], "-n") == 0;
    for (int i = 1 + plain; i < words->count; i++) {
        if (i > 1 + plain)
            text_putc(output, ' ');
        text_puts(output, words->items[i]);
    }
    if (!plain)
        text_putc(output, '\n');
    return 0;
}

static int do_cat(struct list *words, const struct text *input, struct text *output) {
    struct list lines = {0};
    int numbered = 0;
    int first = take_options(words, "n", &numbered);
    int status = !read_lines(&lines, words, first, input, output);
    for (int i = 0; i < lines.count && status == 0; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d\t", i + 1);
        if (numbered)
            text_puts(output, number);
        put_line(output, lines.items[i]);
    }
    list_free(&lines);
    return status;
}

static int by_number(const char *a, const char *b) {
    long x = atol(a), y = atol(b);
    return x != y ? (x > y) - (x < y) : strcmp(a, b);
}

static int do_sort(struct list *words, const struct text *input, struct text *output) {
    struct list lines = {0};
    int options[3] = {0};
    int first = take_options(words, "nru", options);
    int status = !read_lines(&lines, words, first, input, output);
    list_sort(&lines, options[0] ? by_number : strcmp);
    for (int i = 0; i < lines.count && status == 0; i++) {
        int index = options[1] ? lines.count - 1 - i : i;
        int previous = options[1] ? index + 1 : index - 1;
        if (options[2] && i > 0 && strcmp(lines.items[index], lines.items[previous]) == 0)
            continue;
        put_line(output, lines.items[index]);
    }
    list_free(&lines);
    return status;
}

static int do_uniq(struct list *words, const struct text *input, struct text *output) {
    struct list lines = {0};
    int counted = 0;
    int first = take_options(words, "c", &counted);
    int status = !read_lines(&lines, words, first, input, output);
    for (int i = 0; i < lines.count && status == 0;) {
        int run = 1;
        while (i + run < lines.count && strcmp(lines.items[i], lines.items[i + run]) == 0)
            run++;
        char number[16];
        snprintf(number, sizeof number, "%4d ", run);
        if (counted)
            text_puts(output, number);
        put_line(output, lines.items[i]);
        i += run;
    }
    list_free(&lines);
    return status;
}

static int do_wc(struct list *words, const struct text *input, struct text *output) {
    struct list lines = {0};
    int options[3] = {0};
    int first = take_options(words, "lwc", options);
    int status = !read_lines(&lines, words, first, input, output);
    long counts[3] = {lines.count, 0, 0};
    int any = options[0] || options[1] || options[2], printed = 0;
    for (int i = 0; i < lines.count; i++) {
        int inside = 0;
        for (const char *c = lines.items[i]; *c; c++) {
            int blank = isspace((unsigned char)*c);
            counts[1] += !blank && !inside;
            inside = !blank;
        }
        counts[2] += (long)strlen(lines.items[i]) + 1;
    }
    for (int i = 0; i < 3 && status == 0; i++) {
        char number[32];
        if (any && !options[i])
            continue;
        snprintf(number, sizeof number, "%s%ld", printed++ ? " " : "", counts[i]);
        text_puts(output, number);
    }
    if (status == 0)
        text_putc(output, '\n');
    list_free(&lines);
    return status;
}

/* head -N and tail -N */
static int part_of(struct list *words, const struct text *input, struct text *output, int end) {
    struct list lines = {0};
    int count = 10, first = 1;
    if (words->count > 1 && words->items[1][0] == '-' && isdigit((unsigned char)words->items[1][1])) {
        count = atoi(words->items[1] + 1);
        first = 2;
    }
    int status = !read_lines(&lines, words, first, input, output);
    int from = end && lines.count > count ? lines.count - count - 1 : 0;
    int to = end || lines.count < count ? lines.count : count;
    for (int i = from; i < to && status == 0; i++)
        put_line(output, lines.items[i]);
    list_free(&lines);
    return status;
}

static int do_head(struct list *words, const struct text *input, struct text *output) {
    return part_of(words, input, output, 0);
}

static int do_tail(struct list *words, const struct text *input, struct text *output) {
    return part_of(words, input, output, 1);
}

static int do_grep(struct list *words, const struct text *input, struct text *output) {
    struct list lines = {0};
    int options[3] = {0}, selected = 0;
    int first = take_options(words, "vcn", options);
    if (first >= words->count)
        return 2;
    const char *pattern = words->items[first];
    int status = !read_lines(&lines, words, first + 1, input, output);
    for (int i = 0; i < lines.count && status == 0; i++) {
        int found = strstr(lines.items[i], pattern) != NULL;
        char number[16];
        if (found == options[0])
            continue;
        selected++;
        snprintf(number, sizeof number, "%d:", i + 1);
        if (!options[1]) {
            if (options[2])
                text_puts(output, number);
            put_line(output, lines.items[i]);
        }
    }
    if (options[1] && status == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d\n", selected);
        text_puts(output, number);
    }
    list_free(&lines);
    return status ? 2 : selected == 0;
}

static int do_tr(struct list *words, const struct text *input, struct text *output) {
    if (words->count != 3 || words->items[2][0] == '\0')
        return 2;
    const char *from = words->items[1], *to = words->items[2];
    size_t last = strlen(to) - 1;
    for (size_t i = 0; i < input->length; i++) {
        const char *place = strchr(from, input->bytes[i]);
        size_t index = place ? (size_t)(place - from) : 0;
        text_putc(output, place && input->bytes[i] ? to[index < last ? index : last]
                                                   : input->bytes[i]);
    }
    return 0;
}

/* cut -dC -fN */
static int do_cut(struct list *words, const struct text *input, struct text *output) {
    struct list lines = {0};
    char delimiter = '\t';
    int field = 1, first = 1;
    for (; first < words->count && words->items[first][0] == '-'; first++) {
        if (words->items[first][1] == 'd')
            delimiter = words->items[first][2];
        else if (words->items[first][1] == 'f')
            field = atoi(words->items[first] + 2);
    }
    int status = !read_lines(&lines, words, first, input, output);
    for (int i = 0; i < lines.count && status == 0; i++) {
        char *start = lines.items[i], *end;
        for (int f = 1; f < field && start; f++) {
            start = strchr(start, delimiter);
            start = start ? start + 1 : NULL;
        }
        if (start && (end = strchr(start, delimiter)))
            *end = '\0';
        put_line(output, start ? start : "");
    }
    list_free(&lines);
    return status;
}

static int do_seq(struct list *words, const struct text *input, struct text *output) {
    (void)input;
    long from = words->count > 2 ? atol(words->items[1]) : 1;
    long to = words->count > 1 ? atol(words->items[words->count - 1]) : 0;
    for (long i = from; i <= to; i++) {
        char number[32];
        snprintf(number, sizeof number, "%ld\n", i);
        text_puts(output, number);
    }
    return 0;
}

static int do_test(struct list *words, const struct text *input, struct text *output) {
    (void)input;
    (void)output;
    char **items = words->items;
    int count = words->count;
    if (count > 1 && strcmp(items[0], "[") == 0 && strcmp(items[count - 1], "]") == 0)
        count--;
    if (count == 2)
        return items[1][0] == '\0';
    if (count == 3 && strcmp(items[1], "-f") == 0)
        return find_file(items[2]) == NULL;
    if (count == 3 && strcmp(items[1], "-z") == 0)
        return items[2][0] != '\0';
    if (count == 3 && strcmp(items[1], "-n") == 0)
        return items[2][0] == '\0';
    if (count != 4)
        return 2;
    long a = atol(items[1]), b = atol(items[3]);
    if (strcmp(items[2], "=") == 0)
        return strcmp(items[1], items[3]) != 0;
    if (strcmp(items[2], "!=") == 0)
        return strcmp(items[1], items[3]) == 0;
    if (strcmp(items[2], "-eq") == 0)
        return a != b;
    if (strcmp(items[2], "-ne") == 0)
        return a == b;
    if (strcmp(items[2], "-lt") == 0)
        return !(a < b);
    if (strcmp(items[2], "-le") == 0)
        return !(a <= b);
    if (strcmp(items[2], "-gt") == 0)
        return !(a > b);
    if (strcmp(items[2], "-ge") == 0)
        return !(a >= b);
    return 2;
}

static int do_ls(struct list *words, const struct text *input, struct text *output) {
    struct list names = {0};
    (void)input;
    list_files(&names);
    int found = 0;
    for (int i = 0; i < names.count; i++) {
        int wanted = words->count == 1;
        for (int k = 1; k < words->count; k++)
            wanted = wanted || strcmp(words->items[k], names.items[i]) == 0;
        if (wanted) {
            put_line(output, names.items[i]);
            found++;
        }
    }
    list_free(&names);
    return words->count > 1 && found == 0;
}

static int do_rm(struct list *words, const struct text *input, struct text *output) {
    int status = 0;
    (void)input;
    for (int i = 1; i < words->count; i++) {
        if (!remove_file(words->items[i])) {
            text_puts(output, words->items[i]);
            text_puts(output, ": no such file\n");
            status = 1;
        }
    }
    return status;
}

static int do_true(struct list *words, const struct text *input, struct text *output) {
    (void)words;
    (void)input;
    (void)output;
    return 0;
}

static int do_false(struct list *words, const struct text *input, struct text *output) {
    (void)words;
    (void)input;
    (void)output;
    return 1;
}

static int do_unset(struct list *words, const struct text *input, struct text *output) {
    (void)input;
    (void)output;
    for (int i = 1; i < words->count; i++)
        unset_variable(words->items[i]);
    return 0;
}

static int do_local(struct list *words, const struct text *input, struct text *output) {
    (void)input;
    (void)output;
    for (int i = 1; i < words->count; i++) {
        char *equals = strchr(words->items[i], '=');
        if (equals)
            *equals = '\0';
        make_local(words->items[i]);
        set_variable(words->items[i], equals ? equals + 1 : "");
    }
    return 0;
}

command find_command(const char *name) {
    static const struct {
        const char *name;
        command run;
    } commands[] = {
        {"echo", do_echo}, {"cat", do_cat},   {"sort", do_sort},   {"uniq", do_uniq},
        {"wc", do_wc},     {"head", do_head}, {"tail", do_tail},   {"grep", do_grep},
        {"tr", do_tr},     {"cut", do_cut},   {"seq", do_seq},     {"test", do_test},
        {"[", do_test},    {"ls", do_ls},     {"rm", do_rm},       {"true", do_true},
        {":", do_true},    {"false", do_false}, {"unset", do_unset}, {"local", do_local},
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run;
    return NULL;
}
