/* Adds up a shopping list: one item a line, its name, price in cents and count.
   From 10.00 on there is a tenth off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

struct item {
    char name[16];
    int price;
    int count;
};

struct receipt {
    struct item items[MOST];
    int used;
    int voucher;
};

static int read_items(FILE *file, struct receipt *r) {
    struct item item;
    while (r->used < MOST &&
           fscanf(file, "%15s %d %d", item.name, &item.price, &item.count) == 3) {
        if (strcmp(item.name, "voucher") == 0)
            r->voucher = item.price;
        else
            r->items[r->used++] = item;
    }
    return r->used;
}

static int discount(int sum) {
    if (sum > 1000)
        return sum / 10;
    return 0;
}

static int total(const struct receipt *r) {
    int sum = 0;
    for (int i = 0; i < r->used; i++)
        sum += r->items[i].price * r->items[i].count;
    sum -= discount(sum);
    return sum - r->voucher;
}

int main(void) {
    struct receipt *r = calloc(1, sizeof *r);
    int n = read_items(stdin, r);
    printf("%d items\n", n);
    printf("total %d.%02d\n", total(r) / 100, total(r) % 100);
    free(r);
    return 0;
}
