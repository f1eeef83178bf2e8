/* B+ trees: all rows are in leaves, which are chained; inner pages guide.
 *
 * In an inner page, children[i] holds keys below keys[i], and children[count] the rest. Deleting
 * never joins pages; a leaf may become empty. */
#include <string.h>

#include "minidb.h"

void tree_start(struct tree *tree) {
    tree->root = new_page(1);
    tree->count = 0;
}

/* ---- finding ---- */

static int child_index(const struct page *page, int64_t key) {
    int low = 0, high = page->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (key < page->inner.keys[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static page_number find_leaf(const struct tree *tree, int64_t key) {
    page_number number = tree->root;
    while (!page_at(number)->is_leaf) {
        struct page *page = page_at(number);
        number = page->inner.children[child_index(page, key)];
    }
    return number;
}

/* The first row of a leaf that is not below the key. */
static int row_index(const struct page *leaf, int64_t key) {
    int index = 0;
    while (index < leaf->count && leaf->leaf.rows[index].key < key)
        index++;
    return index;
}

struct row *tree_find(const struct tree *tree, int64_t key) {
    struct page *leaf = page_at(find_leaf(tree, key));
    int index = row_index(leaf, key);
    if (index < leaf->count && leaf->leaf.rows[index].key == key)
        return &leaf->leaf.rows[index];
    return NULL;
}

struct cursor tree_seek(const struct tree *tree, int64_t key) {
    struct cursor cursor = {find_leaf(tree, key), 0};
    cursor.index = row_index(page_at(cursor.page), key);
    return cursor;
}

struct row *cursor_row(struct cursor *cursor) {
    while (cursor->page) {
        struct page *leaf = page_at(cursor->page);
        if (cursor->index < leaf->count)
            return &leaf->leaf.rows[cursor->index];
        cursor->page = leaf->leaf.next;
        cursor->index = 0;
    }
    return NULL;
}

void cursor_next(struct cursor *cursor) {
    cursor->index++;
}

/* ---- inserting ---- */

static void insert_into_parent(struct tree *tree, page_number left, int64_t key,
                               page_number right);

static void new_root(struct tree *tree, page_number left, int64_t key, page_number right) {
    page_number number = new_page(0);
    struct page *root = page_at(number);
    root->count = 1;
    root->inner.keys[0] = key;
    root->inner.children[0] = left;
    root->inner.children[1] = right;
    page_at(left)->parent = number;
    page_at(right)->parent = number;
    tree->root = number;
}

static void put_into_inner(struct page *page, int index, int64_t key, page_number right) {
    for (int i = page->count; i > index; i--) {
        page->inner.keys[i] = page->inner.keys[i - 1];
        page->inner.children[i + 1] = page->inner.children[i];
    }
    page->inner.keys[index] = key;
    page->inner.children[index + 1] = right;
    page->count++;
}

/* Splits a full inner page while a key and the child right of it are put in. */
static void split_inner(struct tree *tree, page_number number, int index, int64_t key,
                        page_number right) {
    int64_t keys[INNER_KEYS + 1];
    page_number children[INNER_KEYS + 2];
    struct page *page = page_at(number);
    memcpy(keys, page->inner.keys, sizeof page->inner.keys);
    memcpy(children, page->inner.children, sizeof page->inner.children);
    memmove(keys + index + 1, keys + index, (size_t)(INNER_KEYS - index) * sizeof keys[0]);
    memmove(children + index + 2, children + index + 1,
            (size_t)(INNER_KEYS - index) * sizeof children[0]);
    keys[index] = key;
    children[index + 1] = right;

    page_number sibling_number = new_page(0);
    struct page *sibling = page_at(sibling_number);
    int half = (INNER_KEYS + 1) / 2;
    page->count = half;
    memcpy(page->inner.keys, keys, (size_t)half * sizeof keys[0]);
    memcpy(page->inner.children, children, (size_t)(half + 1) * sizeof children[0]);
    sibling->count = INNER_KEYS - half;
    memcpy(sibling->inner.keys, keys + half + 1, (size_t)sibling->count * sizeof keys[0]);
    memcpy(sibling->inner.children, children + half + 1,
           (size_t)(sibling->count + 1) * sizeof children[0]);
    for (int i = 0; i < sibling->count; i++)
        page_at(sibling->inner.children[i])->parent = sibling_number;
    for (int i = 0; i <= page->count; i++)
        page_at(page->inner.children[i])->parent = number;
    insert_into_parent(tree, number, keys[half], sibling_number);
}

/* The page `right` was split off `left`; tell the parent. */
static void insert_into_parent(struct tree *tree, page_number left, int64_t key,
                               page_number right) {
    page_number number = page_at(left)->parent;
    if (number == 0) {
        new_root(tree, left, key, right);
        return;
    }
    struct page *parent = page_at(number);
    int index = child_index(parent, key);
    if (parent->count < INNER_KEYS) {
        put_into_inner(parent, index, key, right);
        page_at(right)->parent = number;
    } else {
        page_at(right)->parent = number;
        split_inner(tree, number, index, key, right);
    }
}

static void split_leaf(struct tree *tree, page_number number, int index, const struct row *row) {
    struct row rows[LEAF_KEYS + 1];
    struct page *leaf = page_at(number);
    memcpy(rows, leaf->leaf.rows, sizeof leaf->leaf.rows);
    memmove(rows + index + 1, rows + index, (size_t)(LEAF_KEYS - index) * sizeof rows[0]);
    rows[index] = *row;

    page_number sibling_number = new_page(1);
    struct page *sibling = page_at(sibling_number);
    int half = (LEAF_KEYS + 1) / 2;
    leaf->count = half;
    memcpy(leaf->leaf.rows, rows, (size_t)half * sizeof rows[0]);
    sibling->count = LEAF_KEYS + 1 - half;
    memcpy(sibling->leaf.rows, rows + half, (size_t)sibling->count * sizeof rows[0]);
    sibling->leaf.next = leaf->leaf.next;
    leaf->leaf.next = sibling_number;
    insert_into_parent(tree, number, sibling->leaf.rows[0].key, sibling_number);
}

/* Returns 0 if the key is there already. */
int tree_insert(struct tree *tree, const struct row *row) {
    page_number number = find_leaf(tree, row->key);
    struct page *leaf = page_at(number);
    int index = row_index(leaf, row->key);
    if (index < leaf->count && leaf->leaf.rows[index].key == row->key)
        return 0;
    tree->count++;
    if (leaf->count == LEAF_KEYS) {
        split_leaf(tree, number, index, row);
        return 1;
    }
    memmove(leaf->leaf.rows + index + 1, leaf->leaf.rows + index,
            (size_t)(leaf->count - index) * sizeof leaf->leaf.rows[0]);
    leaf->leaf.rows[index] = *row;
    leaf->count++;
    return 1;
}

int tree_delete(struct tree *tree, int64_t key) {
    struct page *leaf = page_at(find_leaf(tree, key));
    int index = row_index(leaf, key);
    if (index == leaf->count || leaf->leaf.rows[index].key != key)
        return 0;
    memmove(leaf->leaf.rows + index, leaf->leaf.rows + index + 1,
            (size_t)(leaf->count - index - 1) * sizeof leaf->leaf.rows[0]);
    leaf->count--;
    tree->count--;
    return 1;
}

/* ---- looking at a tree ---- */

int tree_depth(const struct tree *tree) {
    int depth = 1;
    for (page_number number = tree->root; !page_at(number)->is_leaf; depth++)
        number = page_at(number)->inner.children[0];
    return depth;
}

/* Counts the rows that can be reached through the inner pages with the right keys. */
static int64_t check_page(page_number number, int64_t low, int64_t high, int *problems) {
    struct page *page = page_at(number);
    int64_t count = 0;
    if (page->is_leaf) {
        for (int i = 0; i < page->count; i++)
            if (page->leaf.rows[i].key < low || page->leaf.rows[i].key >= high)
                (*problems)++;
        return page->count;
    }
    for (int i = 0; i <= page->count; i++) {
        int64_t from = i > 0 ? page->inner.keys[i - 1] : low;
        int64_t to = i < page->count ? page->inner.keys[i] : high;
        count += check_page(page->inner.children[i], from, to, problems);
    }
    return count;
}

int tree_check(const struct tree *tree) {
    int problems = 0;
    if (check_page(tree->root, INT64_MIN, INT64_MAX, &problems) != tree->count)
        problems++;
    return problems;
}

static void print_page(page_number number, int depth) {
    struct page *page = page_at(number);
    printf("%*s", 2 * depth, "");
    if (page->is_leaf) {
        printf("[");
        for (int i = 0; i < page->count; i++)
            printf("%s%lld", i ? " " : "", (long long)page->leaf.rows[i].key);
        printf("]\n");
        return;
    }
    for (int i = 0; i < page->count; i++)
        printf("%s%lld", i ? " " : "", (long long)page->inner.keys[i]);
    printf("\n");
    for (int i = 0; i <= page->count; i++)
        print_page(page->inner.children[i], depth + 1);
}

void tree_print(const struct tree *tree) {
    print_page(tree->root, 0);
}
