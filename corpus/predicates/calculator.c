/* A calculator for integers with variables, arrays and functions of one line.
 *
 *   name = expression
 *   name[expression] = expression
 *   expression            prints it
 *
 * Names get numbers as they come; variables and arrays have tables that grow.
 *
 * The fault: when the table of arrays grows, it is cleared up to the size of
 * the table of variables, which lies behind it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORE_INCREMENT = 8, MOST_NAMES = 64, ARRAY_SIZE = 16, POOL = 4096 };

struct variable {
    long value;
};

struct array {
    long cells[ARRAY_SIZE];
};

static char names[2][MOST_NAMES][16];
static int name_counts[2];

static struct variable **variables;
static int v_count;
static struct array **arrays;
static int a_count;

/* A pool that is handed out from one end, so that neighbours are neighbours. */
static _Alignas(16) char pool[POOL * 16];
static size_t pool_used;

static const char *input;

static void *take(size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (pool_used + size > sizeof pool) {
        fprintf(stderr, "calculator: out of memory\n");
        exit(2);
    }
    void *p = pool + pool_used;
    pool_used += size;
    return p;
}

static void more_variables(void)
{
    int old = v_count;
    struct variable **before = variables;
    v_count += STORE_INCREMENT;
    variables = take(v_count * sizeof *variables);
    int i;
    for (i = 0; i < old; i++)
        variables[i] = before[i];
    for (; i < v_count; i++)
        variables[i] = take(sizeof **variables);
}

static void more_arrays(void)
{
    int old = a_count;
    struct array **before = arrays;
    a_count += STORE_INCREMENT;
    arrays = take(a_count * sizeof *arrays);
    /* Objects behind the table: the store of the newest variables. */
    if (v_count > 0)
        more_variables();
    int i;
    for (i = 0; i < old; i++)
        arrays[i] = before[i];
#ifdef FIXED
    for (; i < a_count; i++)
#else
    for (; i < v_count; i++)
#endif
        arrays[i] = NULL;
}

static int lookup(const char *name, int is_array)
{
    for (int i = 0; i < name_counts[is_array]; i++)
        if (strcmp(names[is_array][i], name) == 0)
            return i;
    if (name_counts[is_array] == MOST_NAMES) {
        fprintf(stderr, "calculator: too many names\n");
        exit(2);
    }
    int n = name_counts[is_array]++;
    snprintf(names[is_array][n], 16, "%s", name);
    return n;
}

static struct variable *get_variable(int n)
{
    while (n >= v_count)
        more_variables();
    return variables[n];
}

static struct array *get_array(int n)
{
    while (n >= a_count)
        more_arrays();
    if (arrays[n] == NULL)
        arrays[n] = take(sizeof **arrays);
    return arrays[n];
}

static void blanks(void)
{
    while (*input == ' ')
        input++;
}

static int accept(char c)
{
    blanks();
    if (*input != c)
        return 0;
    input++;
    return 1;
}

static long expression(void);

static long *place(void)
{
    char name[16];
    int n = 0;
    while (isalnum((unsigned char)*input) && n < 15)
        name[n++] = *input++;
    name[n] = 0;
    if (accept('[')) {
        long index = expression();
        accept(']');
        struct array *a = get_array(lookup(name, 1));
        return &a->cells[(unsigned long)index % ARRAY_SIZE];
    }
    return &get_variable(lookup(name, 0))->value;
}

static long factor(void)
{
    blanks();
    if (accept('(')) {
        long value = expression();
        accept(')');
        return value;
    }
    if (accept('-'))
        return -factor();
    if (isdigit((unsigned char)*input))
        return strtol(input, (char **)&input, 10);
    if (isalpha((unsigned char)*input)) {
        long *p = place();
        return accept('=') ? (*p = expression()) : *p;
    }
    fprintf(stderr, "calculator: syntax: %s\n", input);
    exit(2);
}

static long term(void)
{
    long value = factor();
    while (1) {
        if (accept('*'))
            value *= factor();
        else if (accept('/')) {
            long by = factor();
            value = by ? value / by : 0;
        } else
            return value;
    }
}

static long expression(void)
{
    long value = term();
    while (1) {
        if (accept('+'))
            value += term();
        else if (accept('-'))
            value -= term();
        else
            return value;
    }
}

int main(void)
{
    char line[256];
    more_variables();
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!line[0])
            continue;
        input = line;
        int quiet = strchr(line, '=') != NULL;
        long value = expression();
        if (!quiet)
            printf("%ld\n", value);
    }
    return 0;
}
