/* Running a program: values, variables, expressions, statements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basic.h"

struct value {
    int is_string;
    double number;
    char text[MAX_STRING];
};

struct variable {
    char name[MAX_NAME];
    struct value value;
    double *items; /* of an array */
    int size;
};

/* Where to continue: a line and a token in it. */
struct place {
    int line;
    int token;
};

struct loop {
    char name[MAX_NAME];
    double limit;
    double step;
    struct place body;
};

struct machine {
    struct program *program;
    struct place at;
    struct variable variables[MAX_VARIABLES];
    int variable_count;
    struct place calls[MAX_DEPTH];
    int call_count;
    struct loop loops[MAX_DEPTH];
    int loop_count;
    struct place data;
    int column;
    int stopped;
    long steps;
};

/* ---- tokens ---- */

static int current_number(const struct machine *machine) {
    if (machine->at.line < machine->program->count)
        return machine->program->lines[machine->at.line]->number;
    return 0;
}

static const struct token *peek(const struct machine *machine) {
    return &machine->program->lines[machine->at.line]->tokens[machine->at.token];
}

static void fail(const struct machine *machine, const char *message) {
    if (machine->column > 0)
        putchar('\n');
    basic_error(current_number(machine), message);
}

static int at_symbol(const struct machine *machine, int symbol) {
    const struct token *token = peek(machine);
    return token->kind == TOKEN_SYMBOL && token->symbol == symbol;
}

static int at_keyword(const struct machine *machine, int keyword) {
    const struct token *token = peek(machine);
    return token->kind == TOKEN_KEYWORD && token->symbol == keyword;
}

static int take_symbol(struct machine *machine, int symbol) {
    if (!at_symbol(machine, symbol))
        return 0;
    machine->at.token++;
    return 1;
}

static int take_keyword(struct machine *machine, int keyword) {
    if (!at_keyword(machine, keyword))
        return 0;
    machine->at.token++;
    return 1;
}

static void need_symbol(struct machine *machine, int symbol) {
    char message[32];
    if (!take_symbol(machine, symbol)) {
        snprintf(message, sizeof message, "expected %c", symbol);
        fail(machine, message);
    }
}

static void need_keyword(struct machine *machine, int keyword, const char *name) {
    char message[32];
    if (!take_keyword(machine, keyword)) {
        snprintf(message, sizeof message, "expected %s", name);
        fail(machine, message);
    }
}

static int at_statement_end(const struct machine *machine) {
    return peek(machine)->kind == TOKEN_END || at_symbol(machine, ':') ||
           at_keyword(machine, KEY_ELSE);
}

/* ---- variables ---- */

static int is_string_name(const char *name) {
    size_t length = strlen(name);
    return length > 0 && name[length - 1] == '$';
}

static struct variable *variable_named(struct machine *machine, const char *name) {
    for (int i = 0; i < machine->variable_count; i++)
        if (strcmp(machine->variables[i].name, name) == 0)
            return &machine->variables[i];
    if (machine->variable_count == MAX_VARIABLES)
        fail(machine, "too many variables");
    struct variable *variable = &machine->variables[machine->variable_count++];
    memset(variable, 0, sizeof *variable);
    strcpy(variable->name, name);
    variable->value.is_string = is_string_name(name);
    return variable;
}

static double *array_item(struct machine *machine, struct variable *variable, double index) {
    int position = (int)index;
    if (!variable->items)
        fail(machine, "array without DIM");
    if (position < 0 || position > variable->size)
        fail(machine, "index out of range");
    return &variable->items[position];
}

/* ---- expressions ---- */

static struct value expression(struct machine *machine);

static struct value of_number(double number) {
    struct value value = {0};
    value.number = number;
    return value;
}

static struct value of_text(const char *text) {
    struct value value = {.is_string = 1};
    snprintf(value.text, sizeof value.text, "%s", text);
    return value;
}

static double number_of(struct machine *machine, struct value value) {
    if (value.is_string)
        fail(machine, "a number is needed");
    return value.number;
}

static const char *text_of(struct machine *machine, const struct value *value) {
    if (!value->is_string)
        fail(machine, "a string is needed");
    return value->text;
}

static double number(struct machine *machine) {
    return number_of(machine, expression(machine));
}

static struct value substring(struct machine *machine, const char *name, struct value text,
                              double a, double b) {
    char piece[MAX_STRING];
    const char *whole = text_of(machine, &text);
    int length = (int)strlen(whole), begin = 0, count = (int)a;
    if (strcmp(name, "RIGHT$") == 0) {
        begin = length - count;
    } else if (strcmp(name, "MID$") == 0) {
        begin = (int)a - 1;
        count = (int)b;
    }
    if (begin < 0)
        begin = 0;
    if (begin > length)
        begin = length;
    if (count < 0)
        count = 0;
    if (count > length - begin)
        count = length - begin;
    memcpy(piece, whole + begin, (size_t)count);
    piece[count] = '\0';
    return of_text(piece);
}

static int is_function(const char *name) {
    static const char *const names[] = {"ABS", "INT", "SQR",   "SGN",    "LEN", "VAL",
                                        "ASC", "CHR$", "STR$", "LEFT$", "RIGHT$", "MID$"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

static struct value text_function(struct machine *machine, const char *name,
                                  struct value argument) {
    char text[MAX_STRING];
    if (strcmp(name, "CHR$") == 0) {
        text[0] = (char)number_of(machine, argument);
        text[1] = '\0';
        return of_text(text);
    }
    if (strcmp(name, "STR$") == 0) {
        snprintf(text, sizeof text, "%g", number_of(machine, argument));
        return of_text(text);
    }
    double a, b = 0;
    need_symbol(machine, ',');
    a = number(machine);
    if (strcmp(name, "MID$") == 0) {
        b = MAX_STRING;
        if (take_symbol(machine, ','))
            b = number(machine);
    }
    return substring(machine, name, argument, a, b);
}

static struct value function(struct machine *machine, const char *name) {
    struct value argument, result;
    need_symbol(machine, '(');
    argument = expression(machine);
    if (is_string_name(name)) {
        result = text_function(machine, name, argument);
        need_symbol(machine, ')');
        return result;
    }
    need_symbol(machine, ')');
    if (strcmp(name, "LEN") == 0)
        return of_number((double)strlen(text_of(machine, &argument)));
    if (strcmp(name, "VAL") == 0)
        return of_number(strtod(text_of(machine, &argument), NULL));
    if (strcmp(name, "ASC") == 0)
        return of_number((unsigned char)text_of(machine, &argument)[0]);
    double x = number_of(machine, argument);
    if (strcmp(name, "ABS") == 0)
        return of_number(x < 0 ? -x : x);
    if (strcmp(name, "INT") == 0)
        return of_number(floor(x));
    if (strcmp(name, "SGN") == 0)
        return of_number((x > 0) - (x < 0));
    if (x < 0)
        fail(machine, "square root of a negative number");
    return of_number(sqrt(x));
}

static struct value primary(struct machine *machine) {
    const struct token *token = peek(machine);
    machine->at.token++;
    switch (token->kind) {
    case TOKEN_NUMBER:
        return of_number(token->number);
    case TOKEN_STRING:
        return of_text(token->text);
    case TOKEN_NAME: {
        if (is_function(token->text))
            return function(machine, token->text);
        struct variable *variable = variable_named(machine, token->text);
        if (take_symbol(machine, '(')) {
            double index = number(machine);
            need_symbol(machine, ')');
            return of_number(*array_item(machine, variable, index));
        }
        return variable->value;
    }
    case TOKEN_SYMBOL:
        if (token->symbol == '(') {
            struct value value = expression(machine);
            need_symbol(machine, ')');
            return value;
        }
        if (token->symbol == '-')
            return of_number(-number_of(machine, primary(machine)));
        break;
    default:
        break;
    }
    machine->at.token--;
    fail(machine, "expected a value");
    return of_number(0);
}

static struct value power(struct machine *machine) {
    struct value value = primary(machine);
    while (take_symbol(machine, '^')) {
        double exponent = number_of(machine, primary(machine));
        value = of_number(pow(number_of(machine, value), exponent));
    }
    return value;
}

static struct value term(struct machine *machine) {
    struct value value = power(machine);
    for (;;) {
        if (take_symbol(machine, '*')) {
            double right = number_of(machine, power(machine));
            value = of_number(number_of(machine, value) * right);
        } else if (take_symbol(machine, '/')) {
            double right = number_of(machine, power(machine));
            if (right == 0)
                fail(machine, "division by zero");
            value = of_number(number_of(machine, value) / right);
        } else if (take_keyword(machine, KEY_MOD)) {
            double right = number_of(machine, power(machine));
            if (right == 0)
                fail(machine, "division by zero");
            value = of_number(fmod(number_of(machine, value), right));
        } else {
            return value;
        }
    }
}

static struct value sum(struct machine *machine) {
    struct value value = term(machine);
    for (;;) {
        if (take_symbol(machine, '+')) {
            struct value right = term(machine);
            if (value.is_string) {
                size_t length = strlen(value.text);
                snprintf(value.text + length, sizeof value.text - length, "%s",
                         text_of(machine, &right));
            } else {
                value = of_number(value.number + number_of(machine, right));
            }
        } else if (take_symbol(machine, '-')) {
            double right = number_of(machine, term(machine));
            value = of_number(number_of(machine, value) - right);
        } else {
            return value;
        }
    }
}

static int comparison_holds(int symbol, int order) {
    switch (symbol) {
    case '=':
        return order == 0;
    case '<':
        return order < 0;
    case '>':
        return order > 0;
    case SYM_LE:
        return order <= 0;
    case SYM_GE:
        return order >= 0;
    default:
        return order != 0;
    }
}

static struct value comparison(struct machine *machine) {
    struct value left = sum(machine);
    const struct token *token = peek(machine);
    if (token->kind != TOKEN_SYMBOL || !(token->symbol >= SYM_LE || strchr("=<>", token->symbol)))
        return left;
    machine->at.token++;
    struct value right = sum(machine);
    int order;
    if (left.is_string)
        order = strcmp(left.text, text_of(machine, &right));
    else
        order = (left.number > number_of(machine, right)) - (left.number < right.number);
    return of_number(comparison_holds(token->symbol, order));
}

static struct value negation(struct machine *machine) {
    if (take_keyword(machine, KEY_NOT))
        return of_number(number_of(machine, negation(machine)) == 0);
    return comparison(machine);
}

static struct value conjunction(struct machine *machine) {
    struct value value = negation(machine);
    while (take_keyword(machine, KEY_AND)) {
        double right = number_of(machine, negation(machine));
        value = of_number(number_of(machine, value) != 0 && right != 0);
    }
    return value;
}

static struct value expression(struct machine *machine) {
    struct value value = conjunction(machine);
    while (take_keyword(machine, KEY_OR)) {
        double right = number_of(machine, conjunction(machine));
        value = of_number(number_of(machine, value) != 0 || right != 0);
    }
    return value;
}

/* ---- output ---- */

static void emit(struct machine *machine, const char *text) {
    for (; *text; text++) {
        putchar(*text);
        machine->column = *text == '\n' ? 0 : machine->column + 1;
    }
}

static void emit_value(struct machine *machine, const struct value *value) {
    char text[32];
    if (value->is_string) {
        emit(machine, value->text);
    } else {
        snprintf(text, sizeof text, "%g", value->number);
        emit(machine, text);
    }
}

static void print_statement(struct machine *machine) {
    int newline = 1;
    while (!at_statement_end(machine)) {
        if (take_symbol(machine, ';')) {
            newline = 0;
        } else if (take_symbol(machine, ',')) {
            do
                emit(machine, " ");
            while (machine->column % 10 != 0);
            newline = 0;
        } else {
            struct value value = expression(machine);
            emit_value(machine, &value);
            newline = 1;
        }
    }
    if (newline)
        emit(machine, "\n");
}

/* ---- assignment and input ---- */

static void assign(struct machine *machine, struct variable *variable, struct value value) {
    if (variable->value.is_string != value.is_string)
        fail(machine, "wrong type");
    variable->value = value;
}

static const char *take_name(struct machine *machine) {
    const struct token *token = peek(machine);
    if (token->kind != TOKEN_NAME)
        fail(machine, "expected a name");
    machine->at.token++;
    return token->text;
}

/* Assigns to the variable or array element named next in the program. */
static void assign_next(struct machine *machine, struct value (*source)(struct machine *)) {
    struct variable *variable = variable_named(machine, take_name(machine));
    if (take_symbol(machine, '(')) {
        double index = number(machine);
        need_symbol(machine, ')');
        if (source == expression)
            need_symbol(machine, '=');
        double value = number_of(machine, source(machine));
        *array_item(machine, variable, index) = value;
        return;
    }
    if (source == expression)
        need_symbol(machine, '=');
    assign(machine, variable, source(machine));
}

static struct value input_number(struct machine *machine) {
    double value;
    if (scanf("%lf", &value) != 1)
        fail(machine, "no more input");
    return of_number(value);
}

static struct value input_text(struct machine *machine) {
    char text[MAX_STRING];
    if (scanf("%79s", text) != 1)
        fail(machine, "no more input");
    return of_text(text);
}

static void input_statement(struct machine *machine) {
    do {
        const struct token *token = peek(machine);
        int string = token->kind == TOKEN_NAME && is_string_name(token->text);
        assign_next(machine, string ? input_text : input_number);
    } while (take_symbol(machine, ','));
}

static void dim_statement(struct machine *machine) {
    do {
        struct variable *variable = variable_named(machine, take_name(machine));
        need_symbol(machine, '(');
        int size = (int)number(machine);
        need_symbol(machine, ')');
        if (size < 0 || size > MAX_ARRAY)
            fail(machine, "bad size");
        free(variable->items);
        variable->items = calloc((size_t)size + 1, sizeof *variable->items);
        if (!variable->items)
            fail(machine, "out of memory");
        variable->size = size;
    } while (take_symbol(machine, ','));
}

/* ---- DATA ---- */

/* Moves the data cursor to the next item, if there is one. */
static int find_data(struct machine *machine) {
    struct program *program = machine->program;
    while (machine->data.line < program->count) {
        struct line *line = program->lines[machine->data.line];
        struct token *first = &line->tokens[0];
        if (first->kind == TOKEN_KEYWORD && first->symbol == KEY_DATA) {
            if (machine->data.token == 0)
                machine->data.token = 1;
            if (line->tokens[machine->data.token].kind == TOKEN_SYMBOL &&
                line->tokens[machine->data.token].symbol == ',')
                machine->data.token++;
            if (line->tokens[machine->data.token].kind != TOKEN_END)
                return 1;
        }
        machine->data.line++;
        machine->data.token = 0;
    }
    return 0;
}

static struct value next_data(struct machine *machine) {
    if (!find_data(machine))
        fail(machine, "no more data");
    struct token *tokens = machine->program->lines[machine->data.line]->tokens;
    struct token *token = &tokens[machine->data.token++];
    double sign = 1;
    if (token->kind == TOKEN_SYMBOL && token->symbol == '-') {
        sign = -1;
        token = &tokens[machine->data.token++];
    }
    return token->kind == TOKEN_NUMBER ? of_number(sign * token->number) : of_text(token->text);
}

/* ---- control ---- */

static void jump_to_number(struct machine *machine, double number) {
    int index = line_index(machine->program, (int)number);
    if (index < 0)
        fail(machine, "no such line");
    machine->at.line = index;
    machine->at.token = 0;
}

static void skip_line(struct machine *machine) {
    machine->at.line++;
    machine->at.token = 0;
}

/* Skips to after the ELSE that belongs to this IF, or to the next line. */
static void skip_to_else(struct machine *machine) {
    int depth = 0;
    while (peek(machine)->kind != TOKEN_END) {
        if (take_keyword(machine, KEY_IF)) {
            depth++;
        } else if (take_keyword(machine, KEY_ELSE)) {
            if (depth-- == 0)
                return;
        } else {
            machine->at.token++;
        }
    }
}

static void if_statement(struct machine *machine) {
    double condition = number(machine);
    need_keyword(machine, KEY_THEN, "THEN");
    if (condition == 0)
        skip_to_else(machine);
    if (peek(machine)->kind == TOKEN_NUMBER)
        jump_to_number(machine, peek(machine)->number);
}

static void for_statement(struct machine *machine) {
    struct loop loop;
    const char *name = take_name(machine);
    struct variable *variable = variable_named(machine, name);
    need_symbol(machine, '=');
    assign(machine, variable, of_number(number(machine)));
    need_keyword(machine, KEY_TO, "TO");
    strcpy(loop.name, name);
    loop.limit = number(machine);
    loop.step = take_keyword(machine, KEY_STEP) ? number(machine) : 1;
    loop.body = machine->at;
    if (machine->loop_count == MAX_DEPTH)
        fail(machine, "too many loops");
    machine->loops[machine->loop_count++] = loop;
}

static void next_statement(struct machine *machine) {
    if (peek(machine)->kind == TOKEN_NAME) {
        const char *name = take_name(machine);
        while (machine->loop_count > 0 &&
               strcmp(machine->loops[machine->loop_count - 1].name, name) != 0)
            machine->loop_count--;
    }
    if (machine->loop_count == 0)
        fail(machine, "NEXT without FOR");
    struct loop *loop = &machine->loops[machine->loop_count - 1];
    struct variable *variable = variable_named(machine, loop->name);
    variable->value.number += loop->step;
    int again = loop->step >= 0 ? variable->value.number <= loop->limit
                                : variable->value.number >= loop->limit;
    if (again)
        machine->at = loop->body;
    else
        machine->loop_count--;
}

/* Moves to after the WEND that belongs to the WHILE just read. */
static void skip_to_wend(struct machine *machine) {
    int depth = 1;
    while (machine->at.line < machine->program->count) {
        while (peek(machine)->kind != TOKEN_END) {
            if (take_keyword(machine, KEY_WHILE))
                depth++;
            else if (take_keyword(machine, KEY_WEND)) {
                if (--depth == 0)
                    return;
            } else
                machine->at.token++;
        }
        skip_line(machine);
    }
    fail(machine, "WHILE without WEND");
}

/* WEND goes back to its WHILE, which decides again. */
static void wend_statement(struct machine *machine) {
    int depth = 1, line = machine->at.line, token = machine->at.token - 2;
    while (line >= 0) {
        struct line *text = machine->program->lines[line];
        for (; token >= 0; token--) {
            struct token *here = &text->tokens[token];
            if (here->kind != TOKEN_KEYWORD)
                continue;
            if (here->symbol == KEY_WEND)
                depth++;
            else if (here->symbol == KEY_WHILE && --depth == 0) {
                machine->at.line = line;
                machine->at.token = token;
                return;
            }
        }
        if (--line >= 0)
            token = machine->program->lines[line]->count - 1;
    }
    fail(machine, "WEND without WHILE");
}

static void gosub_statement(struct machine *machine) {
    double target = number(machine);
    if (machine->call_count == MAX_DEPTH)
        fail(machine, "too many GOSUBs");
    machine->calls[machine->call_count++] = machine->at;
    jump_to_number(machine, target);
}

static void return_statement(struct machine *machine) {
    if (machine->call_count == 0)
        fail(machine, "RETURN without GOSUB");
    machine->at = machine->calls[--machine->call_count];
}

static void keyword_statement(struct machine *machine, int keyword) {
    switch (keyword) {
    case KEY_PRINT:
        print_statement(machine);
        break;
    case KEY_LET:
        assign_next(machine, expression);
        break;
    case KEY_IF:
        if_statement(machine);
        break;
    case KEY_GOTO:
        jump_to_number(machine, number(machine));
        break;
    case KEY_GOSUB:
        gosub_statement(machine);
        break;
    case KEY_RETURN:
        return_statement(machine);
        break;
    case KEY_FOR:
        for_statement(machine);
        break;
    case KEY_NEXT:
        next_statement(machine);
        break;
    case KEY_INPUT:
        input_statement(machine);
        break;
    case KEY_DIM:
        dim_statement(machine);
        break;
    case KEY_READ:
        do
            assign_next(machine, next_data);
        while (take_symbol(machine, ','));
        break;
    case KEY_RESTORE:
        machine->data.line = machine->data.token = 0;
        break;
    case KEY_WHILE:
        if (number(machine) == 0)
            skip_to_wend(machine);
        break;
    case KEY_WEND:
        wend_statement(machine);
        break;
    case KEY_END:
        machine->stopped = 1;
        break;
    case KEY_DATA:
    case KEY_REM:
    case KEY_ELSE: /* reached after a THEN part: the rest of the line is not for us */
        skip_line(machine);
        break;
    default:
        fail(machine, "unexpected keyword");
    }
}

static void step(struct machine *machine) {
    const struct token *token = peek(machine);
    machine->steps++;
    if (token->kind == TOKEN_END) {
        skip_line(machine);
    } else if (take_symbol(machine, ':')) {
        return;
    } else if (token->kind == TOKEN_KEYWORD) {
        machine->at.token++;
        keyword_statement(machine, token->symbol);
    } else if (token->kind == TOKEN_NAME) {
        assign_next(machine, expression);
    } else {
        fail(machine, "expected a statement");
    }
}

void run_program(struct program *program) {
    static struct machine machine;
    machine.program = program;
    while (!machine.stopped && machine.at.line < program->count)
        step(&machine);
    for (int i = 0; i < machine.variable_count; i++)
        free(machine.variables[i].items);
}
