/* Pages, in memory. */
#include <stdlib.h>
#include <string.h>

#include "minidb.h"

static struct page pages[MAX_PAGES];
static page_number free_list[MAX_PAGES];
static int free_count;
static page_number next_unused = 1;

page_number new_page(int is_leaf) {
    page_number number;
    if (free_count > 0) {
        number = free_list[--free_count];
    } else if (next_unused < MAX_PAGES) {
        number = next_unused++;
    } else {
        printf("the database is full\n");
        exit(3);
    }
    memset(&pages[number], 0, sizeof pages[number]);
    pages[number].is_leaf = is_leaf;
    return number;
}

struct page *page_at(page_number number) {
    if (number <= 0 || number >= next_unused) {
        printf("no page %d\n", number);
        exit(3);
    }
    return &pages[number];
}

void free_page(page_number number) {
    free_list[free_count++] = number;
}

int pages_used(void) {
    return next_unused - 1 - free_count;
}
