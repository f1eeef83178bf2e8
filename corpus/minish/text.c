/* Growing texts and lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

void *need(void *memory) {
    if (!memory) {
        fprintf(stderr, "minish: out of memory\n");
        exit(3);
    }
    return memory;
}

char *copy(const char *text) {
    return strcpy(need(malloc(strlen(text) + 1)), text);
}

void text_add(struct text *text, const char *bytes, size_t length) {
    if (text->length + length + 1 > text->capacity) {
        text->capacity = (text->length + length + 1) * 2;
        text->bytes = need(realloc(text->bytes, text->capacity));
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_puts(struct text *text, const char *string) {
    text_add(text, string, strlen(string));
}

void text_putc(struct text *text, char c) {
    text_add(text, &c, 1);
}

void text_free(struct text *text) {
    free(text->bytes);
    memset(text, 0, sizeof *text);
}

void list_add(struct list *list, char *item) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 8;
        list->items = need(realloc(list->items, (size_t)list->capacity * sizeof *list->items));
    }
    list->items[list->count++] = item;
}

void list_free(struct list *list) {
    for (int i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    memset(list, 0, sizeof *list);
}

/* Stable. */
void list_sort(struct list *list, int (*compare)(const char *, const char *)) {
    for (int i = 1; i < list->count; i++) {
        char *moving = list->items[i];
        int j = i;
        for (; j > 0 && compare(list->items[j - 1], moving) > 0; j--)
            list->items[j] = list->items[j - 1];
        list->items[j] = moving;
    }
}
