/* From text to a tree.
 *
 *     script: and-or ((; | newline) and-or)*
 *     and-or: pipe ((&& | ||) pipe)*
 *     pipe: [!] command (| command)*
 *     command: words and redirections | if … then … [elif …] [else …] fi
 *            | while … do … done | for NAME in words; do … done | NAME() { … } | { … } */
#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

enum token_kind { TOKEN_END, TOKEN_NEWLINE, TOKEN_WORD, TOKEN_OPERATOR };

struct parser {
    const char *cursor;
    enum token_kind kind;
    char text[256]; /* of the token */
    int line;
    jmp_buf on_error;
    char *error;
    size_t error_size;
};

static void fail(struct parser *parser, const char *message) {
    snprintf(parser->error, parser->error_size, "line %d: %s", parser->line, message);
    longjmp(parser->on_error, 1);
}

/* ---- tokens ---- */

/* The length of the operator at the cursor, 0 if there is none. */
static size_t operator_length(const char *text) {
    static const char *const operators[] = {"&&", "||", ">>", "|", ";", "<", ">", "(", ")"};
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (strncmp(text, operators[i], strlen(operators[i])) == 0)
            return strlen(operators[i]);
    return 0;
}

static void read_word(struct parser *parser) {
    const char *start = parser->cursor, *c = start;
    int brackets = 0;
    while (*c && (brackets > 0 || (!isspace((unsigned char)*c) && !operator_length(c)))) {
        if (*c == '\'' || *c == '"') {
            char quote = *c++;
            while (*c && *c != quote) {
                if (*c == '\\' && quote == '"' && c[1])
                    c++;
                c++;
            }
            if (!*c)
                fail(parser, "quote without end");
        } else if (*c == '\\' && c[1]) {
            c++;
        } else if (*c == '$' && c[1] == '(') {
            brackets++;
            c++;
        } else if (*c == '(' && brackets > 0) {
            brackets++;
        } else if (*c == ')' && brackets > 0) {
            brackets--;
        }
        c++;
    }
    size_t length = (size_t)(c - start);
    if (length >= sizeof parser->text)
        fail(parser, "word too long");
    memcpy(parser->text, start, length);
    parser->text[length] = '\0';
    parser->cursor = c;
    parser->kind = TOKEN_WORD;
}

static void advance(struct parser *parser) {
    if (parser->kind == TOKEN_NEWLINE)
        parser->line++;
    while (*parser->cursor == ' ' || *parser->cursor == '\t')
        parser->cursor++;
    if (*parser->cursor == '#')
        parser->cursor += strcspn(parser->cursor, "\n");
    size_t length = operator_length(parser->cursor);
    if (*parser->cursor == '\0') {
        parser->kind = TOKEN_END;
        parser->text[0] = '\0';
    } else if (*parser->cursor == '\n') {
        parser->kind = TOKEN_NEWLINE;
        strcpy(parser->text, "\n");
        parser->cursor++;
    } else if (length > 0) {
        parser->kind = TOKEN_OPERATOR;
        memcpy(parser->text, parser->cursor, length);
        parser->text[length] = '\0';
        parser->cursor += length;
    } else {
        read_word(parser);
    }
}

static int at(const struct parser *parser, enum token_kind kind, const char *text) {
    return parser->kind == kind && strcmp(parser->text, text) == 0;
}

static int take(struct parser *parser, enum token_kind kind, const char *text) {
    if (!at(parser, kind, text))
        return 0;
    advance(parser);
    return 1;
}

static void need_word(struct parser *parser, const char *word) {
    char message[64];
    if (!take(parser, TOKEN_WORD, word)) {
        snprintf(message, sizeof message, "expected %s", word);
        fail(parser, message);
    }
}

static void skip_newlines(struct parser *parser) {
    while (parser->kind == TOKEN_NEWLINE || at(parser, TOKEN_OPERATOR, ";"))
        advance(parser);
}

/* ---- the tree ---- */

static struct node *new_node(enum node_kind kind, struct node *left, struct node *right) {
    struct node *node = need(calloc(1, sizeof *node));
    node->kind = kind;
    node->parts[0] = left;
    node->parts[1] = right;
    return node;
}

void free_node(struct node *node) {
    if (!node)
        return;
    for (int i = 0; i < 3; i++)
        free_node(node->parts[i]);
    for (int i = 0; i < node->redirect_count; i++)
        free(node->redirects[i].target);
    list_free(&node->words);
    free(node->name);
    free(node);
}

static struct node *script(struct parser *parser);

static int ends_block(const struct parser *parser) {
    static const char *const words[] = {"then", "elif", "else", "fi", "do", "done", "}"};
    if (parser->kind == TOKEN_END)
        return 1;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (at(parser, TOKEN_WORD, words[i]))
            return 1;
    return 0;
}

static struct node *if_command(struct parser *parser) {
    struct node *node = new_node(NODE_IF, script(parser), NULL);
    need_word(parser, "then");
    node->parts[1] = script(parser);
    if (take(parser, TOKEN_WORD, "elif")) {
        node->parts[2] = if_command(parser);
        return node; /* the inner one took the fi */
    }
    if (take(parser, TOKEN_WORD, "else"))
        node->parts[2] = script(parser);
    need_word(parser, "fi");
    return node;
}

static struct node *loop_body(struct parser *parser) {
    skip_newlines(parser);
    need_word(parser, "do");
    struct node *body = script(parser);
    need_word(parser, "done");
    return body;
}

static struct node *for_command(struct parser *parser) {
    struct node *node = new_node(NODE_FOR, NULL, NULL);
    if (parser->kind != TOKEN_WORD)
        fail(parser, "expected a name");
    node->name = copy(parser->text);
    advance(parser);
    need_word(parser, "in");
    while (parser->kind == TOKEN_WORD) {
        list_add(&node->words, copy(parser->text));
        advance(parser);
    }
    node->parts[1] = loop_body(parser);
    return node;
}

static int take_redirect(struct parser *parser, struct node *node) {
    static const char *const texts[] = {"<", ">", ">>"};
    for (int i = 0; i < 3; i++) {
        if (!take(parser, TOKEN_OPERATOR, texts[i]))
            continue;
        if (parser->kind != TOKEN_WORD || node->redirect_count == 4)
            fail(parser, "bad redirection");
        struct redirect *redirect = &node->redirects[node->redirect_count++];
        redirect->kind = (enum redirection)i;
        redirect->target = copy(parser->text);
        advance(parser);
        return 1;
    }
    return 0;
}

static struct node *simple_command(struct parser *parser) {
    struct node *node = new_node(NODE_COMMAND, NULL, NULL);
    for (;;) {
        if (parser->kind == TOKEN_WORD) {
            list_add(&node->words, copy(parser->text));
            advance(parser);
            if (node->words.count == 1 && take(parser, TOKEN_OPERATOR, "(")) {
                if (!take(parser, TOKEN_OPERATOR, ")"))
                    fail(parser, "expected )");
                skip_newlines(parser);
                need_word(parser, "{");
                node->kind = NODE_FUNCTION;
                node->name = copy(node->words.items[0]);
                node->parts[1] = script(parser);
                need_word(parser, "}");
                return node;
            }
        } else if (!take_redirect(parser, node)) {
            break;
        }
    }
    if (node->words.count == 0 && node->redirect_count == 0)
        fail(parser, "expected a command");
    return node;
}

static struct node *any_command(struct parser *parser) {
    struct node *node;
    if (take(parser, TOKEN_WORD, "if"))
        node = if_command(parser);
    else if (take(parser, TOKEN_WORD, "while")) {
        struct node *condition = script(parser);
        node = new_node(NODE_WHILE, condition, loop_body(parser));
    } else if (take(parser, TOKEN_WORD, "for"))
        node = for_command(parser);
    else if (take(parser, TOKEN_WORD, "{")) {
        node = new_node(NODE_SEQUENCE, script(parser), NULL);
        need_word(parser, "}");
    } else
        return simple_command(parser);
    while (take_redirect(parser, node))
        ;
    return node;
}

static struct node *pipe_line(struct parser *parser) {
    int negated = take(parser, TOKEN_WORD, "!");
    struct node *node = any_command(parser);
    while (take(parser, TOKEN_OPERATOR, "|")) {
        while (parser->kind == TOKEN_NEWLINE)
            advance(parser);
        node = new_node(NODE_PIPE, node, any_command(parser));
    }
    return negated ? new_node(NODE_NOT, node, NULL) : node;
}

static struct node *and_or(struct parser *parser) {
    struct node *node = pipe_line(parser);
    for (;;) {
        if (take(parser, TOKEN_OPERATOR, "&&"))
            node = new_node(NODE_AND, node, pipe_line(parser));
        else if (take(parser, TOKEN_OPERATOR, "||"))
            node = new_node(NODE_OR, node, pipe_line(parser));
        else
            return node;
    }
}

static struct node *script(struct parser *parser) {
    struct node *node = NULL;
    skip_newlines(parser);
    while (!ends_block(parser)) {
        struct node *next = and_or(parser);
        node = node ? new_node(NODE_SEQUENCE, node, next) : next;
        if (!ends_block(parser) && parser->kind != TOKEN_NEWLINE &&
            !at(parser, TOKEN_OPERATOR, ";"))
            fail(parser, "unexpected text");
        skip_newlines(parser);
    }
    return node;
}

struct node *parse(const char *text, char *error, size_t error_size) {
    struct parser parser = {.cursor = text, .line = 1, .error = error, .error_size = error_size};
    error[0] = '\0';
    parser.kind = TOKEN_WORD;
    if (setjmp(parser.on_error))
        return NULL;
    advance(&parser);
    struct node *node = script(&parser);
    if (parser.kind != TOKEN_END)
        fail(&parser, "unexpected word");
    return node;
}
