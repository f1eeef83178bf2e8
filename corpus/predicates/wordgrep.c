/* Prints the lines of standard input that contain one of some fixed strings.
 *
 *   wordgrep [-w] [-i] [-c] [-n] [-v] KEY…
 *
 * With -w a match must be a whole word. The search goes through a small index
 * of the keys' first letters, as a keyword set would.
 *
 * The fault: when the first occurrence in a line is no word, the rest of the
 * line is not looked at.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = 16, MOST_LINE = 512 };

struct key {
    const char *text;
    size_t length;
    int next; /* with the same first letter */
};

static struct key keys[MOST_KEYS];
static int key_count;
static int first_with[256];

static int match_words;
static int fold_case;
static int count_only;
static int number_lines;
static int invert;

static void usage(void)
{
    fprintf(stderr, "usage: wordgrep [-wicnv] KEY...\n");
    exit(2);
}

static int fold(int c)
{
    return fold_case ? tolower((unsigned char)c) : (unsigned char)c;
}

static void add_key(const char *text)
{
    if (key_count == MOST_KEYS || !*text)
        usage();
    struct key *k = &keys[key_count];
    int letter = fold(text[0]);
    k->text = text;
    k->length = strlen(text);
    k->next = first_with[letter];
    first_with[letter] = key_count;
    key_count++;
}

static int same(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fold(a[i]) != fold(b[i]))
            return 0;
    return 1;
}

static int is_word(int c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The longest key at a place, or -1. */
static int key_at(const char *at, const char *end)
{
    int best = -1;
    for (int k = first_with[fold(*at)]; k >= 0; k = keys[k].next) {
        if ((size_t)(end - at) < keys[k].length)
            continue;
        if (!same(at, keys[k].text, keys[k].length))
            continue;
        if (best < 0 || keys[k].length > keys[best].length)
            best = k;
    }
    return best;
}

static const char *find(const char *from, const char *end, int *key)
{
    for (const char *p = from; p < end; p++) {
        int k = key_at(p, end);
        if (k >= 0) {
            *key = k;
            return p;
        }
    }
    return NULL;
}

/* Does a line, without its end, match? */
static int matches(const char *begin, const char *end)
{
    int key = -1;
    const char *start = begin;
    while (start < end) {
        const char *hit = find(start, end, &key);
        if (!hit)
            return 0;
        if (!match_words)
            return 1;
        size_t length = keys[key].length;
        while (length > 0) {
            int before = hit > begin && is_word(hit[-1]);
            int after = hit + length < end && is_word(hit[length]);
            if (!before && !after)
                return 1;
            /* A shorter key may still be a word here. */
            length--;
            int shorter = 0;
            for (int k = 0; k < key_count; k++)
                if (keys[k].length == length && same(hit, keys[k].text, length))
                    shorter = 1;
            if (!shorter)
#ifdef FIXED
                break;
#else
                return 0;
#endif
        }
        start = hit + 1;
    }
    return 0;
}

static int read_options(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        for (const char *p = argv[i] + 1; *p; p++) {
            switch (*p) {
            case 'w': match_words = 1; break;
            case 'i': fold_case = 1; break;
            case 'c': count_only = 1; break;
            case 'n': number_lines = 1; break;
            case 'v': invert = 1; break;
            default: usage();
            }
        }
    }
    return i;
}

int main(int argc, char **argv)
{
    char line[MOST_LINE];
    long number = 0, found = 0;
    for (int i = 0; i < 256; i++)
        first_with[i] = -1;
    int i = read_options(argc, argv);
    if (i == argc)
        usage();
    for (; i < argc; i++)
        add_key(argv[i]);
    while (fgets(line, sizeof line, stdin)) {
        size_t length = strlen(line);
        number++;
        if (length > 0 && line[length - 1] == '\n')
            line[--length] = 0;
        if (matches(line, line + length) == invert)
            continue;
        found++;
        if (count_only)
            continue;
        if (number_lines)
            printf("%ld:", number);
        printf("%s\n", line);
    }
    if (count_only)
        printf("%ld\n", found);
    return found == 0;
}
