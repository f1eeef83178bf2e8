/* Assembly in one pass, with a list of places to fix when all labels are known.
 *
 *     label:  op operands     ; comment
 *     .word 1, 2, label       .byte 1, 2      .text "abc"     .space 16
 *     .equ name value         .align */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "toycpu.h"

struct symbol {
    char name[MAX_NAME];
    int32_t value;
    int line;
    int used;
};

enum fixup_kind { FIXUP_IMMEDIATE, FIXUP_WORD };

struct fixup {
    char name[MAX_NAME];
    uint32_t address;
    int32_t addend;
    enum fixup_kind kind;
    int line;
};

struct assembler {
    struct image *image;
    struct symbol symbols[MAX_SYMBOLS];
    int symbol_count;
    struct fixup fixups[MAX_FIXUPS];
    int fixup_count;
    uint32_t here;
    int line;
    int errors;
    const char *cursor;
};

static void complain(struct assembler *assembler, const char *message, const char *detail) {
    printf("line %d: %s%s\n", assembler->line, message, detail);
    assembler->errors++;
}

/* ---- symbols ---- */

static struct symbol *find_symbol(struct assembler *assembler, const char *name) {
    for (int i = 0; i < assembler->symbol_count; i++)
        if (strcmp(assembler->symbols[i].name, name) == 0)
            return &assembler->symbols[i];
    return NULL;
}

static void define(struct assembler *assembler, const char *name, int32_t value) {
    struct symbol *symbol = find_symbol(assembler, name);
    if (symbol) {
        complain(assembler, "defined twice: ", name);
        return;
    }
    if (assembler->symbol_count == MAX_SYMBOLS) {
        complain(assembler, "too many symbols", "");
        return;
    }
    symbol = &assembler->symbols[assembler->symbol_count++];
    strcpy(symbol->name, name);
    symbol->value = value;
    symbol->line = assembler->line;
}

static void later(struct assembler *assembler, const char *name, int32_t addend,
                  enum fixup_kind kind) {
    if (assembler->fixup_count == MAX_FIXUPS) {
        complain(assembler, "too many references", "");
        return;
    }
    struct fixup *fixup = &assembler->fixups[assembler->fixup_count++];
    strcpy(fixup->name, name);
    fixup->address = assembler->here;
    fixup->addend = addend;
    fixup->kind = kind;
    fixup->line = assembler->line;
}

static void fix_up(struct assembler *assembler) {
    for (int i = 0; i < assembler->fixup_count; i++) {
        struct fixup *fixup = &assembler->fixups[i];
        struct symbol *symbol = find_symbol(assembler, fixup->name);
        assembler->line = fixup->line;
        if (!symbol) {
            complain(assembler, "unknown: ", fixup->name);
            continue;
        }
        symbol->used = 1;
        int32_t value = symbol->value + fixup->addend;
        uint8_t *bytes = assembler->image->bytes;
        if (fixup->kind == FIXUP_WORD) {
            store_word(bytes, fixup->address, (uint32_t)value);
            continue;
        }
        if (value < -32768 || value > 65535) {
            complain(assembler, "too far: ", fixup->name);
            continue;
        }
        uint32_t word = load_word(bytes, fixup->address) & 0xffff0000;
        store_word(bytes, fixup->address, word | ((uint32_t)value & 0xffff));
    }
}

/* ---- scanning ---- */

static void skip_space(struct assembler *assembler) {
    while (*assembler->cursor == ' ' || *assembler->cursor == '\t')
        assembler->cursor++;
}

static int at_end(struct assembler *assembler) {
    skip_space(assembler);
    return *assembler->cursor == '\0';
}

static int take(struct assembler *assembler, char c) {
    skip_space(assembler);
    if (*assembler->cursor != c)
        return 0;
    assembler->cursor++;
    return 1;
}

static int take_name(struct assembler *assembler, char *name) {
    int length = 0;
    skip_space(assembler);
    const char *c = assembler->cursor;
    if (!isalpha((unsigned char)*c) && *c != '_' && *c != '.')
        return 0;
    while (isalnum((unsigned char)*c) || *c == '_' || *c == '.') {
        if (length < MAX_NAME - 1)
            name[length++] = *c;
        c++;
    }
    name[length] = '\0';
    assembler->cursor = c;
    return 1;
}

static int take_number(struct assembler *assembler, int32_t *value) {
    skip_space(assembler);
    const char *c = assembler->cursor;
    if (*c == '\'' && c[1] && c[2] == '\'') {
        *value = (unsigned char)c[1];
        assembler->cursor += 3;
        return 1;
    }
    if (!isdigit((unsigned char)*c) && !(*c == '-' && isdigit((unsigned char)c[1])))
        return 0;
    char *end;
    *value = (int32_t)strtol(c, &end, 0);
    assembler->cursor = end;
    return 1;
}

static int take_register(struct assembler *assembler) {
    char name[MAX_NAME];
    const char *before = assembler->cursor;
    if (take_name(assembler, name)) {
        if (strcmp(name, "sp") == 0)
            return STACK_POINTER;
        if (name[0] == 'r' && isdigit((unsigned char)name[1]) && strlen(name) <= 3) {
            int number = atoi(name + 1);
            if (number < REGISTERS)
                return number;
        }
    }
    assembler->cursor = before;
    complain(assembler, "expected a register", "");
    return 0;
}

/* A number, or a name with an optional + number; names may be defined later. */
static int32_t take_value(struct assembler *assembler, enum fixup_kind kind) {
    char name[MAX_NAME];
    int32_t value = 0;
    if (take_number(assembler, &value))
        return value;
    if (!take_name(assembler, name)) {
        complain(assembler, "expected a value", "");
        return 0;
    }
    if (take(assembler, '+') && !take_number(assembler, &value))
        complain(assembler, "expected a number", "");
    later(assembler, name, value, kind);
    return 0;
}

/* ---- output ---- */

static int room(struct assembler *assembler, uint32_t size) {
    if (assembler->here + size <= MEMORY_SIZE)
        return 1;
    complain(assembler, "the program is too large", "");
    return 0;
}

static void emit_word(struct assembler *assembler, uint32_t value) {
    if (!room(assembler, 4))
        return;
    store_word(assembler->image->bytes, assembler->here, value);
    assembler->here += 4;
}

static void emit_byte(struct assembler *assembler, int value) {
    if (room(assembler, 1))
        assembler->image->bytes[assembler->here++] = (uint8_t)value;
}

static void align(struct assembler *assembler) {
    while (assembler->here % 4 != 0)
        emit_byte(assembler, 0);
}

/* ---- lines ---- */

static int find_operation(const char *name) {
    for (int i = 0; i < OP_COUNT; i++)
        if (strcmp(descriptions[i].name, name) == 0)
            return i;
    return -1;
}

static void instruction(struct assembler *assembler, enum operation operation) {
    int a = 0, b = 0;
    int32_t immediate = 0;
    align(assembler);
    switch (descriptions[operation].shape) {
    case SHAPE_NONE:
        break;
    case SHAPE_A:
        a = take_register(assembler);
        break;
    case SHAPE_AB:
        a = take_register(assembler);
        take(assembler, ',');
        b = take_register(assembler);
        break;
    case SHAPE_AI:
        a = take_register(assembler);
        take(assembler, ',');
        immediate = take_value(assembler, FIXUP_IMMEDIATE);
        break;
    case SHAPE_ABI:
        a = take_register(assembler);
        take(assembler, ',');
        if (!take(assembler, '['))
            complain(assembler, "expected [", "");
        b = take_register(assembler);
        if (take(assembler, '+') || *assembler->cursor == '-')
            immediate = take_value(assembler, FIXUP_IMMEDIATE);
        if (!take(assembler, ']'))
            complain(assembler, "expected ]", "");
        break;
    case SHAPE_I:
        immediate = take_value(assembler, FIXUP_IMMEDIATE);
        break;
    }
    emit_word(assembler, encode(operation, a, b, immediate));
}

static void text_directive(struct assembler *assembler) {
    if (!take(assembler, '"')) {
        complain(assembler, "expected a text", "");
        return;
    }
    while (*assembler->cursor && *assembler->cursor != '"') {
        char c = *assembler->cursor++;
        if (c == '\\' && *assembler->cursor) {
            c = *assembler->cursor++;
            if (c == 'n')
                c = '\n';
        }
        emit_byte(assembler, c);
    }
    if (!take(assembler, '"'))
        complain(assembler, "text without end", "");
    emit_byte(assembler, 0);
}

static void equ_directive(struct assembler *assembler) {
    char name[MAX_NAME];
    int32_t value;
    if (!take_name(assembler, name) || !take_number(assembler, &value))
        complain(assembler, "expected a name and a number", "");
    else
        define(assembler, name, value);
}

static void directive(struct assembler *assembler, const char *name) {
    if (strcmp(name, ".word") == 0) {
        align(assembler);
        do {
            uint32_t value = (uint32_t)take_value(assembler, FIXUP_WORD);
            emit_word(assembler, value);
        } while (take(assembler, ','));
    } else if (strcmp(name, ".byte") == 0) {
        do {
            int32_t value = 0;
            if (!take_number(assembler, &value))
                complain(assembler, "expected a number", "");
            emit_byte(assembler, value);
        } while (take(assembler, ','));
    } else if (strcmp(name, ".text") == 0) {
        text_directive(assembler);
    } else if (strcmp(name, ".space") == 0) {
        int32_t size = 0;
        if (!take_number(assembler, &size) || size < 0)
            complain(assembler, "expected a size", "");
        while (size-- > 0 && assembler->errors == 0)
            emit_byte(assembler, 0);
    } else if (strcmp(name, ".align") == 0) {
        align(assembler);
    } else if (strcmp(name, ".equ") == 0) {
        equ_directive(assembler);
    } else {
        complain(assembler, "no such directive: ", name);
    }
}

/* Everything after ; goes, but not within quotes. */
static void cut_comment(char *text) {
    int quoted = 0;
    for (; *text; text++) {
        if (*text == '"')
            quoted = !quoted;
        if (*text == '\n' || (*text == ';' && !quoted)) {
            *text = '\0';
            return;
        }
    }
}

static void assemble_line(struct assembler *assembler, char *text) {
    char name[MAX_NAME];
    cut_comment(text);
    assembler->cursor = text;
    while (take_name(assembler, name)) {
        if (take(assembler, ':')) {
            define(assembler, name, (int32_t)assembler->here);
            continue;
        }
        int operation = find_operation(name);
        if (name[0] == '.')
            directive(assembler, name);
        else if (operation >= 0)
            instruction(assembler, (enum operation)operation);
        else
            complain(assembler, "no such operation: ", name);
        break;
    }
    if (!at_end(assembler))
        complain(assembler, "unexpected: ", assembler->cursor);
}

static void list_symbols(struct assembler *assembler) {
    for (int i = 0; i < assembler->symbol_count; i++) {
        struct symbol *symbol = &assembler->symbols[i];
        printf("%-16s %5d line %d%s\n", symbol->name, symbol->value, symbol->line,
               symbol->used ? "" : " unused");
    }
}

int assemble(FILE *source, struct image *image, int listing) {
    static struct assembler assembler;
    char text[256];
    memset(&assembler, 0, sizeof assembler);
    assembler.image = image;
    while (fgets(text, sizeof text, source)) {
        assembler.line++;
        assemble_line(&assembler, text);
    }
    fix_up(&assembler);
    struct symbol *start = find_symbol(&assembler, "start");
    image->entry = start ? (uint32_t)start->value : 0;
    image->length = assembler.here;
    if (listing)
        list_symbols(&assembler);
    return assembler.errors;
}
