/* gauss: solves systems of linear equations with fractions, exactly.
 *
 * Input: the number of systems; for each the number of equations and of unknowns, then the rows
 * of the augmented matrix. Entries are whole numbers or fractions such as 3/4. For each system
 * the reduced matrix and the solutions are printed. */
#include <stdio.h>
#include <stdlib.h>

struct fraction {
    long top;
    long bottom;
};

struct matrix {
    int rows;
    int columns;
    struct fraction *cells;
    int *pivots; /* for each unknown: the row that determines it, or -1 */
};

static void die(const char *message) {
    fprintf(stderr, "gauss: %s\n", message);
    exit(2);
}

/* ---- fractions ---- */

static long common_divisor(long a, long b) {
    while (b) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return labs(a);
}

static struct fraction make(long top, long bottom) {
    long divisor = common_divisor(top, bottom);
    if (bottom == 0)
        die("division by zero");
    if (bottom < 0)
        divisor = -divisor;
    return (struct fraction){top / divisor, bottom / divisor};
}

static struct fraction minus(struct fraction a, struct fraction b) {
    return make(a.top * b.bottom - b.top * a.bottom, a.bottom * b.bottom);
}

static struct fraction times(struct fraction a, struct fraction b) {
    return make(a.top * b.top, a.bottom * b.bottom);
}

static struct fraction over(struct fraction a, struct fraction b) {
    return make(a.top * b.bottom, a.bottom * b.top);
}

static void print_fraction(struct fraction value) {
    if (value.bottom == 1)
        printf("%ld", value.top);
    else
        printf("%ld/%ld", value.top, value.bottom);
}

/* ---- matrices ---- */

static struct matrix new_matrix(int rows, int columns) {
    struct matrix matrix = {rows, columns, NULL, NULL};
    if (rows < 1 || columns < 2 || rows > 20 || columns > 20)
        die("bad size");
    matrix.cells = calloc((size_t)rows * columns, sizeof *matrix.cells);
    matrix.pivots = malloc((size_t)columns * sizeof *matrix.pivots);
    if (!matrix.cells || !matrix.pivots)
        die("out of memory");
    return matrix;
}

static void free_matrix(struct matrix *matrix) {
    free(matrix->cells);
    free(matrix->pivots);
}

static struct fraction *cell(const struct matrix *matrix, int row, int column) {
    return &matrix->cells[row * matrix->columns + column];
}

static struct matrix read_matrix(FILE *file) {
    int rows, unknowns;
    if (fscanf(file, "%d %d", &rows, &unknowns) != 2)
        die("a size is missing");
    struct matrix matrix = new_matrix(rows, unknowns + 1);
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column <= unknowns; column++) {
            long top, bottom = 1;
            if (fscanf(file, "%ld", &top) != 1)
                die("a number is missing");
            if (fscanf(file, "/%ld", &bottom) != 1)
                bottom = 1;
            *cell(&matrix, row, column) = make(top, bottom);
        }
    }
    return matrix;
}

static void print_matrix(const struct matrix *matrix) {
    for (int row = 0; row < matrix->rows; row++) {
        for (int column = 0; column < matrix->columns; column++) {
            printf(column ? " " : "  ");
            print_fraction(*cell(matrix, row, column));
        }
        printf("\n");
    }
}

/* ---- elimination ---- */

static void swap_rows(struct matrix *matrix, int a, int b) {
    for (int column = 0; column < matrix->columns; column++) {
        struct fraction kept = *cell(matrix, a, column);
        *cell(matrix, a, column) = *cell(matrix, b, column);
        *cell(matrix, b, column) = kept;
    }
}

static void divide_row(struct matrix *matrix, int row, struct fraction divisor) {
    for (int column = 0; column < matrix->columns; column++)
        *cell(matrix, row, column) = over(*cell(matrix, row, column), divisor);
}

static void subtract_row(struct matrix *matrix, int row, int pivot, struct fraction factor) {
    for (int column = 0; column < matrix->columns; column++) {
        struct fraction product = times(*cell(matrix, pivot, column), factor);
        *cell(matrix, row, column) = minus(*cell(matrix, row, column), product);
    }
}

/* Brings the matrix into reduced form; returns its rank. */
static int reduce(struct matrix *matrix) {
    int rank = 0;
    for (int column = 0; column + 1 < matrix->columns && rank < matrix->rows; column++) {
        int row = rank;
        while (row < matrix->rows && cell(matrix, row, column)->top == 0)
            row++;
        if (row == matrix->rows)
            continue;
        swap_rows(matrix, row, rank);
        divide_row(matrix, rank, *cell(matrix, rank, column));
        for (int other = 0; other < matrix->rows; other++)
            if (other != rank)
                subtract_row(matrix, other, rank, *cell(matrix, other, column));
        matrix->pivots[column] = rank++;
    }
    return rank;
}

static int contradicts(const struct matrix *matrix, int rank) {
    for (int row = rank; row < matrix->rows; row++)
        if (cell(matrix, row, matrix->columns - 1)->top != 0)
            return 1;
    return 0;
}

static void print_solution(const struct matrix *matrix) {
    int unknowns = matrix->columns - 1;
    for (int unknown = 0; unknown < unknowns; unknown++) {
        int row = matrix->pivots[unknown];
        printf("  x%d = ", unknown + 1);
        if (row < 0) {
            printf("free\n");
            continue;
        }
        print_fraction(*cell(matrix, row, unknowns));
        for (int other = unknown + 1; other < unknowns; other++) {
            struct fraction factor = *cell(matrix, row, other);
            if (factor.top == 0)
                continue;
            printf(factor.top > 0 ? " - " : " + ");
            factor.top = labs(factor.top);
            if (factor.top != 1 || factor.bottom != 1) {
                print_fraction(factor);
                printf("*");
            }
            printf("x%d", other + 1);
        }
        printf("\n");
    }
}

int main(void) {
    int count;
    if (scanf("%d", &count) != 1)
        die("the number of systems is missing");
    for (int number = 1; number <= count; number++) {
        struct matrix matrix = read_matrix(stdin);
        int rank = reduce(&matrix);
        printf("system %d, rank %d\n", number, rank);
        print_matrix(&matrix);
        if (contradicts(&matrix, rank))
            printf("  no solution\n");
        else
            print_solution(&matrix);
        free_matrix(&matrix);
    }
    return 0;
}
