/* Statements: words of a line, then what they mean.
 *
 *     create TABLE KEY COLUMN[:text] ...
 *     insert TABLE KEY VALUE ...
 *     load TABLE FROM TO STEP VALUE ...      many rows; $ in a value is the key
 *     get TABLE KEY
 *     select TABLE COLUMN|*[,...] [where COLUMN OP VALUE [and ...]] [order COLUMN [desc]] [limit N]
 *     sum|min|max|count TABLE COLUMN [where ...]
 *     update TABLE COLUMN VALUE [where ...]
 *     delete TABLE [where ...]
 *     tables   tree TABLE   check TABLE   pages */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "minidb.h"

enum { MAX_CONDITIONS = 8, MAX_RESULT = 2048 };

enum comparison { EQUAL, DIFFERENT, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL };

struct condition {
    int column;
    enum comparison comparison;
    struct value value;
};

struct filter {
    struct condition conditions[MAX_CONDITIONS];
    int count;
};

struct words {
    char *items[MAX_WORDS];
    int count;
    int next;
};

static int fail(const char *message, const char *detail) {
    printf("error: %s%s\n", message, detail);
    return 0;
}

/* ---- words ---- */

/* Splits at blanks and commas; quotes hold a word together. */
static void split(char *line, struct words *words) {
    words->count = words->next = 0;
    while (*line && words->count < MAX_WORDS) {
        while (*line && (isspace((unsigned char)*line) || *line == ','))
            *line++ = '\0';
        if (!*line)
            break;
        if (*line == '\'') {
            words->items[words->count++] = ++line;
            while (*line && *line != '\'')
                line++;
            if (*line)
                *line++ = '\0';
            continue;
        }
        words->items[words->count++] = line;
        while (*line && !isspace((unsigned char)*line) && *line != ',')
            line++;
    }
}

static const char *take(struct words *words) {
    return words->next < words->count ? words->items[words->next++] : NULL;
}

static int take_word(struct words *words, const char *word) {
    if (words->next < words->count && strcmp(words->items[words->next], word) == 0) {
        words->next++;
        return 1;
    }
    return 0;
}

static int parse_number(const char *text, int64_t *number) {
    char *end;
    *number = strtoll(text, &end, 10);
    return end != text && *end == '\0';
}

static int parse_value(const char *text, enum type type, struct value *value) {
    memset(value, 0, sizeof *value);
    if (strcmp(text, "null") == 0) {
        value->is_null = 1;
        return 1;
    }
    if (type == TYPE_NUMBER)
        return parse_number(text, &value->number);
    snprintf(value->text, sizeof value->text, "%s", text);
    return 1;
}

static struct table *take_table(struct words *words) {
    const char *name = take(words);
    struct table *table = name ? find_table(name) : NULL;
    if (!table)
        fail("no such table: ", name ? name : "");
    return table;
}

/* ---- conditions ---- */

static int parse_comparison(const char *text, enum comparison *comparison) {
    static const char *const texts[] = {"=", "<>", "<", "<=", ">", ">="};
    for (int i = 0; text && i < 6; i++) {
        if (strcmp(texts[i], text) == 0) {
            *comparison = (enum comparison)i;
            return 1;
        }
    }
    return 0;
}

static int parse_filter(struct words *words, const struct table *table, struct filter *filter) {
    filter->count = 0;
    if (!take_word(words, "where"))
        return 1;
    do {
        if (filter->count == MAX_CONDITIONS)
            return fail("too many conditions", "");
        struct condition *condition = &filter->conditions[filter->count++];
        const char *name = take(words), *operator= take(words), *text = take(words);
        condition->column = name ? column_index(table, name) : -1;
        if (condition->column < 0)
            return fail("no such column: ", name ? name : "");
        if (!parse_comparison(operator, &condition->comparison) || !text)
            return fail("bad condition", "");
        if (!parse_value(text, table->columns[condition->column].type, &condition->value))
            return fail("bad value: ", text);
    } while (take_word(words, "and"));
    return 1;
}

static int matches(const struct table *table, const struct filter *filter,
                   const struct row *row) {
    for (int i = 0; i < filter->count; i++) {
        const struct condition *condition = &filter->conditions[i];
        const struct value *value = &row->values[condition->column];
        enum type type = table->columns[condition->column].type;
        if (value->is_null != condition->value.is_null) {
            if (condition->comparison != DIFFERENT)
                return 0;
            continue;
        }
        int order = compare_values(value, &condition->value, type), holds;
        switch (condition->comparison) {
        case EQUAL:
            holds = order == 0;
            break;
        case DIFFERENT:
            holds = order != 0;
            break;
        case LESS:
            holds = order < 0;
            break;
        case LESS_EQUAL:
            holds = order <= 0;
            break;
        case GREATER:
            holds = order > 0;
            break;
        default:
            holds = order >= 0;
        }
        if (!holds)
            return 0;
    }
    return 1;
}

/* Conditions on the key narrow the range of keys to walk. */
static void key_range(const struct filter *filter, int64_t *low, int64_t *high) {
    *low = INT64_MIN;
    *high = INT64_MAX;
    for (int i = 0; i < filter->count; i++) {
        const struct condition *condition = &filter->conditions[i];
        int64_t number = condition->value.number;
        if (condition->column != 0 || condition->value.is_null)
            continue;
        switch (condition->comparison) {
        case EQUAL:
            *low = *low > number ? *low : number;
            *high = *high < number ? *high : number;
            break;
        case GREATER:
        case GREATER_EQUAL:
            *low = *low > number ? *low : number;
            break;
        case LESS:
        case LESS_EQUAL:
            *high = *high < number ? *high : number;
            break;
        default:
            break;
        }
    }
}

/* Collects pointers to the matching rows, in order of their keys. */
static int collect(const struct table *table, const struct filter *filter, struct row **rows) {
    int64_t low, high;
    int count = 0;
    key_range(filter, &low, &high);
    struct cursor cursor = tree_seek(&table->tree, low);
    for (struct row *row; (row = cursor_row(&cursor)) && row->key <= high;
         cursor_next(&cursor))
        if (count < MAX_RESULT && matches(table, filter, row))
            rows[count++] = row;
    return count;
}

/* ---- statements ---- */

static int create(struct words *words) {
    const char *name = take(words), *column;
    if (!name || find_table(name))
        return fail("the table exists or has no name", "");
    struct table *table = add_table(name);
    if (!table)
        return fail("no room for the table", "");
    while ((column = take(words)) && table->column_count < MAX_COLUMNS) {
        struct column *fresh = &table->columns[table->column_count++];
        const char *colon = strchr(column, ':');
        size_t length = colon ? (size_t)(colon - column) : strlen(column);
        snprintf(fresh->name, sizeof fresh->name, "%.*s", (int)length, column);
        fresh->type = colon && strcmp(colon, ":text") == 0 ? TYPE_TEXT : TYPE_NUMBER;
    }
    if (table->column_count == 0 || table->columns[0].type == TYPE_TEXT)
        return fail("a table needs a number as its key", "");
    return 1;
}

static int parse_row(const struct table *table, struct words *words, struct row *row) {
    memset(row, 0, sizeof *row);
    for (int i = 0; i < table->column_count; i++) {
        const char *text = take(words);
        if (!text)
            row->values[i].is_null = 1;
        else if (!parse_value(text, table->columns[i].type, &row->values[i]))
            return fail("bad value: ", text);
    }
    if (row->values[0].is_null)
        return fail("a row needs a key", "");
    row->key = row->values[0].number;
    return 1;
}

static int insert(struct words *words) {
    struct row row;
    struct table *table = take_table(words);
    if (!table || !parse_row(table, words, &row))
        return 0;
    if (!tree_insert(&table->tree, &row))
        return fail("the key exists", "");
    return 1;
}

/* Values of loaded rows: $ is the key, $N the remainder of the key by N. */
static void loaded_value(const char *text, enum type type, int64_t key, struct value *value) {
    if (text[0] == '$') {
        int64_t modulus = atoll(text + 1);
        value->number = modulus > 0 ? key % modulus : key;
        snprintf(value->text, sizeof value->text, "%lld", (long long)value->number);
    } else {
        parse_value(text, type, value);
    }
}

static int load(struct words *words) {
    int64_t from, to, step, added = 0;
    struct table *table = take_table(words);
    const char *texts[3] = {take(words), take(words), take(words)};
    if (!table)
        return 0;
    if (!texts[2] || !parse_number(texts[0], &from) || !parse_number(texts[1], &to) ||
        !parse_number(texts[2], &step) || step == 0)
        return fail("bad range", "");
    int first = words->next;
    for (int64_t key = from; step > 0 ? key <= to : key >= to; key += step) {
        struct row row;
        memset(&row, 0, sizeof row);
        row.key = row.values[0].number = key;
        words->next = first;
        for (int i = 1; i < table->column_count; i++) {
            const char *text = take(words);
            if (text)
                loaded_value(text, table->columns[i].type, key, &row.values[i]);
            else
                row.values[i].is_null = 1;
        }
        added += tree_insert(&table->tree, &row);
    }
    printf("%lld rows added\n", (long long)added);
    return 1;
}

static void print_row(const struct table *table, const struct row *row, const int *columns,
                      int count) {
    for (int i = 0; i < count; i++) {
        if (i > 0)
            printf(" | ");
        print_value(&row->values[columns[i]], table->columns[columns[i]].type);
    }
    printf("\n");
}

static int get(struct words *words) {
    int64_t key;
    int columns[MAX_COLUMNS] = {0, 1, 2, 3, 4, 5};
    struct table *table = take_table(words);
    const char *text = take(words);
    if (!table)
        return 0;
    if (!text || !parse_number(text, &key))
        return fail("a key is needed", "");
    struct row *row = tree_find(&table->tree, key);
    if (row)
        print_row(table, row, columns, table->column_count);
    else
        printf("no row %lld\n", (long long)key);
    return 1;
}

static int parse_columns(struct words *words, const struct table *table, int *columns) {
    int count = 0;
    while (words->next < words->count && count < MAX_COLUMNS) {
        const char *name = words->items[words->next];
        if (strcmp(name, "where") == 0 || strcmp(name, "order") == 0 ||
            strcmp(name, "limit") == 0)
            break;
        words->next++;
        if (strcmp(name, "*") == 0) {
            for (count = 0; count < table->column_count; count++)
                columns[count] = count;
            break;
        }
        columns[count] = column_index(table, name);
        if (columns[count++] < 0) {
            fail("no such column: ", name);
            return 0;
        }
    }
    return count;
}

static void sort_rows(const struct table *table, struct row **rows, int count, int column,
                      int descending) {
    enum type type = table->columns[column].type;
    for (int i = 1; i < count; i++) {
        struct row *moving = rows[i];
        int j = i;
        for (; j > 0; j--) {
            int order =
                compare_values(&rows[j - 1]->values[column], &moving->values[column], type);
            if (descending ? order >= 0 : order <= 0)
                break;
            rows[j] = rows[j - 1];
        }
        rows[j] = moving;
    }
}

static int select_rows(struct words *words) {
    static struct row *rows[MAX_RESULT];
    int columns[MAX_COLUMNS];
    struct filter filter;
    struct table *table = take_table(words);
    if (!table)
        return 0;
    int column_count = parse_columns(words, table, columns);
    if (column_count == 0 || !parse_filter(words, table, &filter))
        return 0;
    int count = collect(table, &filter, rows), shown = count;
    if (take_word(words, "order")) {
        const char *name = take(words);
        int column = name ? column_index(table, name) : -1;
        if (column < 0)
            return fail("no such column: ", name ? name : "");
        sort_rows(table, rows, count, column, take_word(words, "desc"));
    }
    if (take_word(words, "limit")) {
        const char *text = take(words);
        int64_t limit;
        if (!text || !parse_number(text, &limit) || limit < 0)
            return fail("bad limit", "");
        shown = limit < count ? (int)limit : count;
    }
    if (words->next < words->count)
        return fail("unexpected: ", words->items[words->next]);
    for (int i = 0; i < shown; i++)
        print_row(table, rows[i], columns, column_count);
    printf("(%d of %d rows)\n", shown, count);
    return 1;
}

static int aggregate(struct words *words, const char *function) {
    static struct row *rows[MAX_RESULT];
    struct filter filter;
    struct table *table = take_table(words);
    const char *name = take(words);
    if (!table)
        return 0;
    int column = name ? column_index(table, name) : -1;
    if (column < 0)
        return fail("no such column: ", name ? name : "");
    if (!parse_filter(words, table, &filter))
        return 0;
    int count = collect(table, &filter, rows), seen = 0;
    int64_t sum = 0;
    const struct value *low = NULL, *high = NULL;
    enum type type = table->columns[column].type;
    for (int i = 0; i < count; i++) {
        const struct value *value = &rows[i]->values[column];
        if (value->is_null)
            continue;
        seen++;
        sum += value->number;
        if (!low || compare_values(value, low, type) < 0)
            low = value;
        if (!high || compare_values(value, high, type) > 0)
            high = value;
    }
    if (strcmp(function, "count") == 0)
        printf("%d\n", seen);
    else if (strcmp(function, "sum") == 0)
        printf("%lld\n", (long long)sum);
    else if (!low)
        printf("-\n");
    else {
        print_value(strcmp(function, "min") == 0 ? low : high, type);
        printf("\n");
    }
    return 1;
}

static int update(struct words *words) {
    static struct row *rows[MAX_RESULT];
    struct filter filter;
    struct value value;
    struct table *table = take_table(words);
    const char *name = take(words), *text = take(words);
    if (!table)
        return 0;
    int column = name ? column_index(table, name) : -1;
    if (column < 1 || !text)
        return fail("this column cannot be changed", "");
    if (!parse_value(text, table->columns[column].type, &value))
        return fail("bad value: ", text);
    if (!parse_filter(words, table, &filter))
        return 0;
    int count = collect(table, &filter, rows);
    for (int i = 0; i < count; i++)
        rows[i]->values[column] = value;
    printf("%d rows changed\n", count);
    return 1;
}

static int delete_rows(struct words *words) {
    static struct row *rows[MAX_RESULT];
    static int64_t keys[MAX_RESULT];
    struct filter filter;
    struct table *table = take_table(words);
    if (!table || !parse_filter(words, table, &filter))
        return 0;
    int count = collect(table, &filter, rows), gone = 0;
    for (int i = 0; i < count; i++)
        keys[i] = rows[i]->key;
    for (int i = 0; i < count; i++)
        gone += tree_delete(&table->tree, keys[i]);
    printf("%d rows deleted\n", gone);
    return 1;
}

static int inspect(struct words *words, const char *order) {
    struct table *table = take_table(words);
    if (!table)
        return 0;
    if (strcmp(order, "tree") == 0)
        tree_print(&table->tree);
    else
        printf("%s: %lld rows, depth %d, %d problems\n", table->name,
               (long long)table->tree.count, tree_depth(&table->tree),
               tree_check(&table->tree));
    return 1;
}

int obey(char *line) {
    struct words words;
    split(line, &words);
    const char *order = take(&words);
    if (!order || order[0] == '#')
        return 1;
    if (strcmp(order, "create") == 0)
        return create(&words);
    if (strcmp(order, "insert") == 0)
        return insert(&words);
    if (strcmp(order, "load") == 0)
        return load(&words);
    if (strcmp(order, "get") == 0)
        return get(&words);
    if (strcmp(order, "select") == 0)
        return select_rows(&words);
    if (strcmp(order, "sum") == 0 || strcmp(order, "min") == 0 || strcmp(order, "max") == 0 ||
        strcmp(order, "count") == 0)
        return aggregate(&words, order);
    if (strcmp(order, "update") == 0)
        return update(&words);
    if (strcmp(order, "delete") == 0)
        return delete_rows(&words);
    if (strcmp(order, "tree") == 0 || strcmp(order, "check") == 0)
        return inspect(&words, order);
    if (strcmp(order, "pages") == 0) {
        printf("%d pages\n", pages_used());
        return 1;
    }
    return fail("no such statement: ", order);
}
