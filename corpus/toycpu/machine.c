/* Running an image. */
#include <string.h>

#include "toycpu.h"

static int valid(struct machine *machine, uint32_t address, uint32_t size) {
    if (address <= MEMORY_SIZE - size)
        return 1;
    machine->error = "address outside memory";
    return 0;
}

static void push(struct machine *machine, uint32_t value) {
    machine->registers[STACK_POINTER] -= 4;
    if (valid(machine, machine->registers[STACK_POINTER], 4))
        store_word(machine->memory, machine->registers[STACK_POINTER], value);
}

static uint32_t pop(struct machine *machine) {
    uint32_t address = machine->registers[STACK_POINTER];
    if (!valid(machine, address, 4))
        return 0;
    machine->registers[STACK_POINTER] += 4;
    return load_word(machine->memory, address);
}

static void compare(struct machine *machine, int32_t a, int32_t b) {
    machine->flags = (a > b) - (a < b);
}

static uint32_t divide(struct machine *machine, int32_t a, int32_t b, int remainder) {
    if (b == 0) {
        machine->error = "division by zero";
        return 0;
    }
    if (b == -1)
        return remainder ? 0 : 0u - (uint32_t)a;
    return (uint32_t)(remainder ? a % b : a / b);
}

static void input(struct machine *machine, uint32_t *target) {
    int value = 0;
    machine->flags = scanf("%d", &value) == 1 ? 1 : 0;
    *target = (uint32_t)value;
}

static void memory_access(struct machine *machine, enum operation operation, uint32_t *target,
                          uint32_t address) {
    int wide = operation == OP_LOAD || operation == OP_STORE;
    if (!valid(machine, address, wide ? 4 : 1))
        return;
    switch (operation) {
    case OP_LOAD:
        *target = load_word(machine->memory, address);
        break;
    case OP_STORE:
        store_word(machine->memory, address, *target);
        break;
    case OP_LOADB:
        *target = machine->memory[address];
        break;
    default:
        machine->memory[address] = (uint8_t)*target;
    }
}

static void arithmetic(struct machine *machine, enum operation operation, uint32_t *a,
                       uint32_t b) {
    switch (operation) {
    case OP_ADD:
        *a += b;
        break;
    case OP_SUB:
        *a -= b;
        break;
    case OP_MUL:
        *a *= b;
        break;
    case OP_DIV:
    case OP_MOD:
        *a = divide(machine, (int32_t)*a, (int32_t)b, operation == OP_MOD);
        break;
    case OP_AND:
        *a &= b;
        break;
    case OP_OR:
        *a |= b;
        break;
    case OP_XOR:
        *a ^= b;
        break;
    case OP_SHL:
        *a <<= b & 31;
        break;
    default:
        *a >>= b & 31;
    }
}

static int jumps(const struct machine *machine, enum operation operation) {
    switch (operation) {
    case OP_JEQ:
        return machine->flags == 0;
    case OP_JNE:
        return machine->flags != 0;
    case OP_JLT:
        return machine->flags < 0;
    case OP_JGE:
        return machine->flags >= 0;
    default:
        return 1;
    }
}

/* Executes one instruction; returns 0 at a halt. */
static int step(struct machine *machine) {
    if (!valid(machine, machine->counter, 4))
        return 0;
    uint32_t word = load_word(machine->memory, machine->counter);
    unsigned code = word >> 24;
    uint32_t *a = &machine->registers[word >> 20 & 15];
    uint32_t b = machine->registers[word >> 16 & 15];
    int32_t immediate = (int16_t)(word & 0xffff);
    if (code >= OP_COUNT) {
        machine->error = "no such instruction";
        return 0;
    }
    enum operation operation = (enum operation)code;
    if (machine->tracing)
        fprintf(stderr, "%04x %s\n", machine->counter, descriptions[operation].name);
    machine->counter += 4;
    switch (operation) {
    case OP_HALT:
        return 0;
    case OP_MOVE:
        *a = b;
        break;
    case OP_SET:
        *a = (uint32_t)immediate;
        break;
    case OP_HIGH:
        *a = (*a & 0xffff) | (uint32_t)immediate << 16;
        break;
    case OP_LOAD:
    case OP_STORE:
    case OP_LOADB:
    case OP_STOREB:
        memory_access(machine, operation, a, b + (uint32_t)immediate);
        break;
    case OP_ADDI:
        *a += (uint32_t)immediate;
        break;
    case OP_CMP:
        compare(machine, (int32_t)*a, (int32_t)b);
        break;
    case OP_CMPI:
        compare(machine, (int32_t)*a, immediate);
        break;
    case OP_JUMP:
    case OP_JEQ:
    case OP_JNE:
    case OP_JLT:
    case OP_JGE:
        if (jumps(machine, operation))
            machine->counter = (uint32_t)immediate & 0xffff;
        break;
    case OP_CALL:
        push(machine, machine->counter);
        machine->counter = (uint32_t)immediate & 0xffff;
        break;
    case OP_RET:
        machine->counter = pop(machine);
        break;
    case OP_PUSH:
        push(machine, *a);
        break;
    case OP_POP:
        *a = pop(machine);
        break;
    case OP_OUT:
        printf("%d\n", (int32_t)*a);
        break;
    case OP_OUTC:
        putchar((int)(*a & 0xff));
        break;
    case OP_IN:
        input(machine, a);
        break;
    default:
        arithmetic(machine, operation, a, b);
    }
    return machine->error == NULL;
}

int run(struct machine *machine, const struct image *image) {
    memcpy(machine->memory, image->bytes, sizeof machine->memory);
    machine->counter = image->entry;
    machine->registers[STACK_POINTER] = MEMORY_SIZE;
    while (step(machine)) {
        machine->cycles++;
        if (machine->cycles >= machine->limit) {
            machine->error = "too many cycles";
            break;
        }
    }
    return machine->error == NULL;
}
