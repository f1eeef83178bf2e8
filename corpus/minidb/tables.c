/* Tables and values. */
#include <string.h>

#include "minidb.h"

static struct table tables[MAX_TABLES];
static int table_count;

struct table *find_table(const char *name) {
    for (int i = 0; i < table_count; i++)
        if (strcmp(tables[i].name, name) == 0)
            return &tables[i];
    return NULL;
}

struct table *add_table(const char *name) {
    if (table_count == MAX_TABLES || strlen(name) >= NAME_SIZE)
        return NULL;
    struct table *table = &tables[table_count++];
    strcpy(table->name, name);
    tree_start(&table->tree);
    return table;
}

int column_index(const struct table *table, const char *name) {
    for (int i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].name, name) == 0)
            return i;
    return -1;
}

void print_value(const struct value *value, enum type type) {
    if (value->is_null)
        printf("-");
    else if (type == TYPE_NUMBER)
        printf("%lld", (long long)value->number);
    else
        printf("%s", value->text);
}

/* Nulls are below everything. */
int compare_values(const struct value *a, const struct value *b, enum type type) {
    if (a->is_null || b->is_null)
        return b->is_null - a->is_null;
    if (type == TYPE_NUMBER)
        return (a->number > b->number) - (a->number < b->number);
    return strcmp(a->text, b->text);
}
