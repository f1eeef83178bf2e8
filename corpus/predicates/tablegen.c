/* Makes the tables of a scanner from a list of states, and prints them as C.
 *
 * Input: one state a line, "NAME: c=NEXT c=NEXT … [accept N]".
 * The rows are packed into two arrays, `nxt` and `chk`, by first fit; every
 * state has a base. Two more cells belong to each state: one for the end of the
 * buffer, and before it one for its action.
 *
 * The fault: a state's action is marked at the base of the next one.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STATES = 32, MOST_CELLS = 512, MOST_NAME = 24 };
enum { EOB_POSITION = -1, ACTION_POSITION = -2 };

struct edge {
    int symbol;
    int target;
};

struct state {
    char name[MOST_NAME];
    struct edge edges[26];
    int edge_count;
    int accept;
};

static struct state states[MOST_STATES];
static int state_count;
static int base[MOST_STATES + 1];
static int nxt[MOST_CELLS];
static int chk[MOST_CELLS];
static int used[MOST_CELLS];
static int last_cell;

static void fail(const char *why, const char *what)
{
    fprintf(stderr, "tablegen: %s: %s\n", why, what);
    exit(2);
}

static int find_state(const char *name)
{
    for (int i = 0; i < state_count; i++)
        if (strcmp(states[i].name, name) == 0)
            return i;
    if (state_count == MOST_STATES)
        fail("too many states", name);
    if (strlen(name) >= MOST_NAME)
        fail("name too long", name);
    strcpy(states[state_count].name, name);
    return state_count++;
}

static char *skip_blanks(char *p)
{
    while (*p && isspace((unsigned char)*p))
        p++;
    return p;
}

static char *take_word(char *p, char *word)
{
    int n = 0;
    while (*p && !isspace((unsigned char)*p) && *p != ':' && n < MOST_NAME - 1)
        word[n++] = *p++;
    word[n] = 0;
    return p;
}

static void read_edge(struct state *s, char *word)
{
    if (!islower((unsigned char)word[0]) || word[1] != '=')
        fail("not an edge", word);
    if (s->edge_count == 26)
        fail("too many edges", s->name);
    int target = find_state(word + 2);
    s->edges[s->edge_count].symbol = word[0] - 'a' + 1;
    s->edges[s->edge_count].target = target;
    s->edge_count++;
}

static void read_line(char *line)
{
    char word[MOST_NAME];
    char *p = skip_blanks(line);
    if (!*p || *p == '#')
        return;
    p = take_word(p, word);
    if (*p != ':')
        fail("no colon behind", word);
    int number = find_state(word);
    p = skip_blanks(p + 1);
    while (*p) {
        p = take_word(p, word);
        if (strcmp(word, "accept") == 0) {
            p = take_word(skip_blanks(p), word);
            states[number].accept = atoi(word);
        } else {
            read_edge(&states[number], word);
        }
        p = skip_blanks(p);
    }
}

static int fits(const struct state *s, int at)
{
    if (used[at] || used[at - 1])
        return 0;
    for (int i = 0; i < s->edge_count; i++)
        if (used[at + s->edges[i].symbol])
            return 0;
    return 1;
}

static void place(int number)
{
    const struct state *s = &states[number];
    int at = 1;
    while (!fits(s, at)) {
        at++;
        if (at + 28 >= MOST_CELLS)
            fail("tables are full", s->name);
    }
    base[number] = at;
    used[at] = used[at - 1] = 1;
    chk[at] = EOB_POSITION;
    for (int i = 0; i < s->edge_count; i++) {
        int cell = at + s->edges[i].symbol;
        used[cell] = 1;
        nxt[cell] = s->edges[i].target;
        chk[cell] = number + 1;
        if (cell > last_cell)
            last_cell = cell;
    }
    if (at > last_cell)
        last_cell = at;
}

static void mark_ends(void)
{
    base[state_count] = last_cell + 2;
    for (int i = 0; i < state_count; i++) {
#ifdef FIXED
        int offset = base[i];
#else
        int offset = base[i + 1];
#endif
        chk[offset - 1] = ACTION_POSITION;
    }
}

static void print_cells(void)
{
    printf("static const short chk[%d] = {\n", last_cell + 1);
    for (int i = 0; i <= last_cell; i++) {
        if (chk[i] == EOB_POSITION)
            printf("    0, /* end of buffer */\n");
        else if (chk[i] == ACTION_POSITION)
            printf("    0, /* action */\n");
        else
            printf("    %d,\n", chk[i]);
    }
    printf("};\n");
}

static void print_rest(void)
{
    printf("static const short nxt[%d] = {\n", last_cell + 1);
    for (int i = 0; i <= last_cell; i++)
        printf("    %d,\n", nxt[i]);
    printf("};\n");
    printf("static const short base[%d] = {\n", state_count);
    for (int i = 0; i < state_count; i++)
        printf("    %d, /* %s, %d */\n", base[i], states[i].name, states[i].accept);
    printf("};\n");
}

int main(void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin))
        read_line(line);
    if (state_count == 0)
        fail("no states", "stdin");
    for (int i = 0; i < MOST_CELLS; i++)
        chk[i] = 1;
    for (int i = 0; i < state_count; i++)
        place(i);
    mark_ends();
    print_cells();
    print_rest();
    return 0;
}
