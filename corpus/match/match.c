/* match: prints the lines of files that match a pattern.
 *
 * usage: match [-i] [-v] [-n] [-c] [-w] [-o] [-x] [-m NUM] [-h] PATTERN [FILE...]
 *
 *   -i  ignore case                 -c  print only counts
 *   -v  lines that do not match     -w  whole words only
 *   -n  with line numbers           -o  only the matching parts
 *   -x  whole lines only            -m  stop after NUM lines per file
 *   -h  without file names
 *
 * Patterns: . any character, * repetition of the one before, ^ and $ line ends, [abc] and [^a-z]
 * classes, \ takes the next character as it is. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ITEMS = 128, MAX_LINE = 1024 };

enum item_kind { ITEM_CHARACTER, ITEM_ANY, ITEM_CLASS, ITEM_START, ITEM_END };

struct item {
    enum item_kind kind;
    int repeated;
    unsigned char character;
    unsigned char members[32]; /* a bit per character */
};

struct pattern {
    struct item items[MAX_ITEMS];
    int count;
};

struct options {
    int ignore_case;
    int inverted;
    int numbers;
    int count;
    int words;
    int only;
    int whole_lines;
    int names;
    long maximum;
};

static void die(const char *message, const char *detail) {
    fprintf(stderr, "match: %s%s\n", message, detail);
    exit(2);
}

/* ---- compiling the pattern ---- */

static void add_member(struct item *item, unsigned char c) {
    item->members[c / 8] |= (unsigned char)(1u << (c % 8));
}

static int has_member(const struct item *item, unsigned char c) {
    return item->members[c / 8] >> (c % 8) & 1;
}

static const char *compile_class(struct item *item, const char *text) {
    int negated = 0, first = 1;
    item->kind = ITEM_CLASS;
    if (*text == '^') {
        negated = 1;
        text++;
    }
    while (*text && (*text != ']' || first)) {
        first = 0;
        unsigned char low = (unsigned char)*text, high = low;
        if (text[1] == '-' && text[2] && text[2] != ']') {
            high = (unsigned char)text[2];
            text += 2;
        }
        for (int c = low; c <= high; c++)
            add_member(item, (unsigned char)c);
        text++;
    }
    if (*text != ']')
        die("class without end", "");
    if (negated)
        for (int i = 0; i < 32; i++)
            item->members[i] = (unsigned char)~item->members[i];
    return text + 1;
}

static void fold_class(struct item *item) {
    for (int c = 'a'; c <= 'z'; c++) {
        int lower = has_member(item, (unsigned char)c);
        int upper = has_member(item, (unsigned char)toupper(c));
        if (lower || upper) {
            add_member(item, (unsigned char)c);
            add_member(item, (unsigned char)toupper(c));
        }
    }
}

static void compile(struct pattern *pattern, const char *text, const struct options *options) {
    while (*text) {
        if (pattern->count == MAX_ITEMS)
            die("pattern too long", "");
        struct item *item = &pattern->items[pattern->count];
        if (*text == '*' && pattern->count > 0 && !item[-1].repeated) {
            item[-1].repeated = 1;
            text++;
            continue;
        }
        pattern->count++;
        if (*text == '.') {
            item->kind = ITEM_ANY;
            text++;
        } else if (*text == '^' && pattern->count == 1) {
            item->kind = ITEM_START;
            text++;
        } else if (*text == '$' && text[1] == '\0') {
            item->kind = ITEM_END;
            text++;
        } else if (*text == '[') {
            text = compile_class(item, text + 1);
            if (options->ignore_case)
                fold_class(item);
        } else {
            if (*text == '\\' && text[1])
                text++;
            item->kind = ITEM_CHARACTER;
            item->character = (unsigned char)*text++;
            if (options->ignore_case)
                item->character = (unsigned char)tolower(item->character);
        }
    }
}

/* ---- matching ---- */

struct subject {
    const char *text;   /* as it is printed */
    const char *folded; /* as it is compared */
    int length;
};

static int item_fits(const struct item *item, unsigned char c) {
    switch (item->kind) {
    case ITEM_CHARACTER:
        return item->character == c;
    case ITEM_ANY:
        return 1;
    case ITEM_CLASS:
        return has_member(item, c);
    default:
        return 0;
    }
}

/* The end of the longest match of the items from `index` on at `position`, or -1. */
static int match_here(const struct pattern *pattern, int index, const struct subject *subject,
                      int position) {
    if (index == pattern->count)
        return position;
    const struct item *item = &pattern->items[index];
    if (item->kind == ITEM_START)
        return position == 0 ? match_here(pattern, index + 1, subject, position) : -1;
    if (item->kind == ITEM_END)
        return position == subject->length ? position : -1;
    if (item->repeated) {
        int most = position;
        while (most < subject->length && item_fits(item, (unsigned char)subject->folded[most]))
            most++;
        for (int next = most; next >= position; next--) {
            int end = match_here(pattern, index + 1, subject, next);
            if (end >= 0)
                return end;
        }
        return -1;
    }
    if (position == subject->length || !item_fits(item, (unsigned char)subject->folded[position]))
        return -1;
    return match_here(pattern, index + 1, subject, position + 1);
}

static int is_word_character(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static int is_whole_word(const struct subject *subject, int begin, int end) {
    int left = begin == 0 || !is_word_character(subject->text[begin - 1]);
    int right = end == subject->length || !is_word_character(subject->text[end]);
    return left && right;
}

/* Finds the first acceptable match from `from` on; returns where it begins, or -1. */
static int find_match(const struct pattern *pattern, const struct subject *subject, int from,
                      const struct options *options, int *end) {
    for (int begin = from; begin <= subject->length; begin++) {
        *end = match_here(pattern, 0, subject, begin);
        if (*end < 0)
            continue;
        if (options->whole_lines && (begin != 0 || *end != subject->length))
            continue;
        if (options->words && !is_whole_word(subject, begin, *end))
            return -1;
        return begin;
    }
    return -1;
}

/* ---- files ---- */

static void print_prefix(const char *name, long number, const struct options *options) {
    if (options->names)
        printf("%s:", name);
    if (options->numbers)
        printf("%ld:", number);
}

static void print_parts(const struct pattern *pattern, const struct subject *subject,
                        const char *name, long number, const struct options *options) {
    int from = 0, begin, end;
    while (from <= subject->length &&
           (begin = find_match(pattern, subject, from, options, &end)) >= 0) {
        if (end > begin) {
            print_prefix(name, number, options);
            printf("%.*s\n", end - begin, subject->text + begin);
        }
        from = end > begin ? end : begin + 1;
    }
}

static void fold(const char *text, char *folded) {
    do
        *folded++ = (char)tolower((unsigned char)*text);
    while (*text++);
}

/* Returns how many lines were selected. */
static long search(FILE *file, const char *name, const struct pattern *pattern,
                   const struct options *options) {
    char line[MAX_LINE], folded[MAX_LINE];
    long number = 0, selected = 0;
    while (fgets(line, sizeof line, file)) {
        struct subject subject = {line, line, 0};
        int end;
        number++;
        line[strcspn(line, "\n")] = '\0';
        subject.length = (int)strlen(line);
        if (options->ignore_case) {
            fold(line, folded);
            subject.folded = folded;
        }
        int found = find_match(pattern, &subject, 0, options, &end) >= 0;
        if (found == options->inverted)
            continue;
        selected++;
        if (!options->count) {
            if (options->only && !options->inverted) {
                print_parts(pattern, &subject, name, number, options);
            } else {
                print_prefix(name, number, options);
                printf("%s\n", line);
            }
        }
        if (options->maximum > 0 && selected == options->maximum)
            break;
    }
    if (options->count) {
        print_prefix(name, 0, &(struct options){.names = options->names});
        printf("%ld\n", selected);
    }
    return selected;
}

static struct options parse_options(int argc, char **argv) {
    struct options options = {0};
    int letter, hide_names = 0;
    while ((letter = getopt(argc, argv, "ivncwoxm:h")) != -1) {
        switch (letter) {
        case 'i':
            options.ignore_case = 1;
            break;
        case 'v':
            options.inverted = 1;
            break;
        case 'n':
            options.numbers = 1;
            break;
        case 'c':
            options.count = 1;
            break;
        case 'w':
            options.words = 1;
            break;
        case 'o':
            options.only = 1;
            break;
        case 'x':
            options.whole_lines = 1;
            break;
        case 'm':
            options.maximum = atol(optarg);
            break;
        case 'h':
            hide_names = 1;
            break;
        default:
            die("usage: match [-ivncwoxh] [-m NUM] PATTERN [FILE...]", "");
        }
    }
    options.names = argc - optind > 2 && !hide_names;
    return options;
}

int main(int argc, char **argv) {
    struct options options = parse_options(argc, argv);
    static struct pattern pattern;
    long selected = 0;
    if (optind == argc)
        die("a pattern is needed", "");
    compile(&pattern, argv[optind++], &options);
    if (optind == argc)
        selected = search(stdin, "-", &pattern, &options);
    for (; optind < argc; optind++) {
        FILE *file = fopen(argv[optind], "r");
        if (!file)
            die("cannot open ", argv[optind]);
        selected += search(file, argv[optind], &pattern, &options);
        fclose(file);
    }
    return selected == 0;
}
