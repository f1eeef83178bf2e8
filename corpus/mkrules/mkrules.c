/* mkrules: decides what a makefile would rebuild, without running anything.
 *
 * usage: mkrules [-n] [-B] [-W FILE]... [-f FILE] [NAME=VALUE]... [GOAL]...
 *
 * The makefile holds variables (NAME = value, NAME += value), rules (targets : needs, then
 * recipe lines that start with a tab), pattern rules (%.o : %.c) and phony targets (.PHONY).
 * Ages of files are given in the makefile itself: `@age NAME N`; a file without an age does not
 * exist; larger is newer. In recipes $@ is the target, $< the first need, $^ all needs, $* the
 * stem, $(NAME) a variable. What would be run is printed in order.
 *
 *   -B       rebuild everything          -W FILE  pretend that FILE is new
 *   -n       print only the targets      -f FILE  read this makefile (default: stdin) */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 256, MAX_TEXT = 512, MAX_LINES = 8 };

struct variable {
    char *name;
    char *value;
    int fixed; /* set on the command line */
};

struct rule {
    char *target;
    char **needs;
    int need_count;
    char *recipe[MAX_LINES];
    int recipe_count;
};

struct file {
    char *name;
    long age; /* 0: does not exist */
    int phony;
    int state; /* 0 untouched, 1 being decided, 2 decided */
    int rebuilt;
};

struct makefile {
    struct variable variables[MAX_ITEMS];
    int variable_count;
    struct rule rules[MAX_ITEMS];
    int rule_count;
    struct file files[MAX_ITEMS];
    int file_count;
};

struct options {
    int names_only;
    int everything;
};

static struct makefile make;
static struct options options;
static long newest;
static int commands;

static void die(const char *message, const char *detail) {
    printf("mkrules: %s%s\n", message, detail);
    exit(2);
}

static char *copy(const char *text) {
    char *fresh = malloc(strlen(text) + 1);
    if (!fresh)
        die("out of memory", "");
    return strcpy(fresh, text);
}

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

/* ---- variables ---- */

static struct variable *find_variable(const char *name, size_t length) {
    for (int i = 0; i < make.variable_count; i++)
        if (strlen(make.variables[i].name) == length &&
            strncmp(make.variables[i].name, name, length) == 0)
            return &make.variables[i];
    return NULL;
}

static void set_variable(const char *name, const char *value, int append, int fixed) {
    struct variable *variable = find_variable(name, strlen(name));
    if (!variable) {
        if (make.variable_count == MAX_ITEMS)
            die("too many variables", "");
        variable = &make.variables[make.variable_count++];
        variable->name = copy(name);
        variable->value = copy(value);
        variable->fixed = fixed;
        return;
    }
    if (variable->fixed && !fixed)
        return;
    if (append && variable->value[0]) {
        char *joined = malloc(strlen(variable->value) + strlen(value) + 2);
        if (!joined)
            die("out of memory", "");
        sprintf(joined, "%s %s", variable->value, value);
        free(variable->value);
        variable->value = joined;
    } else {
        free(variable->value);
        variable->value = copy(value);
    }
    variable->fixed = fixed;
}

/* ---- expansion ---- */

struct context {
    const char *target;
    const char *stem;
    char **needs;
    int need_count;
};

struct text {
    char bytes[4 * MAX_TEXT];
    size_t length;
};

static void add(struct text *text, const char *bytes, size_t length) {
    if (text->length + length + 1 > sizeof text->bytes)
        die("a line is too long", "");
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static void add_needs(struct text *text, const struct context *context) {
    for (int i = 0; i < context->need_count; i++) {
        if (i > 0)
            add(text, " ", 1);
        add(text, context->needs[i], strlen(context->needs[i]));
    }
}

static void expand(struct text *text, const char *source, const struct context *context,
                   int depth);

static const char *expand_one(struct text *text, const char *source,
                              const struct context *context, int depth) {
    char c = *source;
    if (c == '$') {
        add(text, "$", 1);
        return source + 1;
    }
    if (c == '(') {
        const char *end = strchr(source, ')');
        if (!end)
            die("variable without end: ", source);
        struct variable *variable = find_variable(source + 1, (size_t)(end - source - 1));
        if (variable)
            expand(text, variable->value, context, depth + 1);
        return end + 1;
    }
    if (c == '@' && context)
        add(text, context->target, strlen(context->target));
    else if (c == '*' && context)
        add(text, context->stem, strlen(context->stem));
    else if (c == '<' && context && context->need_count > 0)
        add(text, context->needs[0], strlen(context->needs[0]));
    else if (c == '^' && context)
        add_needs(text, context);
    return c ? source + 1 : source;
}

static void expand(struct text *text, const char *source, const struct context *context,
                   int depth) {
    if (depth > 16)
        die("a variable contains itself", "");
    while (*source) {
        size_t plain = strcspn(source, "$");
        add(text, source, plain);
        source += plain;
        if (*source == '$')
            source = expand_one(text, source + 1, context, depth);
    }
}

/* ---- files ---- */

static struct file *find_file(const char *name) {
    for (int i = 0; i < make.file_count; i++)
        if (strcmp(make.files[i].name, name) == 0)
            return &make.files[i];
    if (make.file_count == MAX_ITEMS)
        die("too many files", "");
    struct file *file = &make.files[make.file_count++];
    file->name = copy(name);
    return file;
}

static void set_age(const char *name, long age) {
    find_file(name)->age = age;
    if (age > newest)
        newest = age;
}

/* ---- reading ---- */

/* Splits at blanks; the strings are copies. */
static char **split(const char *text, int *count) {
    char **words = malloc(sizeof *words * (strlen(text) / 2 + 2));
    if (!words)
        die("out of memory", "");
    *count = 0;
    while (*text) {
        while (isspace((unsigned char)*text))
            text++;
        const char *start = text;
        while (*text && !isspace((unsigned char)*text))
            text++;
        if (text > start) {
            char word[MAX_TEXT];
            snprintf(word, sizeof word, "%.*s", (int)(text - start), start);
            words[(*count)++] = copy(word);
        }
    }
    return words;
}

static void read_rule(char *line, int *first, int *last) {
    struct text left = {0}, right = {0};
    char *colon = strchr(line, ':');
    if (!colon)
        die("neither a rule nor a variable: ", line);
    *colon = '\0';
    expand(&left, line, NULL, 0);
    expand(&right, colon + 1, NULL, 0);
    int target_count;
    char **targets = split(left.bytes, &target_count);
    *first = make.rule_count;
    for (int i = 0; i < target_count; i++) {
        if (make.rule_count == MAX_ITEMS)
            die("too many rules", "");
        struct rule *rule = &make.rules[make.rule_count++];
        rule->target = targets[i];
        rule->needs = split(right.bytes, &rule->need_count);
        if (strcmp(rule->target, ".PHONY") == 0)
            for (int k = 0; k < rule->need_count; k++)
                find_file(rule->needs[k])->phony = 1;
    }
    *last = make.rule_count;
    free(targets);
}

static void read_recipe(const char *line, int first, int last) {
    if (first == last)
        die("a recipe without a rule: ", line);
    for (int i = first; i < last; i++) {
        struct rule *rule = &make.rules[i];
        if (rule->recipe_count == MAX_LINES)
            die("a recipe is too long: ", line);
        rule->recipe[rule->recipe_count++] = copy(line);
    }
}

static int read_variable(char *line) {
    char *equals = strchr(line, '=');
    if (!equals || (strchr(line, ':') && strchr(line, ':') < equals))
        return 0;
    int append = equals > line && equals[-1] == '+';
    *equals = '\0';
    if (append)
        equals[-1] = '\0';
    set_variable(trimmed(line), trimmed(equals + 1), append, 0);
    return 1;
}

static void read_makefile(FILE *file) {
    char line[MAX_TEXT];
    int first = 0, last = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '\t') {
            read_recipe(trimmed(line), first, last);
            continue;
        }
        char *hash = strchr(line, '#');
        if (hash)
            *hash = '\0';
        char *text = trimmed(line), name[MAX_TEXT];
        long age;
        if (*text == '\0')
            continue;
        if (sscanf(text, "@age %511s %ld", name, &age) == 2)
            set_age(name, age);
        else if (!read_variable(text))
            read_rule(text, &first, &last);
    }
}

/* ---- deciding ---- */

/* The stem if the name fits the pattern, such as main for %.o and main.o; else NULL. */
static char *match_pattern(const char *pattern, const char *name) {
    const char *percent = strchr(pattern, '%');
    if (!percent)
        return NULL;
    size_t before = (size_t)(percent - pattern), after = strlen(percent + 1);
    size_t length = strlen(name);
    if (length < before + after || strncmp(name, pattern, before) != 0 ||
        strcmp(name + length - after, percent + 1) != 0)
        return NULL;
    char *stem = copy(name + before);
    stem[length - before - after] = '\0';
    return stem;
}

static char *with_stem(const char *pattern, const char *stem) {
    char name[MAX_TEXT];
    const char *percent = strchr(pattern, '%');
    if (!percent)
        return copy(pattern);
    snprintf(name, sizeof name, "%.*s%s%s", (int)(percent - pattern), pattern, stem,
             percent + 1);
    return copy(name);
}

static int has_rule(const char *name) {
    for (int i = 0; i < make.rule_count; i++)
        if (strcmp(make.rules[i].target, name) == 0)
            return 1;
    return 0;
}

/* All needs of a target, from its explicit rules and, if those have no recipe, from the first
 * pattern rule whose first need exists or can be made. Returns the rule with the recipe. */
static struct rule *gather(const char *name, struct context *context) {
    struct rule *recipe = NULL;
    context->needs = malloc(sizeof *context->needs * MAX_ITEMS);
    if (!context->needs)
        die("out of memory", "");
    for (int i = 0; i < make.rule_count; i++) {
        struct rule *rule = &make.rules[i];
        if (strcmp(rule->target, name) != 0)
            continue;
        if (rule->recipe_count > 0)
            recipe = rule;
        for (int k = 0; k < rule->need_count; k++)
            context->needs[context->need_count++] = copy(rule->needs[k]);
    }
    for (int i = 0; i < make.rule_count && !recipe; i++) {
        struct rule *rule = &make.rules[i];
        char *stem = match_pattern(rule->target, name);
        if (!stem)
            continue;
        char *first = rule->need_count > 0 ? with_stem(rule->needs[0], stem) : NULL;
        if (first && find_file(first)->age == 0 && !has_rule(first))
            continue;
        recipe = rule;
        context->stem = stem;
        int explicit_count = context->need_count;
        for (int k = 0; k < rule->need_count; k++)
            context->needs[context->need_count++] = with_stem(rule->needs[k], stem);
        /* The pattern's own needs come first, so that $< is the source. */
        for (int k = 0; k < rule->need_count && explicit_count > 0; k++) {
            char *moved = context->needs[explicit_count + k];
            memmove(context->needs + k + 1, context->needs + k,
                    (size_t)explicit_count * sizeof *context->needs);
            context->needs[k] = moved;
        }
    }
    return recipe;
}

static void run_recipe(const struct rule *rule, const struct context *context) {
    if (options.names_only) {
        printf("%s\n", context->target);
        commands++;
        return;
    }
    for (int i = 0; i < rule->recipe_count; i++) {
        struct text text = {0};
        const char *line = rule->recipe[i];
        if (*line == '@')
            line++;
        expand(&text, line, context, 0);
        printf("%s\n", text.bytes);
        commands++;
    }
}

static void update(const char *name, const char *for_whom) {
    struct file *file = find_file(name);
    if (file->state == 2)
        return;
    if (file->state == 1) {
        printf("circle: %s needs %s\n", for_whom, name);
        return;
    }
    file->state = 1;
    struct context context = {.target = name, .stem = ""};
    struct rule *rule = gather(name, &context);
    if (!rule && context.need_count == 0 && file->age == 0 && !file->phony)
        die("nothing makes ", name);
    int stale = options.everything || file->age == 0 || file->phony;
    for (int i = 0; i < context.need_count; i++) {
        update(context.needs[i], name);
        struct file *need = find_file(context.needs[i]);
        stale = need->rebuilt || need->age > file->age;
    }
    if (stale && rule) {
        run_recipe(rule, &context);
        file->rebuilt = 1;
        file->age = newest + 1;
    } else if (stale && context.need_count > 0) {
        file->rebuilt = 1;
    }
    file->state = 2;
    free(context.needs);
}

static const char *default_goal(void) {
    for (int i = 0; i < make.rule_count; i++)
        if (make.rules[i].target[0] != '.' && !strchr(make.rules[i].target, '%'))
            return make.rules[i].target;
    die("no goal", "");
    return NULL;
}

int main(int argc, char **argv) {
    const char *goals[MAX_ITEMS], *pretended[MAX_ITEMS];
    int goal_count = 0, pretended_count = 0;
    FILE *file = stdin;
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (strcmp(argv[i], "-n") == 0)
            options.names_only = 1;
        else if (strcmp(argv[i], "-B") == 0)
            options.everything = 1;
        else if (strcmp(argv[i], "-W") == 0 && i + 1 < argc)
            pretended[pretended_count++] = argv[++i];
        else if (strcmp(argv[i], "-f") == 0 && i + 1 < argc) {
            if (!(file = fopen(argv[++i], "r")))
                die("cannot open ", argv[i]);
        } else if (equals) {
            *equals = '\0';
            set_variable(argv[i], equals + 1, 0, 1);
        } else if (argv[i][0] == '-') {
            die("no such option: ", argv[i]);
        } else {
            goals[goal_count++] = argv[i];
        }
    }
    read_makefile(file);
    for (int i = 0; i < pretended_count; i++)
        set_age(pretended[i], newest + 1);
    if (goal_count == 0)
        goals[goal_count++] = default_goal();
    for (int i = 0; i < goal_count; i++) {
        int before = commands;
        update(goals[i], "the command line");
        if (commands == before)
            printf("%s is up to date\n", goals[i]);
    }
    return 0;
}
