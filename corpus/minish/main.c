/* minish: runs a script.
 *
 * usage: minish SCRIPT [ARGUMENT...] < INPUT */
#include <stdio.h>
#include <stdlib.h>

#include "shell.h"

static void read_all(FILE *file, struct text *text) {
    char chunk[512];
    size_t got;
    text_puts(text, "");
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
        text_add(text, chunk, got);
}

int main(int argc, char **argv) {
    struct text script = {0}, input = {0}, output = {0};
    struct list words = {0};
    char error[128];
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!file) {
        fprintf(stderr, "usage: minish SCRIPT [ARGUMENT...]\n");
        return 2;
    }
    read_all(file, &script);
    fclose(file);
    read_all(stdin, &input);
    for (int i = 2; i < argc; i++)
        list_add(&words, copy(argv[i]));
    arguments = &words;
    struct node *tree = parse(script.bytes, error, sizeof error);
    int status = 2;
    if (error[0])
        printf("minish: %s\n", error);
    else
        status = run(tree, &input, &output);
    if (output.bytes)
        fwrite(output.bytes, 1, output.length, stdout);
    forget_functions();
    free_node(tree);
    list_free(&words);
    text_free(&script);
    text_free(&input);
    text_free(&output);
    return status;
}
