/* arena: a first-fit allocator over one fixed block, and a driver that obeys a script.
 *
 * Script, one order per line:
 *     alloc NAME SIZE     take SIZE bytes, filled with the first letter of NAME
 *     free NAME           give them back
 *     grow NAME SIZE      resize, keeping the contents
 *     show                print the layout of the arena
 *     dump NAME           print the bytes
 *     check               verify the bookkeeping */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_SIZE = 4096, ALIGNMENT = 16, MAX_NAMES = 64 };

/* In front of every block, free or used. Blocks are contiguous; free ones are also in a list
 * ordered by address. */
struct header {
    uint32_t size; /* bytes after this header */
    uint32_t used;
    uint32_t previous_size; /* of the block before, 0 for the first */
    uint32_t magic;
    struct header *next_free;
    struct header *previous_free;
};

static const uint32_t MAGIC = 0x5eed1e55;

static _Alignas(ALIGNMENT) unsigned char arena[ARENA_SIZE];
static struct header *free_list;

/* ---- blocks ---- */

static struct header *first_block(void) {
    return (struct header *)arena;
}

static struct header *block_after(struct header *block) {
    unsigned char *end = (unsigned char *)(block + 1) + block->size;
    return end < arena + ARENA_SIZE ? (struct header *)end : NULL;
}

static struct header *block_before(struct header *block) {
    if (block == first_block())
        return NULL;
    return (struct header *)((unsigned char *)block - block->previous_size) - 1;
}

static void link_free(struct header *block) {
    struct header *after = free_list, *before = NULL;
    while (after && after < block) {
        before = after;
        after = after->next_free;
    }
    block->next_free = after;
    block->previous_free = before;
    if (after)
        after->previous_free = block;
    if (before)
        before->next_free = block;
    else
        free_list = block;
}

static void unlink_free(struct header *block) {
    if (block->previous_free)
        block->previous_free->next_free = block->next_free;
    else
        free_list = block->next_free;
    if (block->next_free)
        block->next_free->previous_free = block->previous_free;
    block->next_free = block->previous_free = NULL;
}

static void arena_start(void) {
    struct header *block = first_block();
    memset(block, 0, sizeof *block);
    block->size = ARENA_SIZE - sizeof *block;
    block->magic = MAGIC;
    free_list = NULL;
    link_free(block);
}

/* ---- allocation ---- */

static uint32_t rounded(uint32_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Cuts the tail off a block that is larger than needed. */
static void split(struct header *block, uint32_t size) {
    if (block->size < size + sizeof(struct header) + ALIGNMENT)
        return;
    struct header *rest = (struct header *)((unsigned char *)(block + 1) + size);
    memset(rest, 0, sizeof *rest);
    rest->size = block->size - size - sizeof *rest;
    rest->previous_size = size;
    rest->magic = MAGIC;
    block->size = size;
    struct header *after = block_after(rest);
    if (after)
        after->previous_size = rest->size;
    link_free(rest);
}

static void *arena_alloc(uint32_t size) {
    uint32_t wanted = rounded(size ? size : 1);
    for (struct header *block = free_list; block; block = block->next_free) {
        if (block->size < wanted)
            continue;
        unlink_free(block);
        split(block, wanted);
        block->used = 1;
        return block + 1;
    }
    return NULL;
}

/* Joins a free block with the free block right after it. */
static void absorb_next(struct header *block) {
    struct header *next = block_after(block);
    if (!next || next->used)
        return;
    unlink_free(next);
    block->size += sizeof *next + next->size;
    struct header *after = block_after(block);
    if (after && !after->used)
        after->previous_size = block->size;
    next->magic = 0;
}

static void arena_free(void *memory) {
    struct header *block = (struct header *)memory - 1;
    block->used = 0;
    link_free(block);
    absorb_next(block);
    struct header *before = block_before(block);
    if (before && before->magic == MAGIC && !before->used)
        absorb_next(before);
}

static void *arena_grow(void *memory, uint32_t size) {
    struct header *block = (struct header *)memory - 1;
    uint32_t wanted = rounded(size ? size : 1);
    if (block->size >= wanted)
        return memory;
    void *fresh = arena_alloc(size);
    if (!fresh)
        return NULL;
    memcpy(fresh, memory, block->size);
    arena_free(memory);
    return fresh;
}

/* ---- reports ---- */

static void arena_show(void) {
    int index = 0, free_blocks = 0;
    uint32_t free_bytes = 0, largest = 0;
    for (struct header *block = first_block(); block; block = block_after(block)) {
        printf("  %2d %s %4u\n", index++, block->used ? "used" : "free", block->size);
        if (!block->used) {
            free_blocks++;
            free_bytes += block->size;
            if (block->size > largest)
                largest = block->size;
        }
    }
    printf("  %d free blocks, %u bytes, largest %u\n", free_blocks, free_bytes, largest);
}

/* Returns the number of things found wrong. */
static int arena_check(void) {
    int problems = 0;
    uint32_t previous = 0;
    struct header *listed = free_list;
    for (struct header *block = first_block(); block; block = block_after(block)) {
        if (block->magic != MAGIC) {
            printf("  damaged header\n");
            return problems + 1;
        }
        if (block->previous_size != previous) {
            printf("  wrong size of the block before\n");
            problems++;
        }
        if (!block->used) {
            if (block != listed) {
                printf("  free block not in the list\n");
                problems++;
            } else {
                listed = listed->next_free;
            }
        }
        previous = block->size;
    }
    return problems;
}

/* ---- the driver ---- */

struct entry {
    char name[16];
    unsigned char *memory;
    uint32_t size;
};

static struct entry entries[MAX_NAMES];

static struct entry *find(const char *name) {
    for (int i = 0; i < MAX_NAMES; i++)
        if (entries[i].memory && strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

static void obey_alloc(const char *name, uint32_t size) {
    int slot = 0;
    if (find(name)) {
        printf("%s exists\n", name);
        return;
    }
    while (slot < MAX_NAMES && entries[slot].memory)
        slot++;
    if (slot == MAX_NAMES) {
        printf("too many names\n");
        return;
    }
    unsigned char *memory = arena_alloc(size);
    if (!memory) {
        printf("no room for %s (%u)\n", name, size);
        return;
    }
    memset(memory, name[0], size);
    snprintf(entries[slot].name, sizeof entries[slot].name, "%s", name);
    entries[slot].memory = memory;
    entries[slot].size = size;
}

static void obey_free(struct entry *entry) {
    arena_free(entry->memory);
    entry->memory = NULL;
}

static void obey_grow(struct entry *entry, uint32_t size) {
    unsigned char *memory = arena_grow(entry->memory, size);
    if (!memory) {
        printf("cannot grow %s to %u\n", entry->name, size);
        return;
    }
    if (size > entry->size)
        memset(memory + entry->size, '+', size - entry->size);
    entry->memory = memory;
    entry->size = size;
}

static void obey_dump(const struct entry *entry) {
    printf("%s:", entry->name);
    uint32_t run = 0;
    for (uint32_t i = 0; i < entry->size; i++) {
        run++;
        if (i + 1 == entry->size || entry->memory[i + 1] != entry->memory[i]) {
            printf(" %c*%u", entry->memory[i], run);
            run = 0;
        }
    }
    printf("\n");
}

static int obey(char *line, int number) {
    char order[16] = "", name[16] = "";
    unsigned size = 0;
    int words = sscanf(line, "%15s %15s %u", order, name, &size);
    if (words < 1 || order[0] == '#')
        return 1;
    if (strcmp(order, "show") == 0) {
        printf("line %d\n", number);
        arena_show();
        return 1;
    }
    if (strcmp(order, "check") == 0) {
        printf("line %d: %d problems\n", number, arena_check());
        return 1;
    }
    if (words < 2)
        return 0;
    if (strcmp(order, "alloc") == 0 && words == 3) {
        obey_alloc(name, size);
        return 1;
    }
    struct entry *entry = find(name);
    if (!entry) {
        printf("no %s\n", name);
        return 1;
    }
    if (strcmp(order, "free") == 0)
        obey_free(entry);
    else if (strcmp(order, "grow") == 0 && words == 3)
        obey_grow(entry, size);
    else if (strcmp(order, "dump") == 0)
        obey_dump(entry);
    else
        return 0;
    return 1;
}

int main(void) {
    char line[128];
    int number = 0;
    arena_start();
    while (fgets(line, sizeof line, stdin)) {
        number++;
        if (!obey(line, number)) {
            printf("line %d: cannot understand this\n", number);
            return 2;
        }
    }
    return arena_check() ? 1 : 0;
}
