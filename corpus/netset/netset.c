/* netset: which of these addresses are in one of these networks?
 *
 *   netset 10.0.0.0/8 192.168.1.0/24 -- 10.1.2.3 8.8.8.8
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 32

struct network {
    uint32_t base;
    uint32_t mask;
    int bits;
    unsigned hits;
};

struct set {
    struct network nets[MOST];
    int count;
};

static int parse_address(const char *text, uint32_t *address)
{
    uint32_t all = 0;

    for (int part = 0; part < 4; part++) {
        char *end;
        unsigned long n = strtoul(text, &end, 10);

        if (end == text || n > 255)
            return 0;
        all = all << 8 | (uint32_t)n;
        if (part < 3 && *end != '.')
            return 0;
        text = part < 3 ? end + 1 : end;
    }
    if (*text != '\0' && *text != '/')
        return 0;
    *address = all;
    return 1;
}

static uint32_t mask_of(int bits)
{
    uint32_t mask = 0;

    for (int i = 0; i < bits; i++)
        mask |= 1u << (31 - i);
    return mask;
}

static int add_network(struct set *set, const char *text)
{
    struct network *net = &set->nets[set->count];
    const char *slash = strchr(text, '/');

    if (set->count == MOST || !parse_address(text, &net->base))
        return 0;
    net->bits = slash ? atoi(slash + 1) : 32;
    if (net->bits < 0 || net->bits > 32)
        return 0;
    net->mask = mask_of(net->bits);
    net->hits = 0;
    set->count++;
    return 1;
}

/* The network with the longest prefix that holds an address. */
static struct network *find(struct set *set, uint32_t address)
{
    struct network *best = NULL;

    for (int i = 0; i < set->count; i++) {
        struct network *net = &set->nets[i];

        if ((address & net->mask) != net->base)
            continue;
        if (best == NULL || net->bits > best->bits)
            best = net;
    }
    return best;
}

static void show(uint32_t a)
{
    printf("%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
}

static int report(struct set *set)
{
    int unused = 0;

    for (int i = 0; i < set->count; i++) {
        const struct network *net = &set->nets[i];

        show(net->base & net->mask);
        printf("/%d %u\n", net->bits, net->hits);
        unused += net->hits == 0;
    }
    return unused;
}

int main(int argc, char **argv)
{
    struct set set = { .count = 0 };
    int i = 1;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!add_network(&set, argv[i])) {
            printf("%s is no network\n", argv[i]);
            return 2;
        }
    }
    for (i++; i < argc; i++) {
        uint32_t address;
        struct network *net;

        if (!parse_address(argv[i], &address)) {
            printf("%s is no address\n", argv[i]);
            continue;
        }
        net = find(&set, address);
        show(address);
        if (net == NULL) {
            printf(" outside\n");
        } else {
            net->hits++;
            printf(" in /%d\n", net->bits);
        }
    }
    printf("%d unused\n", report(&set));
    return 0;
}
