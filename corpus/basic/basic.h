/* Shared by the parts of the interpreter. */
#ifndef BASIC_H
#define BASIC_H

#include <stdio.h>

enum {
    MAX_LINES = 512,
    MAX_TOKENS = 64,
    MAX_NAME = 12,
    MAX_STRING = 80,
    MAX_VARIABLES = 64,
    MAX_ARRAY = 256,
    MAX_DEPTH = 32,
};

enum token_kind {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_NAME,
    TOKEN_SYMBOL,  /* one of the characters, or a two-character comparison */
    TOKEN_KEYWORD,
};

enum keyword {
    KEY_PRINT,
    KEY_LET,
    KEY_IF,
    KEY_THEN,
    KEY_ELSE,
    KEY_GOTO,
    KEY_GOSUB,
    KEY_RETURN,
    KEY_FOR,
    KEY_TO,
    KEY_STEP,
    KEY_NEXT,
    KEY_INPUT,
    KEY_DIM,
    KEY_READ,
    KEY_DATA,
    KEY_RESTORE,
    KEY_WHILE,
    KEY_WEND,
    KEY_END,
    KEY_REM,
    KEY_AND,
    KEY_OR,
    KEY_NOT,
    KEY_MOD,
    KEY_COUNT,
};

enum symbol { SYM_LE = 256, SYM_GE, SYM_NE };

struct token {
    enum token_kind kind;
    int symbol; /* SYMBOL: character or enum symbol; KEYWORD: enum keyword */
    double number;
    char text[MAX_STRING];
};

struct line {
    int number;
    struct token tokens[MAX_TOKENS];
    int count;
};

struct program {
    struct line *lines[MAX_LINES];
    int count;
};

/* Ends the program with a message and the number of the line. */
void basic_error(int line, const char *message) __attribute__((noreturn));

int load_program(struct program *program, FILE *file);
int line_index(const struct program *program, int number);
void run_program(struct program *program);

#endif
