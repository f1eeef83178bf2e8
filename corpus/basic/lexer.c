/* Reading a program: text into lines of tokens, in order of their numbers. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "basic.h"

static const char *const keywords[KEY_COUNT] = {
    "PRINT", "LET",  "IF",   "THEN",    "ELSE",  "GOTO", "GOSUB", "RETURN", "FOR",
    "TO",    "STEP", "NEXT", "INPUT",   "DIM",   "READ", "DATA",  "RESTORE", "WHILE",
    "WEND",  "END",  "REM",  "AND",     "OR",    "NOT",  "MOD",
};

static int find_keyword(const char *word) {
    for (int i = 0; i < KEY_COUNT; i++)
        if (strcmp(keywords[i], word) == 0)
            return i;
    return -1;
}

static const char *lex_string(const char *text, struct token *token, int number) {
    int length = 0;
    text++;
    while (*text && *text != '"') {
        if (length == MAX_STRING - 1)
            basic_error(number, "string too long");
        token->text[length++] = *text++;
    }
    if (*text != '"')
        basic_error(number, "string without end");
    token->text[length] = '\0';
    token->kind = TOKEN_STRING;
    return text + 1;
}

static const char *lex_word(const char *text, struct token *token, int number) {
    int length = 0;
    while (isalnum((unsigned char)*text) || *text == '$') {
        if (length == MAX_NAME - 1)
            basic_error(number, "name too long");
        token->text[length++] = (char)toupper((unsigned char)*text++);
    }
    token->text[length] = '\0';
    int keyword = find_keyword(token->text);
    token->kind = keyword >= 0 ? TOKEN_KEYWORD : TOKEN_NAME;
    token->symbol = keyword;
    return text;
}

static const char *lex_symbol(const char *text, struct token *token, int number) {
    token->kind = TOKEN_SYMBOL;
    if (!strchr("+-*/^()=<>,;:", *text))
        basic_error(number, "unexpected character");
    token->symbol = (unsigned char)*text;
    if (text[0] == '<' && text[1] == '=')
        token->symbol = SYM_LE;
    else if (text[0] == '>' && text[1] == '=')
        token->symbol = SYM_GE;
    else if (text[0] == '<' && text[1] == '>')
        token->symbol = SYM_NE;
    return text + (token->symbol >= SYM_LE ? 2 : 1);
}

static void lex_line(struct line *line, const char *text) {
    for (;;) {
        while (isspace((unsigned char)*text))
            text++;
        if (*text == '\0')
            break;
        if (line->count == MAX_TOKENS - 1)
            basic_error(line->number, "line too long");
        struct token *token = &line->tokens[line->count++];
        if (*text == '"') {
            text = lex_string(text, token, line->number);
        } else if (isdigit((unsigned char)*text) || *text == '.') {
            char *end;
            token->kind = TOKEN_NUMBER;
            token->number = strtod(text, &end);
            text = end;
        } else if (isalpha((unsigned char)*text)) {
            text = lex_word(text, token, line->number);
            if (token->kind == TOKEN_KEYWORD && token->symbol == KEY_REM)
                break;
        } else {
            text = lex_symbol(text, token, line->number);
        }
    }
    line->tokens[line->count].kind = TOKEN_END;
}

/* The index of the first line whose number is not below `number`. */
static int lower_bound(const struct program *program, int number) {
    int low = 0, high = program->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (program->lines[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_line(struct program *program, int index) {
    free(program->lines[index]);
    for (int i = index; i + 1 < program->count; i++)
        program->lines[i] = program->lines[i + 1];
    program->count--;
}

/* A line with a known number replaces the old one; without text it only removes it. */
static void store_line(struct program *program, int number, const char *text) {
    int index = lower_bound(program, number);
    if (index < program->count && program->lines[index]->number == number)
        remove_line(program, index);
    while (isspace((unsigned char)*text))
        text++;
    if (*text == '\0')
        return;
    if (program->count == MAX_LINES)
        basic_error(number, "program too long");
    for (int i = program->count; i > index; i--)
        program->lines[i] = program->lines[i - 1];
    struct line *line = calloc(1, sizeof *line);
    if (!line)
        basic_error(number, "out of memory");
    line->number = number;
    lex_line(line, text);
    program->lines[index] = line;
    program->count++;
}

int load_program(struct program *program, FILE *file) {
    char text[256];
    int read = 0;
    while (fgets(text, sizeof text, file)) {
        char *end;
        long number = strtol(text, &end, 10);
        if (end == text) {
            if (strspn(text, " \t\r\n") == strlen(text))
                continue;
            basic_error(read, "a line needs a number");
        }
        store_line(program, (int)number, end);
        read++;
    }
    return read;
}

int line_index(const struct program *program, int number) {
    int index = lower_bound(program, number);
    if (index < program->count && program->lines[index]->number == number)
        return index;
    return -1;
}
