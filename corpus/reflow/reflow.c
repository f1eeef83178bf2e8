/* reflow: fills paragraphs of plain text to a given width.
 *
 * usage: reflow [-w WIDTH] [-i INDENT] [-j] [-b BULLETS] [-s] [FILE]
 *
 *   -w WIDTH    columns per line (default 60)
 *   -i INDENT   columns before the first line of a paragraph
 *   -j          justify: pad lines with spaces to the full width
 *   -b BULLETS  characters that start a list item (default "-*")
 *   -s          print a summary line at the end
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WIDTH = 200, MAX_WORDS_PER_LINE = 128 };

struct options {
    int width;
    int indent;
    int justify;
    int summary;
    const char *bullets;
};

struct text {
    char *bytes;
    size_t length;
    size_t capacity;
};

struct word {
    const char *start;
    int length;
    int ends_sentence;
};

struct word_list {
    struct word *items;
    size_t count;
    size_t capacity;
};

struct summary {
    int paragraphs;
    int lines;
    int words;
    int longest;
};

static void die(const char *message) {
    fprintf(stderr, "reflow: %s\n", message);
    exit(2);
}

static void *resize(void *old, size_t size) {
    void *fresh = realloc(old, size);
    if (!fresh)
        die("out of memory");
    return fresh;
}

/* ---- reading ---- */

static void text_append(struct text *text, const char *bytes, size_t length) {
    if (text->length + length + 1 > text->capacity) {
        size_t capacity = text->capacity ? text->capacity : 256;
        while (capacity < text->length + length + 1)
            capacity *= 2;
        text->bytes = resize(text->bytes, capacity);
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static struct text read_all(FILE *file) {
    struct text text = {0};
    char chunk[512];
    size_t got;
    text_append(&text, "", 0);
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
        text_append(&text, chunk, got);
    return text;
}

/* The line at *cursor without its newline; advances the cursor past it. */
static int next_line(const char **cursor, const char **line, int *length) {
    if (**cursor == '\0')
        return 0;
    const char *end = strchr(*cursor, '\n');
    *line = *cursor;
    if (end) {
        *length = (int)(end - *cursor);
        *cursor = end + 1;
    } else {
        *length = (int)strlen(*cursor);
        *cursor += *length;
    }
    return 1;
}

static int is_blank(const char *line, int length) {
    for (int i = 0; i < length; i++)
        if (!isspace((unsigned char)line[i]))
            return 0;
    return 1;
}

/* ---- words ---- */

static void add_word(struct word_list *list, const char *start, int length) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 64;
        list->items = resize(list->items, list->capacity * sizeof *list->items);
    }
    struct word *word = &list->items[list->count++];
    word->start = start;
    word->length = length;
    char last = start[length - 1];
    if (length > 1 && (last == '"' || last == ')'))
        last = start[length - 2];
    word->ends_sentence = last == '.' || last == '!' || last == '?';
}

static void split_words(struct word_list *list, const char *line, int length) {
    int i = 0;
    while (i < length) {
        while (i < length && isspace((unsigned char)line[i]))
            i++;
        int begin = i;
        while (i < length && !isspace((unsigned char)line[i]))
            i++;
        if (i > begin)
            add_word(list, line + begin, i - begin);
    }
}

/* ---- laying out ---- */

struct line {
    struct word *words[MAX_WORDS_PER_LINE];
    int gaps[MAX_WORDS_PER_LINE]; /* spaces after each word */
    int count;
    int margin;
    int used; /* columns taken, margin included */
};

static void start_line(struct line *line, int margin) {
    line->count = 0;
    line->margin = margin;
    line->used = margin;
}

static int gap_before(const struct line *line) {
    if (line->count == 0)
        return 0;
    return line->words[line->count - 1]->ends_sentence ? 2 : 1;
}

static int fits(const struct line *line, const struct word *word, int width) {
    if (line->count == 0)
        return 1;
    if (line->count == MAX_WORDS_PER_LINE)
        return 0;
    return line->used + gap_before(line) + word->length < width;
}

static void put_word(struct line *line, struct word *word) {
    int gap = gap_before(line);
    if (line->count > 0)
        line->gaps[line->count - 1] = gap;
    line->used += gap + word->length;
    line->words[line->count] = word;
    line->gaps[line->count] = 0;
    line->count++;
}

/* Spreads the missing columns over the gaps, from the right in odd lines and from the left in
 * even ones, so that no river runs down the page. */
static void justify(struct line *line, int width, int from_right) {
    int missing = width - line->used;
    int gaps = line->count - 1;
    if (gaps <= 0)
        return;
    int each = missing / gaps, rest = missing % gaps;
    for (int i = 0; i < gaps; i++) {
        int position = from_right ? gaps - 1 - i : i;
        line->gaps[position] += each + (i < rest ? 1 : 0);
    }
    line->used = width;
}

static void print_spaces(int count) {
    while (count-- > 0)
        putchar(' ');
}

static void print_line(const struct line *line, struct summary *summary) {
    print_spaces(line->margin);
    for (int i = 0; i < line->count; i++) {
        fwrite(line->words[i]->start, 1, (size_t)line->words[i]->length, stdout);
        print_spaces(line->gaps[i]);
    }
    putchar('\n');
    summary->lines++;
    if (line->used > summary->longest)
        summary->longest = line->used;
}

static void print_paragraph(struct word_list *words, const struct options *options, int first,
                            int rest, struct summary *summary) {
    struct line line;
    int number = 0;
    if (words->count == 0)
        return;
    start_line(&line, first);
    for (size_t i = 0; i < words->count; i++) {
        struct word *word = &words->items[i];
        if (!fits(&line, word, options->width)) {
            if (options->justify)
                justify(&line, options->width, number % 2);
            print_line(&line, summary);
            number++;
            start_line(&line, rest);
        }
        put_word(&line, word);
    }
    print_line(&line, summary);
    summary->paragraphs++;
    summary->words += (int)words->count;
    words->count = 0;
}

/* A list item starts with a bullet and a space; its text hangs below its first word. */
static int bullet_margin(const char *line, int length, const char *bullets) {
    int i = 0;
    while (i < length && line[i] == ' ')
        i++;
    if (i + 1 < length && line[i] != '\0' && strchr(bullets, line[i]) && line[i + 1] == ' ')
        return i;
    return -1;
}

static void reflow(const char *text, const struct options *options, struct summary *summary) {
    struct word_list words = {0};
    const char *line;
    int length;
    int first = options->indent, rest = 0;
    while (next_line(&text, &line, &length)) {
        int margin = bullet_margin(line, length, options->bullets);
        if (is_blank(line, length)) {
            print_paragraph(&words, options, first, rest, summary);
            first = options->indent;
            rest = 0;
            putchar('\n');
            continue;
        }
        if (margin >= 0) {
            print_paragraph(&words, options, first, rest, summary);
            first = margin;
            rest = margin + 2;
        }
        split_words(&words, line, length);
    }
    print_paragraph(&words, options, first, rest, summary);
    free(words.items);
}

/* ---- options ---- */

static int number_option(const char *text, int low, int high) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < low || value > high)
        die("a number is missing or out of range");
    return (int)value;
}

static struct options parse_options(int argc, char **argv) {
    struct options options = {.width = 60, .bullets = "-*"};
    int letter;
    while ((letter = getopt(argc, argv, "w:i:jb:s")) != -1) {
        switch (letter) {
        case 'w':
            options.width = number_option(optarg, 10, MAX_WIDTH);
            break;
        case 'i':
            options.indent = number_option(optarg, 0, 40);
            break;
        case 'j':
            options.justify = 1;
            break;
        case 'b':
            options.bullets = optarg;
            break;
        case 's':
            options.summary = 1;
            break;
        default:
            die("usage: reflow [-w WIDTH] [-i INDENT] [-j] [-b BULLETS] [-s] [FILE]");
        }
    }
    if (options.indent >= options.width)
        die("the indentation leaves no room");
    return options;
}

int main(int argc, char **argv) {
    struct options options = parse_options(argc, argv);
    FILE *file = stdin;
    if (optind < argc) {
        file = fopen(argv[optind], "r");
        if (!file)
            die("cannot open the file");
    }
    struct text text = read_all(file);
    struct summary summary = {0};
    reflow(text.bytes, &options, &summary);
    if (options.summary)
        printf("%d paragraphs, %d lines, %d words, longest %d\n", summary.paragraphs,
               summary.lines, summary.words, summary.longest);
    free(text.bytes);
    if (file != stdin)
        fclose(file);
    return 0;
}
