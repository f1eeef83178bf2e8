/* A toy computer: 16 registers of 32 bits, 64 KiB of memory, words of 4 bytes.
 *
 * Instructions are one word: 8 bits operation, 4 bits each for registers a and b, 16 bits
 * immediate value. Register 15 is the stack pointer. */
#ifndef TOYCPU_H
#define TOYCPU_H

#include <stdint.h>
#include <stdio.h>

enum {
    MEMORY_SIZE = 65536,
    REGISTERS = 16,
    STACK_POINTER = 15,
    MAX_NAME = 24,
    MAX_SYMBOLS = 256,
    MAX_FIXUPS = 512,
    MAX_OPERANDS = 8,
};

enum operation {
    OP_HALT,
    OP_MOVE,    /* a = b */
    OP_SET,     /* a = immediate */
    OP_HIGH,    /* a = immediate << 16 | low half of a */
    OP_LOAD,    /* a = word at b + immediate */
    OP_STORE,   /* word at b + immediate = a */
    OP_LOADB,   /* a = byte at b + immediate */
    OP_STOREB,
    OP_ADD,     /* a += b */
    OP_ADDI,    /* a += immediate */
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_SHL,
    OP_SHR,
    OP_CMP,     /* sets the flags from a - b */
    OP_CMPI,
    OP_JUMP,
    OP_JEQ,
    OP_JNE,
    OP_JLT,
    OP_JGE,
    OP_CALL,
    OP_RET,
    OP_PUSH,
    OP_POP,
    OP_OUT,     /* print a as a number */
    OP_OUTC,    /* print a as a character */
    OP_IN,      /* a = next number of the input, flags equal at the end of it */
    OP_COUNT,
};

/* How the operands of an operation are written. */
enum shape {
    SHAPE_NONE,
    SHAPE_A,
    SHAPE_AB,
    SHAPE_AI,   /* register, value */
    SHAPE_ABI,  /* register, [register + value] */
    SHAPE_I,    /* value, mostly a label */
};

struct description {
    const char *name;
    enum shape shape;
};

extern const struct description descriptions[OP_COUNT];

struct image {
    uint8_t bytes[MEMORY_SIZE];
    uint32_t length;
    uint32_t entry;
};

uint32_t encode(enum operation operation, int a, int b, int immediate);
uint32_t load_word(const uint8_t *memory, uint32_t address);
void store_word(uint8_t *memory, uint32_t address, uint32_t value);

/* Returns the number of errors, which were printed. */
int assemble(FILE *source, struct image *image, int listing);
void disassemble(const struct image *image, uint32_t from, uint32_t to);

struct machine {
    uint8_t memory[MEMORY_SIZE];
    uint32_t registers[REGISTERS];
    uint32_t counter;
    int32_t flags; /* the sign of the last comparison */
    uint64_t cycles;
    uint64_t limit;
    int tracing;
    const char *error;
};

/* Runs until a halt or an error; returns 1 if it halted. */
int run(struct machine *machine, const struct image *image);

#endif
