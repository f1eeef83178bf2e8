/* toycpu: assembles a program and runs it.
 *
 * usage: toycpu [-l] [-d] [-t] [-r] [-c CYCLES] PROGRAM < INPUT
 *
 *   -l  list the symbols       -d  print the program, disassembled, instead of running it
 *   -t  trace to stderr        -r  print the registers at the end
 *   -c  stop after so many cycles (default 1000000) */
#include <stdlib.h>
#include <unistd.h>

#include "toycpu.h"

static void print_registers(const struct machine *machine) {
    for (int i = 0; i < REGISTERS; i++)
        printf("r%-2d %11d%s", i, (int32_t)machine->registers[i], i % 4 == 3 ? "\n" : "   ");
    printf("counter %u, %llu cycles\n", machine->counter, (unsigned long long)machine->cycles);
}

int main(int argc, char **argv) {
    static struct image image;
    static struct machine machine = {.limit = 1000000};
    int letter, listing = 0, disassembling = 0, registers = 0;
    while ((letter = getopt(argc, argv, "ldtrc:")) != -1) {
        switch (letter) {
        case 'l':
            listing = 1;
            break;
        case 'd':
            disassembling = 1;
            break;
        case 't':
            machine.tracing = 1;
            break;
        case 'r':
            registers = 1;
            break;
        case 'c':
            machine.limit = strtoull(optarg, NULL, 10);
            break;
        default:
            return 2;
        }
    }
    FILE *source = optind < argc ? fopen(argv[optind], "r") : NULL;
    if (!source) {
        fprintf(stderr, "usage: toycpu [-l] [-d] [-t] [-r] [-c CYCLES] PROGRAM\n");
        return 2;
    }
    int errors = assemble(source, &image, listing);
    fclose(source);
    if (errors) {
        printf("%d errors\n", errors);
        return 1;
    }
    if (disassembling) {
        disassemble(&image, 0, image.length);
        return 0;
    }
    int halted = run(&machine, &image);
    if (!halted)
        printf("stopped at %u: %s\n", machine.counter, machine.error);
    if (registers)
        print_registers(&machine);
    return halted ? 0 : 3;
}
