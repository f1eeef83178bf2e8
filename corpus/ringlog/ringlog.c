/* ringlog: keeps the latest messages of a stream in a ring, and shows them on demand.
 *
 *   + TEXT   a message        show      what is kept, oldest first
 *   drop N   forget the oldest N        size   how many are kept
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 40

struct message {
    unsigned long number;
    char text[WIDTH];
};

struct ring {
    struct message *slots;
    unsigned room;
    unsigned oldest;
    unsigned used;
    unsigned long given;
};

static int ring_open(struct ring *r, unsigned room)
{
    r->slots = calloc(room, sizeof *r->slots);
    r->room = room;
    r->oldest = 0;
    r->used = 0;
    r->given = 0;
    return r->slots != NULL;
}

static void ring_add(struct ring *r, const char *text)
{
    unsigned at = (r->oldest + r->used) % r->room;
    struct message *m = &r->slots[at];

    m->number = ++r->given;
    snprintf(m->text, sizeof m->text, "%s", text);
    if (r->used < r->room)
        r->used++;
}

static unsigned ring_drop(struct ring *r, unsigned n)
{
    if (n > r->used)
        n = r->used;
    r->oldest = (r->oldest + n) % r->room;
    r->used -= n;
    return n;
}

static void ring_show(const struct ring *r)
{
    for (unsigned i = 0; i < r->used; i++) {
        const struct message *m = &r->slots[(r->oldest + i) % r->room];

        printf("%4lu %s\n", m->number, m->text);
    }
}

static void chomp(char *line)
{
    size_t len = strlen(line);

    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
        line[--len] = '\0';
}

static int command(struct ring *r, char *line)
{
    if (line[0] == '+') {
        ring_add(r, line[1] == ' ' ? line + 2 : line + 1);
    } else if (strcmp(line, "show") == 0) {
        ring_show(r);
    } else if (strcmp(line, "size") == 0) {
        printf("%u of %u, %lu given\n", r->used, r->room, r->given);
    } else if (strncmp(line, "drop ", 5) == 0) {
        printf("dropped %u\n", ring_drop(r, (unsigned)atoi(line + 5)));
    } else if (line[0] != '\0') {
        printf("what is '%s'?\n", line);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct ring ring;
    char line[256];
    int wrong = 0;
    int room = argc > 1 ? atoi(argv[1]) : 4;

    if (room < 1 || !ring_open(&ring, (unsigned)room)) {
        fprintf(stderr, "ringlog: no room\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        chomp(line);
        if (!command(&ring, line))
            wrong++;
    }
    free(ring.slots);
    return wrong > 0;
}
