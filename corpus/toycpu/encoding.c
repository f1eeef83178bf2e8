/* Instructions as words, words as bytes. */
#include "toycpu.h"

const struct description descriptions[OP_COUNT] = {
    [OP_HALT] = {"halt", SHAPE_NONE},  [OP_MOVE] = {"move", SHAPE_AB},
    [OP_SET] = {"set", SHAPE_AI},      [OP_HIGH] = {"high", SHAPE_AI},
    [OP_LOAD] = {"load", SHAPE_ABI},   [OP_STORE] = {"store", SHAPE_ABI},
    [OP_LOADB] = {"loadb", SHAPE_ABI}, [OP_STOREB] = {"storeb", SHAPE_ABI},
    [OP_ADD] = {"add", SHAPE_AB},      [OP_ADDI] = {"addi", SHAPE_AI},
    [OP_SUB] = {"sub", SHAPE_AB},      [OP_MUL] = {"mul", SHAPE_AB},
    [OP_DIV] = {"div", SHAPE_AB},      [OP_MOD] = {"mod", SHAPE_AB},
    [OP_AND] = {"and", SHAPE_AB},      [OP_OR] = {"or", SHAPE_AB},
    [OP_XOR] = {"xor", SHAPE_AB},      [OP_SHL] = {"shl", SHAPE_AB},
    [OP_SHR] = {"shr", SHAPE_AB},      [OP_CMP] = {"cmp", SHAPE_AB},
    [OP_CMPI] = {"cmpi", SHAPE_AI},    [OP_JUMP] = {"jump", SHAPE_I},
    [OP_JEQ] = {"jeq", SHAPE_I},       [OP_JNE] = {"jne", SHAPE_I},
    [OP_JLT] = {"jlt", SHAPE_I},       [OP_JGE] = {"jge", SHAPE_I},
    [OP_CALL] = {"call", SHAPE_I},     [OP_RET] = {"ret", SHAPE_NONE},
    [OP_PUSH] = {"push", SHAPE_A},     [OP_POP] = {"pop", SHAPE_A},
    [OP_OUT] = {"out", SHAPE_A},       [OP_OUTC] = {"outc", SHAPE_A},
    [OP_IN] = {"in", SHAPE_A},
};

uint32_t encode(enum operation operation, int a, int b, int immediate) {
    return (uint32_t)operation << 24 | (uint32_t)(a & 15) << 20 | (uint32_t)(b & 15) << 16 |
           ((uint32_t)immediate & 0xffff);
}

uint32_t load_word(const uint8_t *memory, uint32_t address) {
    return (uint32_t)memory[address] | (uint32_t)memory[address + 1] << 8 |
           (uint32_t)memory[address + 2] << 16 | (uint32_t)memory[address + 3] << 24;
}

void store_word(uint8_t *memory, uint32_t address, uint32_t value) {
    for (int i = 0; i < 4; i++)
        memory[address + (uint32_t)i] = (uint8_t)(value >> 8 * i);
}

static void print_instruction(uint32_t word) {
    unsigned operation = word >> 24, a = word >> 20 & 15, b = word >> 16 & 15;
    int immediate = (int16_t)(word & 0xffff);
    if (operation >= OP_COUNT) {
        printf(".word 0x%08x", word);
        return;
    }
    printf("%s", descriptions[operation].name);
    switch (descriptions[operation].shape) {
    case SHAPE_NONE:
        break;
    case SHAPE_A:
        printf(" r%u", a);
        break;
    case SHAPE_AB:
        printf(" r%u, r%u", a, b);
        break;
    case SHAPE_AI:
        printf(" r%u, %d", a, immediate);
        break;
    case SHAPE_ABI:
        printf(" r%u, [r%u + %d]", a, b, immediate);
        break;
    case SHAPE_I:
        printf(" %d", immediate & 0xffff);
        break;
    }
}

void disassemble(const struct image *image, uint32_t from, uint32_t to) {
    for (uint32_t address = from; address + 4 <= to; address += 4) {
        printf("%04x  ", address);
        print_instruction(load_word(image->bytes, address));
        printf("\n");
    }
}
