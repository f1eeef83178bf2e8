/* csvtab: prints a CSV file as an aligned table.
 *
 * usage: csvtab [-d CHAR] [-t] [-n] [-c COLUMNS] [-r COLUMN] [FILE]
 *
 *   -d CHAR     field delimiter (default ,)
 *   -t          print a line with totals of numeric columns
 *   -n          number the rows
 *   -c LIST     only these columns, in this order, as in 3,1
 *   -r COLUMN   sort rows by this column, numbers before text
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_COLUMNS = 32, MAX_ROWS = 1024, MAX_FIELD = 256 };

struct row {
    char *fields[MAX_COLUMNS];
    int count;
};

struct table {
    struct row rows[MAX_ROWS];
    int row_count;
    int column_count;
    int shown[MAX_COLUMNS];
    int shown_count;
    int widths[MAX_COLUMNS];  /* by shown position */
    int numeric[MAX_COLUMNS]; /* by column */
};

struct options {
    char delimiter;
    int totals;
    int numbers;
    int sort_column; /* from 1; 0 is none */
    const char *columns;
};

static void die(const char *message) {
    fprintf(stderr, "csvtab: %s\n", message);
    exit(2);
}

static char *copy(const char *text) {
    char *fresh = malloc(strlen(text) + 1);
    if (!fresh)
        die("out of memory");
    return strcpy(fresh, text);
}

/* ---- reading ---- */

/* Reads one field; returns the character that ended it. Quotes may hold delimiters and newlines;
 * a doubled quote stands for one. */
static int read_field(FILE *file, char delimiter, char *field) {
    int length = 0, quoted = 0;
    int c = getc(file);
    if (c == '"') {
        quoted = 1;
        c = getc(file);
    }
    while (c != EOF) {
        if (quoted && c == '"') {
            c = getc(file);
            if (c != '"') {
                quoted = 0;
                continue;
            }
        } else if (!quoted && (c == delimiter || c == '\n')) {
            break;
        }
        if (c != '\r' && length < MAX_FIELD - 1)
            field[length++] = (char)c;
        c = getc(file);
    }
    field[length] = '\0';
    return c;
}

static int read_row(FILE *file, char delimiter, struct row *row) {
    char field[MAX_FIELD];
    int end = delimiter;
    row->count = 0;
    int first = getc(file);
    if (first == EOF)
        return 0;
    ungetc(first, file);
    while (end == delimiter) {
        end = read_field(file, delimiter, field);
        if (row->count == MAX_COLUMNS)
            die("too many columns");
        row->fields[row->count++] = copy(field);
    }
    return 1;
}

static void read_table(FILE *file, char delimiter, struct table *table) {
    struct row row;
    while (read_row(file, delimiter, &row)) {
        if (row.count == 1 && row.fields[0][0] == '\0') {
            free(row.fields[0]);
            continue;
        }
        if (table->row_count == MAX_ROWS)
            die("too many rows");
        if (row.count > table->column_count)
            table->column_count = row.count;
        table->rows[table->row_count++] = row;
    }
}

/* Rows may be short; absent fields are empty. */
static const char *field_of(const struct table *table, int row, int column) {
    const struct row *r = &table->rows[row];
    return column < r->count ? r->fields[column] : "";
}

/* ---- properties of columns ---- */

static int is_number(const char *text) {
    char *end;
    if (*text == '\0')
        return 0;
    strtod(text, &end);
    return *end == '\0';
}

/* A column is numeric if every field below the heading is a number or empty. */
static void find_numeric(struct table *table) {
    for (int column = 0; column < table->column_count; column++) {
        int numbers = 0, others = 0;
        for (int row = 1; row < table->row_count; row++) {
            const char *field = field_of(table, row, column);
            if (is_number(field))
                numbers++;
            else if (*field)
                others++;
        }
        table->numeric[column] = numbers > 0 && others == 0;
    }
}

static void choose_columns(struct table *table, const char *list) {
    if (!list) {
        for (int column = 0; column < table->column_count; column++)
            table->shown[table->shown_count++] = column;
        return;
    }
    while (*list) {
        char *end;
        long column = strtol(list, &end, 10);
        if (end == list || column < 1 || column > table->column_count)
            die("no such column");
        if (table->shown_count == MAX_COLUMNS)
            die("too many columns");
        table->shown[table->shown_count++] = (int)column - 1;
        list = *end == ',' ? end + 1 : end;
    }
}

static void measure(struct table *table) {
    for (int i = 0; i < table->shown_count; i++) {
        int widest = 0;
        for (int row = 0; row < table->row_count; row++) {
            int width = (int)strlen(field_of(table, row, table->shown[i]));
            if (width > widest)
                widest = width;
        }
        table->widths[i] = widest;
    }
}

/* ---- sorting ---- */

static int compare_fields(const char *a, const char *b) {
    int a_number = is_number(a), b_number = is_number(b);
    if (a_number != b_number)
        return a_number ? -1 : 1;
    if (a_number) {
        double x = strtod(a, NULL), y = strtod(b, NULL);
        return (x > y) - (x < y);
    }
    return strcmp(a, b);
}

/* Insertion sort, stable; the heading stays. */
static void sort_rows(struct table *table, int column) {
    for (int i = 2; i < table->row_count; i++) {
        struct row moving = table->rows[i];
        const char *key = column < moving.count ? moving.fields[column] : "";
        int j = i;
        while (j > 1 && compare_fields(field_of(table, j - 1, column), key) > 0) {
            table->rows[j] = table->rows[j - 1];
            j--;
        }
        table->rows[j] = moving;
    }
}

/* ---- printing ---- */

static void print_cell(const char *text, int width, int right) {
    int padding = width - (int)strlen(text);
    if (right)
        printf("%*s%s", padding > 0 ? padding : 0, "", text);
    else
        printf("%s%*s", text, padding > 0 ? padding : 0, "");
}

static void print_rule(const struct table *table, int numbers) {
    if (numbers)
        printf("----+-");
    for (int i = 0; i < table->shown_count; i++) {
        if (i > 0)
            printf("-+-");
        for (int k = 0; k < table->widths[i]; k++)
            putchar('-');
    }
    putchar('\n');
}

static void print_row(const struct table *table, int row, int numbers) {
    if (numbers && row > 0)
        printf("%3d | ", row);
    else if (numbers)
        printf("    | ");
    for (int i = 0; i < table->shown_count; i++) {
        int column = table->shown[i];
        int right = table->numeric[i] && row > 0;
        if (i > 0)
            printf(" | ");
        print_cell(field_of(table, row, column), table->widths[i], right);
    }
    putchar('\n');
}

static void print_totals(const struct table *table, int numbers) {
    print_rule(table, numbers);
    if (numbers)
        printf("    | ");
    for (int i = 0; i < table->shown_count; i++) {
        char text[64] = "";
        int column = table->shown[i];
        if (table->numeric[column]) {
            double sum = 0;
            for (int row = 1; row < table->row_count; row++)
                sum += strtod(field_of(table, row, column), NULL);
            snprintf(text, sizeof text, "%g", sum);
        }
        if (i > 0)
            printf(" | ");
        print_cell(text, table->widths[i], 1);
    }
    putchar('\n');
}

static void print_table(const struct table *table, const struct options *options) {
    for (int row = 0; row < table->row_count; row++) {
        print_row(table, row, options->numbers);
        if (row == 0)
            print_rule(table, options->numbers);
    }
    if (options->totals)
        print_totals(table, options->numbers);
}

/* ---- main ---- */

static struct options parse_options(int argc, char **argv) {
    struct options options = {.delimiter = ','};
    int letter;
    while ((letter = getopt(argc, argv, "d:tnc:r:")) != -1) {
        switch (letter) {
        case 'd':
            options.delimiter = strcmp(optarg, "\\t") == 0 ? '\t' : optarg[0];
            break;
        case 't':
            options.totals = 1;
            break;
        case 'n':
            options.numbers = 1;
            break;
        case 'c':
            options.columns = optarg;
            break;
        case 'r':
            options.sort_column = atoi(optarg);
            break;
        default:
            die("usage: csvtab [-d CHAR] [-t] [-n] [-c COLUMNS] [-r COLUMN] [FILE]");
        }
    }
    return options;
}

static void release(struct table *table) {
    for (int row = 0; row < table->row_count; row++)
        for (int i = 0; i < table->rows[row].count; i++)
            free(table->rows[row].fields[i]);
}

int main(int argc, char **argv) {
    static struct table table;
    struct options options = parse_options(argc, argv);
    FILE *file = stdin;
    if (optind < argc && !(file = fopen(argv[optind], "r")))
        die("cannot open the file");
    read_table(file, options.delimiter, &table);
    if (table.row_count == 0)
        die("the table is empty");
    if (options.sort_column < 0 || options.sort_column > table.column_count)
        die("no such column");
    find_numeric(&table);
    choose_columns(&table, options.columns);
    measure(&table);
    if (options.sort_column)
        sort_rows(&table, options.sort_column - 1);
    print_table(&table, &options);
    release(&table);
    return 0;
}
