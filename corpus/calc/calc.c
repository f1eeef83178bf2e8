/* calc: a line-by-line calculator with variables and functions.
 *
 * Each line is an expression or `name = expression`; the result is printed. Operators, loosest
 * first: comparison (< > == !=), + -, * / %, unary -, ^ (right to left). Functions: min, max,
 * abs, sum, fact, gcd. `ans` is the last result. Whole numbers only. Lines starting with # are
 * comments. */
#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 16, MAX_VARIABLES = 64, MAX_ARGUMENTS = 8, MAX_LINE = 512 };

enum token_kind {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_NAME,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_STAR,
    TOKEN_SLASH,
    TOKEN_PERCENT,
    TOKEN_POWER,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_COMMA,
    TOKEN_ASSIGN,
    TOKEN_EQUAL,
    TOKEN_DIFFERENT,
    TOKEN_LESS,
    TOKEN_GREATER,
};

struct token {
    enum token_kind kind;
    long number;
    char name[MAX_NAME];
};

struct variable {
    char name[MAX_NAME];
    long value;
};

struct parser {
    const char *text;
    int position;
    struct token token;
};

static struct variable variables[MAX_VARIABLES];
static int variable_count;
static jmp_buf on_error;
static char error_text[128];

static void fail(const char *message, const char *detail) {
    snprintf(error_text, sizeof error_text, "%s%s", message, detail);
    longjmp(on_error, 1);
}

/* ---- variables ---- */

static struct variable *find_variable(const char *name) {
    for (int i = 0; i < variable_count; i++)
        if (strcmp(variables[i].name, name) == 0)
            return &variables[i];
    return NULL;
}

static void set_variable(const char *name, long value) {
    struct variable *variable = find_variable(name);
    if (!variable) {
        if (variable_count == MAX_VARIABLES)
            fail("too many variables", "");
        variable = &variables[variable_count++];
        snprintf(variable->name, sizeof variable->name, "%s", name);
    }
    variable->value = value;
}

/* ---- tokens ---- */

static enum token_kind operator_kind(struct parser *parser, char c) {
    const char *next = parser->text + parser->position;
    switch (c) {
    case '+':
        return TOKEN_PLUS;
    case '-':
        return TOKEN_MINUS;
    case '*':
        return TOKEN_STAR;
    case '/':
        return TOKEN_SLASH;
    case '%':
        return TOKEN_PERCENT;
    case '^':
        return TOKEN_POWER;
    case '(':
        return TOKEN_OPEN;
    case ')':
        return TOKEN_CLOSE;
    case ',':
        return TOKEN_COMMA;
    case '<':
        return TOKEN_LESS;
    case '>':
        return TOKEN_GREATER;
    case '=':
        if (*next == '=') {
            parser->position++;
            return TOKEN_EQUAL;
        }
        return TOKEN_ASSIGN;
    case '!':
        if (*next == '=') {
            parser->position++;
            return TOKEN_DIFFERENT;
        }
        break;
    }
    char text[2] = {c, 0};
    fail("unexpected character ", text);
    return TOKEN_END;
}

static void advance(struct parser *parser) {
    const char *text = parser->text;
    struct token *token = &parser->token;
    while (isspace((unsigned char)text[parser->position]))
        parser->position++;
    char c = text[parser->position];
    if (c == '\0') {
        token->kind = TOKEN_END;
    } else if (isdigit((unsigned char)c)) {
        char *end;
        token->kind = TOKEN_NUMBER;
        token->number = strtol(text + parser->position, &end, 10);
        parser->position = (int)(end - text);
    } else if (isalpha((unsigned char)c)) {
        int length = 0;
        token->kind = TOKEN_NAME;
        while (isalnum((unsigned char)text[parser->position])) {
            if (length < MAX_NAME - 1)
                token->name[length++] = text[parser->position];
            parser->position++;
        }
        token->name[length] = '\0';
    } else {
        parser->position++;
        token->kind = operator_kind(parser, c);
    }
}

static int accept(struct parser *parser, enum token_kind kind) {
    if (parser->token.kind != kind)
        return 0;
    advance(parser);
    return 1;
}

static void expect(struct parser *parser, enum token_kind kind, const char *what) {
    if (!accept(parser, kind))
        fail("expected ", what);
}

/* ---- functions ---- */

static long gcd(long a, long b) {
    while (b != 0) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return labs(a);
}

static long extreme(const long *arguments, int count, int sign) {
    long best = arguments[0];
    for (int i = 1; i < count; i++)
        if ((arguments[i] - best) * sign > 0)
            best = arguments[i];
    return best;
}

static long call(const char *name, const long *arguments, int count) {
    if (count == 0)
        fail("no arguments for ", name);
    if (strcmp(name, "min") == 0)
        return extreme(arguments, count, -1);
    if (strcmp(name, "max") == 0)
        return extreme(arguments, count, 1);
    if (strcmp(name, "abs") == 0 && count == 1)
        return labs(arguments[0]);
    if (strcmp(name, "sum") == 0) {
        long sum = 0;
        for (int i = 0; i < count; i++)
            sum += arguments[i];
        return sum;
    }
    if (strcmp(name, "gcd") == 0 && count == 2)
        return gcd(arguments[0], arguments[1]);
    if (strcmp(name, "fact") == 0 && count == 1) {
        long product = 1;
        if (arguments[0] < 0 || arguments[0] > 20)
            fail("out of range: ", name);
        for (long i = 2; i <= arguments[0]; i++)
            product *= i;
        return product;
    }
    fail("no such function: ", name);
    return 0;
}

/* ---- expressions ---- */

static long comparison(struct parser *parser);
static long unary(struct parser *parser);

static long named(struct parser *parser, const char *name) {
    if (accept(parser, TOKEN_OPEN)) {
        long arguments[MAX_ARGUMENTS];
        int count = 0;
        if (parser->token.kind != TOKEN_CLOSE) {
            do {
                if (count == MAX_ARGUMENTS)
                    fail("too many arguments", "");
                arguments[count++] = comparison(parser);
            } while (accept(parser, TOKEN_COMMA));
        }
        expect(parser, TOKEN_CLOSE, ")");
        return call(name, arguments, count);
    }
    struct variable *variable = find_variable(name);
    if (!variable)
        fail("unknown name ", name);
    return variable->value;
}

static long primary(struct parser *parser) {
    struct token token = parser->token;
    if (accept(parser, TOKEN_NUMBER))
        return token.number;
    if (accept(parser, TOKEN_NAME))
        return named(parser, token.name);
    if (accept(parser, TOKEN_OPEN)) {
        long value = comparison(parser);
        expect(parser, TOKEN_CLOSE, ")");
        return value;
    }
    fail("expected a value", "");
    return 0;
}

static long raise(long base, long exponent) {
    long result = 1;
    if (exponent < 0)
        fail("negative exponent", "");
    while (exponent > 0) {
        if (exponent & 1)
            result *= base;
        base *= base;
        exponent >>= 1;
    }
    return result;
}

static long power(struct parser *parser) {
    long base = primary(parser);
    if (accept(parser, TOKEN_POWER))
        return raise(base, unary(parser));
    return base;
}

static long unary(struct parser *parser) {
    if (accept(parser, TOKEN_MINUS))
        return -unary(parser);
    return power(parser);
}

static long product(struct parser *parser) {
    long value = unary(parser);
    for (;;) {
        enum token_kind kind = parser->token.kind;
        if (kind != TOKEN_STAR && kind != TOKEN_SLASH && kind != TOKEN_PERCENT)
            return value;
        advance(parser);
        long right = product(parser);
        if (kind == TOKEN_STAR) {
            value *= right;
            continue;
        }
        if (right == 0)
            fail("division by zero", "");
        value = kind == TOKEN_SLASH ? value / right : value % right;
    }
}

static long sum(struct parser *parser) {
    long value = product(parser);
    for (;;) {
        if (accept(parser, TOKEN_PLUS))
            value += product(parser);
        else if (accept(parser, TOKEN_MINUS))
            value -= product(parser);
        else
            return value;
    }
}

static long comparison(struct parser *parser) {
    long value = sum(parser);
    if (accept(parser, TOKEN_LESS))
        return value < sum(parser);
    if (accept(parser, TOKEN_GREATER))
        return value > sum(parser);
    if (accept(parser, TOKEN_EQUAL))
        return value == sum(parser);
    if (accept(parser, TOKEN_DIFFERENT))
        return value != sum(parser);
    return value;
}

/* ---- lines ---- */

/* `name =` at the start makes the line an assignment. */
static int assignment(struct parser *parser, char *name) {
    struct parser saved = *parser;
    if (parser->token.kind == TOKEN_NAME) {
        strcpy(name, parser->token.name);
        advance(parser);
        if (accept(parser, TOKEN_ASSIGN))
            return 1;
    }
    *parser = saved;
    return 0;
}

static long evaluate(const char *line, char *name) {
    struct parser parser = {.text = line};
    advance(&parser);
    int assigns = assignment(&parser, name);
    long value = comparison(&parser);
    if (parser.token.kind != TOKEN_END)
        fail("trailing text", "");
    if (assigns)
        set_variable(name, value);
    else
        name[0] = '\0';
    set_variable("ans", value);
    return value;
}

static int is_comment(const char *line) {
    while (isspace((unsigned char)*line))
        line++;
    return *line == '\0' || *line == '#';
}

int main(void) {
    char line[MAX_LINE];
    volatile int number = 0, errors = 0;
    while (fgets(line, sizeof line, stdin)) {
        char name[MAX_NAME] = "";
        number++;
        line[strcspn(line, "\n")] = '\0';
        if (is_comment(line))
            continue;
        if (setjmp(on_error)) {
            printf("line %d: %s\n", number, error_text);
            errors++;
            continue;
        }
        long value = evaluate(line, name);
        if (name[0])
            printf("%s = %ld\n", name, value);
        else
            printf("%ld\n", value);
    }
    return errors > 0;
}
