/* lzss: packs and unpacks files with a sliding window.
 *
 * usage: lzss pack|unpack|test|list < IN > OUT
 *
 * Packed form: "LZ1\n", then groups: a flag byte whose bits, low first, tell literals (1) from
 * references (0), and eight items. A reference is two bytes: 12 bits distance, 4 bits length.
 * The end is a reference with distance 0. `list` prints the items readably; `test` packs,
 * unpacks and compares. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = 4095,
    SHORTEST = 3,
    LONGEST = SHORTEST + 15,
    HASH_SIZE = 1024,
    CHAIN_LIMIT = 64,
};

struct bytes {
    uint8_t *data;
    size_t length;
    size_t capacity;
};

static void die(const char *message) {
    fprintf(stderr, "lzss: %s\n", message);
    exit(1);
}

static void put(struct bytes *bytes, uint8_t byte) {
    if (bytes->length == bytes->capacity) {
        bytes->capacity = bytes->capacity ? bytes->capacity * 2 : 256;
        bytes->data = realloc(bytes->data, bytes->capacity);
        if (!bytes->data)
            die("out of memory");
    }
    bytes->data[bytes->length++] = byte;
}

/* ---- finding matches ---- */

/* Positions with equal hashes of their first three bytes are chained, newest first. */
struct finder {
    int heads[HASH_SIZE];
    int *previous;
};

static unsigned hash(const uint8_t *at) {
    return (at[0] * 33u * 33u + at[1] * 33u + at[2]) % HASH_SIZE;
}

static void finder_start(struct finder *finder, size_t length) {
    for (int i = 0; i < HASH_SIZE; i++)
        finder->heads[i] = -1;
    finder->previous = malloc((length + 1) * sizeof *finder->previous);
    if (!finder->previous)
        die("out of memory");
}

static void finder_add(struct finder *finder, const struct bytes *input, size_t position) {
    if (position + SHORTEST > input->length)
        return;
    unsigned slot = hash(input->data + position);
    finder->previous[position] = finder->heads[slot];
    finder->heads[slot] = (int)position;
}

static int match_length(const struct bytes *input, size_t old, size_t position) {
    int length = 0;
    while (length < LONGEST && position + (size_t)length < input->length &&
           input->data[old + (size_t)length] == input->data[position + (size_t)length])
        length++;
    return length;
}

/* The longest match for `position`; returns its length, 0 if there is none. */
static int find_longest(const struct finder *finder, const struct bytes *input, size_t position,
                        int *distance) {
    int best = 0, tried = 0;
    if (position + SHORTEST > input->length)
        return 0;
    int old = finder->heads[hash(input->data + position)];
    while (old >= 0 && position - (size_t)old <= WINDOW + 1 && tried++ < CHAIN_LIMIT) {
        int length = match_length(input, (size_t)old, position);
        if (length > best) {
            best = length;
            *distance = (int)(position - (size_t)old);
        }
        old = finder->previous[old];
    }
    return best >= SHORTEST ? best : 0;
}

/* ---- packing ---- */

struct packer {
    struct bytes *output;
    size_t flags; /* where the current flag byte is */
    int items;
};

static void next_item(struct packer *packer, int literal) {
    if (packer->items % 8 == 0) {
        packer->flags = packer->output->length;
        put(packer->output, 0);
    }
    if (literal)
        packer->output->data[packer->flags] |= (uint8_t)(1 << (packer->items % 8));
    packer->items++;
}

static void pack_reference(struct packer *packer, int distance, int length) {
    int code = length ? length - SHORTEST : 0;
    next_item(packer, 0);
    put(packer->output, (uint8_t)(distance & 0xff));
    put(packer->output, (uint8_t)((distance >> 8 & 0x0f) << 4 | code));
}

static void pack(const struct bytes *input, struct bytes *output) {
    struct finder finder;
    struct packer packer = {.output = output};
    size_t position = 0;
    for (const char *magic = "LZ1\n"; *magic; magic++)
        put(output, (uint8_t)*magic);
    finder_start(&finder, input->length);
    while (position < input->length) {
        int distance = 0;
        int length = find_longest(&finder, input, position, &distance);
        if (length > 0) {
            pack_reference(&packer, distance, length);
        } else {
            next_item(&packer, 1);
            put(output, input->data[position]);
            length = 1;
        }
        for (int i = 0; i < length; i++)
            finder_add(&finder, input, position++);
    }
    pack_reference(&packer, 0, 0);
    free(finder.previous);
}

/* ---- unpacking ---- */

struct unpacker {
    const struct bytes *input;
    size_t position;
    int flags;
    int items;
};

static int get(struct unpacker *unpacker) {
    if (unpacker->position == unpacker->input->length)
        die("the packed data ends too early");
    return unpacker->input->data[unpacker->position++];
}

static int next_is_literal(struct unpacker *unpacker) {
    if (unpacker->items % 8 == 0)
        unpacker->flags = get(unpacker);
    return unpacker->flags >> (unpacker->items++ % 8) & 1;
}

/* Calls back for every item; returns how many there were. */
static int for_items(const struct bytes *input, void (*literal)(void *, int),
                     void (*reference)(void *, int, int), void *context) {
    struct unpacker unpacker = {.input = input};
    for (const char *magic = "LZ1\n"; *magic; magic++)
        if (get(&unpacker) != *magic)
            die("not packed by this program");
    for (;;) {
        if (next_is_literal(&unpacker)) {
            literal(context, get(&unpacker));
            continue;
        }
        int low = get(&unpacker), high = get(&unpacker);
        int distance = low | (high >> 4) << 8;
        if (distance == 0)
            return unpacker.items - 1;
        reference(context, distance, (high & 0x0f) + SHORTEST);
    }
}

static void copy_literal(void *context, int byte) {
    put(context, (uint8_t)byte);
}

static void copy_reference(void *context, int distance, int length) {
    struct bytes *output = context;
    if ((size_t)distance > output->length)
        die("a reference points before the start");
    for (int i = 0; i < length; i++)
        put(output, output->data[output->length - (size_t)distance]);
}

static void print_literal(void *context, int byte) {
    (void)context;
    if (byte >= 0x20 && byte < 0x7f)
        printf("'%c'\n", byte);
    else
        printf("0x%02x\n", byte);
}

static void print_reference(void *context, int distance, int length) {
    (void)context;
    printf("-%d *%d\n", distance, length);
}

/* ---- main ---- */

static struct bytes read_all(void) {
    struct bytes input = {0};
    int c;
    while ((c = getchar()) != EOF)
        put(&input, (uint8_t)c);
    return input;
}

static int test(const struct bytes *input) {
    struct bytes packed = {0}, again = {0};
    pack(input, &packed);
    for_items(&packed, copy_literal, copy_reference, &again);
    int same = again.length == input->length &&
               (again.length == 0 || memcmp(again.data, input->data, again.length) == 0);
    printf("%zu bytes, packed %zu, unpacked %zu, %s\n", input->length, packed.length,
           again.length, same ? "same" : "DIFFERENT");
    free(packed.data);
    free(again.data);
    return same;
}

int main(int argc, char **argv) {
    const char *order = argc == 2 ? argv[1] : "";
    struct bytes input = read_all(), output = {0};
    int status = 0;
    if (strcmp(order, "pack") == 0) {
        pack(&input, &output);
        fwrite(output.data, 1, output.length, stdout);
    } else if (strcmp(order, "unpack") == 0) {
        for_items(&input, copy_literal, copy_reference, &output);
        fwrite(output.data, 1, output.length, stdout);
    } else if (strcmp(order, "list") == 0) {
        printf("%d items\n", for_items(&input, print_literal, print_reference, NULL));
    } else if (strcmp(order, "test") == 0) {
        status = !test(&input);
    } else {
        fprintf(stderr, "usage: lzss pack|unpack|test|list\n");
        status = 2;
    }
    free(input.data);
    free(output.data);
    return status;
}
