/* A make that only prints: reads rules from standard input and prints the
 * command of every target that the goal needs, in order.
 *
 *   minimake GOAL
 *
 *   target: prerequisite …
 *   <tab>text with $@ and $<
 *
 * A colon that belongs to a name is written `\:`.
 *
 * The fault: the backslash before a quoted colon is only removed from the name of
 * a prerequisite if another colon follows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RULES = 64, MOST_NAMES = 16, MOST_NAME = 64 };

struct rule {
    char target[MOST_NAME];
    char needs[MOST_NAMES][MOST_NAME];
    int need_count;
    char command[128];
    int done;
    int busy;
};

static struct rule rules[MOST_RULES];
static int rule_count;

static void fail(const char *why, const char *what)
{
    fflush(stdout);
    fprintf(stderr, "minimake: %s '%s'\n", why, what);
    exit(2);
}

/* Finds `stop` in a string, past quoted ones, and removes their backslashes. */
static char *find_unquoted(char *string, char stop)
{
    char *p = string;
    while (1) {
        while (*p != '\0' && *p != stop)
            p++;
        if (*p == '\0')
            return NULL;
        if (p > string && p[-1] == '\\') {
            /* Move the rest over the backslash. */
            memmove(p - 1, p, strlen(p) + 1);
            continue;
        }
        return p;
    }
}

/* Removes backslashes from one name. */
static void unquote(char *name)
{
    char *from = name, *to = name;
    while (*from) {
#ifdef FIXED
        if (from[0] == '\\' && from[1] == ':')
#else
        if (from[0] == '\\' && from[1] == ':' && strchr(from + 2, ':') != NULL)
#endif
            from++;
        *to++ = *from++;
    }
    *to = 0;
}

static void copy_name(char *to, const char *from, size_t length)
{
    if (length == 0 || length >= MOST_NAME)
        fail("bad name", from);
    memcpy(to, from, length);
    to[length] = 0;
}

static void add_needs(struct rule *r, char *text)
{
    char *word = strtok(text, " \t");
    while (word != NULL) {
        if (r->need_count == MOST_NAMES)
            fail("too many prerequisites for", r->target);
        copy_name(r->needs[r->need_count], word, strlen(word));
        unquote(r->needs[r->need_count]);
        r->need_count++;
        word = strtok(NULL, " \t");
    }
}

static void read_rule(char *line)
{
    if (rule_count == MOST_RULES)
        fail("too many rules at", line);
    char *colon = find_unquoted(line, ':');
    if (colon == NULL)
        fail("no colon in", line);
    struct rule *r = &rules[rule_count];
    memset(r, 0, sizeof *r);
    copy_name(r->target, line, colon - line);
    add_needs(r, colon + 1);
    /* Nothing is a file here, so .PHONY says nothing new. */
    if (strcmp(r->target, ".PHONY") != 0)
        rule_count++;
}

static struct rule *find_rule(const char *target)
{
    for (int i = 0; i < rule_count; i++)
        if (strcmp(rules[i].target, target) == 0)
            return &rules[i];
    return NULL;
}

static void expand(const struct rule *r)
{
    for (const char *p = r->command; *p; p++) {
        if (p[0] == '$' && p[1] == '@') {
            fputs(r->target, stdout);
            p++;
        } else if (p[0] == '$' && p[1] == '<') {
            fputs(r->need_count ? r->needs[0] : "", stdout);
            p++;
        } else {
            putchar(*p);
        }
    }
    putchar('\n');
}

static void build(const char *target, const char *parent)
{
    struct rule *r = find_rule(target);
    if (r == NULL) {
        /* Sources have an extension and are there. */
        if (strchr(target, '.') == NULL)
            fail(parent ? "no rule to make what is needed," : "no rule to make", target);
        return;
    }
    if (r->done)
        return;
    if (r->busy)
        fail("circular need of", target);
    r->busy = 1;
    for (int i = 0; i < r->need_count; i++)
        build(r->needs[i], target);
    r->busy = 0;
    r->done = 1;
    if (r->command[0])
        expand(r);
}

int main(int argc, char **argv)
{
    char line[256];
    if (argc != 2) {
        fprintf(stderr, "usage: minimake GOAL\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '\t' && rule_count > 0)
            snprintf(rules[rule_count - 1].command, 128, "%s", line + 1);
        else if (line[0] && line[0] != '#')
            read_rule(line);
    }
    build(argv[1], NULL);
    return 0;
}
