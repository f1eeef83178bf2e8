/* jsonfmt: reads a JSON document and prints it again.
 *
 * usage: jsonfmt [-c] [-s] [-i N] [-q PATH] < FILE
 *
 *   -c       compact: no spaces, one line
 *   -s       sort the members of objects by name
 *   -i N     indent by N columns (default 2)
 *   -q PATH  only the value at PATH, as in users[0].name
 *   -t       print statistics instead of the document */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { KIND_NULL, KIND_TRUE, KIND_FALSE, KIND_NUMBER, KIND_STRING, KIND_ARRAY, KIND_OBJECT };

enum { MAX_DEPTH = 64, FIRST_CAPACITY = 16 };

struct value {
    enum kind kind;
    char *text;            /* STRING: decoded; NUMBER: as written */
    struct value **items;  /* ARRAY, OBJECT */
    char **names;          /* OBJECT */
    size_t count;
    size_t capacity;
};

struct reader {
    const char *text;
    size_t position;
    int line;
    int depth;
};

struct options {
    int compact;
    int sorted;
    int indent;
    int statistics;
    const char *path;
};

struct buffer {
    char *bytes;
    size_t length;
    size_t capacity;
};

static void die(const char *message) {
    fprintf(stderr, "jsonfmt: %s\n", message);
    exit(2);
}

static void *take(void *memory) {
    if (!memory)
        die("out of memory");
    return memory;
}

/* ---- growing strings ---- */

static void buffer_start(struct buffer *buffer) {
    buffer->capacity = FIRST_CAPACITY;
    buffer->length = 0;
    buffer->bytes = take(malloc(buffer->capacity));
}

static void buffer_room(struct buffer *buffer, size_t extra) {
    if (buffer->length + extra < buffer->capacity)
        return;
    while (buffer->length + extra >= buffer->capacity)
        buffer->capacity *= 2;
    buffer->bytes = take(realloc(buffer->bytes, buffer->capacity));
}

static void buffer_add(struct buffer *buffer, char c) {
    buffer_room(buffer, 1);
    buffer->bytes[buffer->length++] = c;
}

static char *buffer_finish(struct buffer *buffer) {
    buffer->bytes[buffer->length] = '\0';
    return buffer->bytes;
}

/* ---- values ---- */

static struct value *new_value(enum kind kind) {
    struct value *value = take(calloc(1, sizeof *value));
    value->kind = kind;
    return value;
}

static void add_item(struct value *parent, char *name, struct value *item) {
    if (parent->count == parent->capacity) {
        parent->capacity = parent->capacity ? parent->capacity * 2 : 4;
        parent->items = take(realloc(parent->items, parent->capacity * sizeof *parent->items));
        if (parent->kind == KIND_OBJECT)
            parent->names = take(realloc(parent->names, parent->count * sizeof *parent->names));
    }
    parent->items[parent->count] = item;
    if (parent->kind == KIND_OBJECT)
        parent->names[parent->count] = name;
    parent->count++;
}

static void free_value(struct value *value) {
    for (size_t i = 0; i < value->count; i++) {
        free_value(value->items[i]);
        if (value->kind == KIND_OBJECT)
            free(value->names[i]);
    }
    free(value->items);
    free(value->names);
    free(value->text);
    free(value);
}

/* ---- reading ---- */

static void syntax(const struct reader *reader, const char *message) {
    printf("line %d: %s\n", reader->line, message);
    exit(1);
}

static char current(const struct reader *reader) {
    return reader->text[reader->position];
}

static void skip_space(struct reader *reader) {
    while (isspace((unsigned char)current(reader))) {
        if (current(reader) == '\n')
            reader->line++;
        reader->position++;
    }
}

static int hex_digit(struct reader *reader) {
    char c = current(reader);
    reader->position++;
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    syntax(reader, "bad \\u escape");
    return 0;
}

static unsigned read_code(struct reader *reader) {
    unsigned code = 0;
    for (int i = 0; i < 4; i++)
        code = code * 16 + (unsigned)hex_digit(reader);
    return code;
}

/* Writes a code point as UTF-8 at the end of the buffer. */
static void add_code(struct buffer *buffer, unsigned code) {
    buffer_room(buffer, 3);
    char *end = buffer->bytes + buffer->length;
    if (code < 0x80) {
        *end++ = (char)code;
    } else if (code < 0x800) {
        *end++ = (char)(0xc0 | code >> 6);
        *end++ = (char)(0x80 | (code & 0x3f));
    } else {
        *end++ = (char)(0xe0 | code >> 12);
        *end++ = (char)(0x80 | (code >> 6 & 0x3f));
        *end++ = (char)(0x80 | (code & 0x3f));
    }
    buffer->length = (size_t)(end - buffer->bytes);
}

static void read_escape(struct reader *reader, struct buffer *buffer) {
    static const char letters[] = "nrtbf\"\\/", meanings[] = "\n\r\t\b\f\"\\/";
    char c = current(reader);
    reader->position++;
    if (c == 'u') {
        add_code(buffer, read_code(reader));
        return;
    }
    const char *letter = c ? strchr(letters, c) : NULL;
    if (!letter)
        syntax(reader, "bad escape");
    buffer_add(buffer, meanings[letter - letters]);
}

static char *read_string(struct reader *reader) {
    struct buffer buffer;
    buffer_start(&buffer);
    reader->position++;
    while (current(reader) != '"') {
        char c = current(reader);
        if (c == '\0' || c == '\n')
            syntax(reader, "string without end");
        reader->position++;
        if (c == '\\')
            read_escape(reader, &buffer);
        else
            buffer_add(&buffer, c);
    }
    reader->position++;
    return buffer_finish(&buffer);
}

static void read_digits(struct reader *reader, struct buffer *buffer) {
    if (!isdigit((unsigned char)current(reader)))
        syntax(reader, "bad number");
    while (isdigit((unsigned char)current(reader))) {
        buffer_add(buffer, current(reader));
        reader->position++;
    }
}

static char *read_number(struct reader *reader) {
    struct buffer buffer;
    buffer_start(&buffer);
    if (current(reader) == '-') {
        buffer_add(&buffer, '-');
        reader->position++;
    }
    read_digits(reader, &buffer);
    if (current(reader) == '.') {
        buffer_add(&buffer, '.');
        reader->position++;
        read_digits(reader, &buffer);
    }
    if (current(reader) == 'e' || current(reader) == 'E') {
        buffer_add(&buffer, 'e');
        reader->position++;
        if (current(reader) == '-' || current(reader) == '+') {
            buffer_add(&buffer, current(reader));
            reader->position++;
        }
        read_digits(reader, &buffer);
    }
    return buffer_finish(&buffer);
}

static int take_word(struct reader *reader, const char *word) {
    size_t length = strlen(word);
    if (strncmp(reader->text + reader->position, word, length) != 0)
        return 0;
    reader->position += length;
    return 1;
}

static struct value *read_value(struct reader *reader);

static int take_character(struct reader *reader, char c) {
    skip_space(reader);
    if (current(reader) != c)
        return 0;
    reader->position++;
    return 1;
}

static struct value *read_array(struct reader *reader) {
    struct value *array = new_value(KIND_ARRAY);
    reader->position++;
    if (take_character(reader, ']'))
        return array;
    do
        add_item(array, NULL, read_value(reader));
    while (take_character(reader, ','));
    if (!take_character(reader, ']'))
        syntax(reader, "expected , or ]");
    return array;
}

static struct value *read_object(struct reader *reader) {
    struct value *object = new_value(KIND_OBJECT);
    reader->position++;
    if (take_character(reader, '}'))
        return object;
    do {
        skip_space(reader);
        if (current(reader) != '"')
            syntax(reader, "expected a name");
        char *name = read_string(reader);
        if (!take_character(reader, ':'))
            syntax(reader, "expected :");
        add_item(object, name, read_value(reader));
    } while (take_character(reader, ','));
    if (!take_character(reader, '}'))
        syntax(reader, "expected , or }");
    return object;
}

static struct value *read_value(struct reader *reader) {
    struct value *value = NULL;
    skip_space(reader);
    if (++reader->depth > MAX_DEPTH)
        syntax(reader, "too deep");
    char c = current(reader);
    if (c == '{') {
        value = read_object(reader);
    } else if (c == '[') {
        value = read_array(reader);
    } else if (c == '"') {
        value = new_value(KIND_STRING);
        value->text = read_string(reader);
    } else if (c == '-' || isdigit((unsigned char)c)) {
        value = new_value(KIND_NUMBER);
        value->text = read_number(reader);
    } else if (take_word(reader, "true")) {
        value = new_value(KIND_TRUE);
    } else if (take_word(reader, "false")) {
        value = new_value(KIND_FALSE);
    } else if (take_word(reader, "null")) {
        value = new_value(KIND_NULL);
    } else {
        syntax(reader, "expected a value");
    }
    reader->depth--;
    return value;
}

/* ---- sorting ---- */

static void sort_members(struct value *value) {
    for (size_t i = 0; i < value->count; i++)
        sort_members(value->items[i]);
    if (value->kind != KIND_OBJECT)
        return;
    for (size_t i = 1; i < value->count; i++) {
        char *name = value->names[i];
        struct value *item = value->items[i];
        size_t j = i;
        for (; j > 0 && strcmp(value->names[j - 1], name) > 0; j--) {
            value->names[j] = value->names[j - 1];
            value->items[j] = value->items[j - 1];
        }
        value->names[j] = name;
        value->items[j] = item;
    }
}

/* ---- looking up ---- */

static struct value *member(struct value *object, const char *name, size_t length) {
    for (size_t i = 0; i < object->count; i++)
        if (strlen(object->names[i]) == length && memcmp(object->names[i], name, length) == 0)
            return object->items[i];
    return NULL;
}

static struct value *at_path(struct value *value, const char *path) {
    while (*path && value) {
        if (*path == '[') {
            char *end;
            unsigned long index = strtoul(path + 1, &end, 10);
            if (*end != ']' || value->kind != KIND_ARRAY || index >= value->count)
                return NULL;
            value = value->items[index];
            path = end + 1;
        } else {
            if (*path == '.')
                path++;
            size_t length = strcspn(path, ".[");
            if (value->kind != KIND_OBJECT)
                return NULL;
            value = member(value, path, length);
            path += length;
        }
    }
    return value;
}

/* ---- printing ---- */

static void print_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            printf("\\n");
        else if (c == '\t')
            printf("\\t");
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void new_line(const struct options *options, int depth) {
    if (!options->compact)
        printf("\n%*s", options->indent * depth, "");
}

static void print_value(const struct value *value, const struct options *options, int depth) {
    switch (value->kind) {
    case KIND_NULL:
        printf("null");
        break;
    case KIND_TRUE:
        printf("true");
        break;
    case KIND_FALSE:
        printf("false");
        break;
    case KIND_NUMBER:
        printf("%s", value->text);
        break;
    case KIND_STRING:
        print_string(value->text);
        break;
    case KIND_ARRAY:
    case KIND_OBJECT:
        putchar(value->kind == KIND_ARRAY ? '[' : '{');
        for (size_t i = 0; i < value->count; i++) {
            if (i > 0)
                putchar(',');
            new_line(options, depth + 1);
            if (value->kind == KIND_OBJECT) {
                print_string(value->names[i]);
                printf(options->compact ? ":" : ": ");
            }
            print_value(value->items[i], options, depth + 1);
        }
        if (value->count > 0)
            new_line(options, depth);
        putchar(value->kind == KIND_ARRAY ? ']' : '}');
    }
}

struct statistics {
    int counts[KIND_OBJECT + 1];
    int deepest;
    size_t text_bytes;
};

static void count_values(const struct value *value, struct statistics *statistics, int depth) {
    statistics->counts[value->kind]++;
    if (depth > statistics->deepest)
        statistics->deepest = depth;
    if (value->kind == KIND_STRING)
        statistics->text_bytes += strlen(value->text);
    for (size_t i = 0; i < value->count; i++)
        count_values(value->items[i], statistics, depth + 1);
}

static void print_statistics(const struct value *value) {
    static const char *const names[] = {"null",   "true",  "false", "number",
                                        "string", "array", "object"};
    struct statistics statistics = {0};
    count_values(value, &statistics, 1);
    for (int kind = 0; kind <= KIND_OBJECT; kind++)
        if (statistics.counts[kind])
            printf("%-8s %d\n", names[kind], statistics.counts[kind]);
    printf("%-8s %d\n%-8s %zu\n", "depth", statistics.deepest, "text", statistics.text_bytes);
}

/* ---- main ---- */

static char *read_input(void) {
    struct buffer buffer;
    int c;
    buffer_start(&buffer);
    while ((c = getchar()) != EOF)
        buffer_add(&buffer, (char)c);
    buffer_room(&buffer, 1);
    return buffer_finish(&buffer);
}

static struct options parse_options(int argc, char **argv) {
    struct options options = {.indent = 2};
    int letter;
    while ((letter = getopt(argc, argv, "csi:q:t")) != -1) {
        switch (letter) {
        case 'c':
            options.compact = 1;
            break;
        case 's':
            options.sorted = 1;
            break;
        case 'i':
            options.indent = atoi(optarg);
            break;
        case 'q':
            options.path = optarg;
            break;
        case 't':
            options.statistics = 1;
            break;
        default:
            die("usage: jsonfmt [-c] [-s] [-t] [-i N] [-q PATH]");
        }
    }
    return options;
}

int main(int argc, char **argv) {
    struct options options = parse_options(argc, argv);
    char *text = read_input();
    struct reader reader = {.text = text, .line = 1};
    struct value *document = read_value(&reader);
    skip_space(&reader);
    if (current(&reader) != '\0')
        syntax(&reader, "trailing text");
    if (options.sorted)
        sort_members(document);
    struct value *shown = options.path ? at_path(document, options.path) : document;
    if (!shown)
        die("nothing at this path");
    if (options.statistics) {
        print_statistics(shown);
    } else {
        print_value(shown, &options, 0);
        putchar('\n');
    }
    free_value(document);
    free(text);
    return 0;
}
