/* Lists paths as a tree of folders, shortened by what they have in common.
 *
 *   lister [-s] [-t] < paths
 *
 * Each folder gets a heading; under it stand its entries without the folder's
 * name. -s sorts the entries, -t adds a total. A line is "SIZE PATH".
 *
 * The fault: the length of the folder's name is kept from folder to folder, and
 * only found anew if the next name is longer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ENTRIES = 128, MOST_PATH = 128 };

struct entry {
    char path[MOST_PATH];
    long size;
    int listed;
};

static struct entry entries[MOST_ENTRIES];
static int entry_count;
static int sorted;
static int totals;
static size_t prefix_length;
static char prefix[MOST_PATH];

static void usage(void)
{
    fprintf(stderr, "usage: lister [-s] [-t]\n");
    exit(2);
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-s") == 0)
            sorted = 1;
        else if (strcmp(argv[i], "-t") == 0)
            totals = 1;
        else
            usage();
    }
}

static void read_entries(void)
{
    char line[2 * MOST_PATH];
    while (fgets(line, sizeof line, stdin)) {
        char *rest;
        line[strcspn(line, "\n")] = 0;
        if (!line[0])
            continue;
        if (entry_count == MOST_ENTRIES)
            usage();
        struct entry *e = &entries[entry_count++];
        e->size = strtol(line, &rest, 10);
        while (*rest == ' ')
            rest++;
        snprintf(e->path, MOST_PATH, "%s", rest);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* Length of the folder's part of a path, with its slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static int same_folder(const char *a, const char *b)
{
    size_t length = folder_length(a);
    return length == folder_length(b) && strncmp(a, b, length) == 0;
}

static void enter_folder(const char *path)
{
    size_t length = folder_length(path);
    if (length > prefix_length
#ifdef FIXED
        || length != prefix_length
#endif
    )
        prefix_length = length;
    memcpy(prefix, path, length);
    prefix[length] = 0;
}

static void print_size(long size)
{
    if (size >= 1L << 20)
        printf("%4ldM ", size >> 20);
    else if (size >= 1L << 10)
        printf("%4ldK ", size >> 10);
    else
        printf("%4ld  ", size);
}

static void print_entry(const struct entry *e)
{
    size_t skip = prefix_length;
    if (skip > strlen(e->path))
        skip = strlen(e->path);
    printf("  ");
    print_size(e->size);
    printf("%s\n", e->path + skip);
}

static long list_folder(int first)
{
    long total = 0;
    enter_folder(entries[first].path);
    printf("%s:\n", prefix[0] ? prefix : ".");
    for (int i = first; i < entry_count; i++) {
        if (entries[i].listed || !same_folder(entries[first].path, entries[i].path))
            continue;
        entries[i].listed = 1;
        print_entry(&entries[i]);
        total += entries[i].size;
    }
    return total;
}

static int longest_path(void)
{
    int longest = 0;
    for (int i = 0; i < entry_count; i++) {
        int length = (int)strlen(entries[i].path);
        if (length > longest)
            longest = length;
    }
    return longest;
}

int main(int argc, char **argv)
{
    long all = 0;
    read_options(argc, argv);
    read_entries();
    if (entry_count == 0)
        return 1;
    if (sorted)
        qsort(entries, entry_count, sizeof entries[0], compare);
    for (int i = 0; i < entry_count; i++) {
        if (entries[i].listed)
            continue;
        long total = list_folder(i);
        if (totals) {
            printf("  total ");
            print_size(total);
            printf("\n");
        }
        all += total;
    }
    if (totals) {
        printf("all ");
        print_size(all);
        printf("(longest path %d)\n", longest_path());
    }
    return 0;
}
