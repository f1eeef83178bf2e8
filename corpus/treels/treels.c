/* treels: lists a tree of files described in a catalogue, the way ls and du would.
 *
 * usage: treels [-a] [-l] [-h] [-r] [-t] [-S] [-R] [-d DEPTH] [-p GLOB] [-s] CATALOGUE [PATH]
 *
 * Catalogue lines: `MODE SIZE TIME PATH`, as in `-rw 1200 17 src/main.c`; folders are made as
 * needed, or given with mode `d..` and their own time.
 *   -a  also names that start with a dot      -l  long: mode, size, time
 *   -h  sizes in K and M                      -r  reverse order
 *   -t  newest first                          -S  largest first
 *   -R  with subfolders                       -d  no deeper than so many levels (implies -R)
 *   -p  only files that match, * and ?        -s  sizes of folders: sums of what is in them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 256, MAX_NAME = 64, MAX_CHILDREN = 64 };

struct node {
    char name[MAX_NAME];
    char mode[4];
    long size;
    long time;
    int is_folder;
    struct node *children[MAX_CHILDREN];
    int child_count;
};

enum order { BY_NAME, BY_TIME, BY_SIZE };

struct options {
    int all;
    int long_form;
    int human;
    int reverse;
    enum order order;
    int recursive;
    int depth;
    int sums;
    const char *glob;
};

static struct options options;

static void die(const char *message, const char *detail) {
    fprintf(stderr, "treels: %s%s\n", message, detail);
    exit(2);
}

/* ---- the tree ---- */

static struct node *new_node(const char *name, int is_folder) {
    struct node *node = calloc(1, sizeof *node);
    if (!node)
        die("out of memory", "");
    snprintf(node->name, sizeof node->name, "%s", name);
    strcpy(node->mode, is_folder ? "dr" : "-r");
    node->is_folder = is_folder;
    return node;
}

static struct node *find_child(const struct node *folder, const char *name) {
    for (int i = 0; i < folder->child_count; i++)
        if (strcmp(folder->children[i]->name, name) == 0)
            return folder->children[i];
    return NULL;
}

static struct node *add_child(struct node *folder, const char *name, int is_folder) {
    struct node *child = find_child(folder, name);
    if (child) {
        if (child->is_folder != is_folder)
            die("both a file and a folder: ", name);
        return child;
    }
    if (folder->child_count == MAX_CHILDREN)
        die("too many files in ", folder->name);
    child = new_node(name, is_folder);
    folder->children[folder->child_count++] = child;
    return child;
}

static struct node *add_path(struct node *root, char *path, int is_folder) {
    struct node *node = root;
    char *part = strtok(path, "/");
    while (part) {
        char *next = strtok(NULL, "/");
        node = add_child(node, part, next ? 1 : is_folder);
        part = next;
    }
    return node;
}

static struct node *read_catalogue(FILE *file) {
    char line[MAX_PATH * 2], mode[4], path[MAX_PATH];
    long size, time;
    struct node *root = new_node(".", 1);
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (sscanf(line, "%3s %ld %ld %255s", mode, &size, &time, path) != 4) {
            fprintf(stderr, "treels: line %d: cannot understand this\n", number);
            exit(2);
        }
        struct node *node = add_path(root, path, mode[0] == 'd');
        snprintf(node->mode, sizeof node->mode, "%s", mode);
        node->size = size;
        node->time = time;
    }
    return root;
}

static struct node *find_path(struct node *root, const char *path) {
    char copy[MAX_PATH];
    snprintf(copy, sizeof copy, "%s", path);
    struct node *node = root;
    for (char *part = strtok(copy, "/"); part && node; part = strtok(NULL, "/"))
        if (strcmp(part, ".") != 0)
            node = find_child(node, part);
    return node;
}

static void free_tree(struct node *node) {
    for (int i = 0; i < node->child_count; i++)
        free_tree(node->children[i]);
    free(node);
}

/* ---- what to show ---- */

static int glob_matches(const char *glob, const char *name) {
    if (*glob == '\0')
        return *name == '\0';
    if (*glob == '*')
        return glob_matches(glob + 1, name) || (*name && glob_matches(glob, name + 1));
    return *name && (*glob == '?' || *glob == *name) && glob_matches(glob + 1, name + 1);
}

static int is_shown(const struct node *node) {
    if (node->name[0] == '.' && !options.all)
        return 0;
    if (options.glob && !node->is_folder)
        return glob_matches(options.glob, node->name);
    return 1;
}

/* The size of a file, or of everything shown in a folder. */
static long size_of(const struct node *node) {
    if (!node->is_folder || !options.sums)
        return node->size;
    long sum = 0;
    for (int i = 0; i < node->child_count; i++)
        if (is_shown(node->children[i]))
            sum += size_of(node->children[i]);
    return sum;
}

static int compare(const void *a, const void *b) {
    const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
    int result = 0;
    if (options.order == BY_TIME)
        result = (x->time < y->time) - (x->time > y->time);
    else if (options.order == BY_SIZE)
        result = (size_of(x) < size_of(y)) - (size_of(x) > size_of(y));
    if (result == 0)
        result = strcmp(x->name, y->name);
    return options.reverse ? -result : result;
}

/* ---- printing ---- */

static void print_size(long size) {
    if (!options.human || size < 1024)
        printf(" %8ld", size);
    else if (size < 1024 * 1024)
        printf(" %7.1fK", (double)size / 1024);
    else
        printf(" %7.1fM", (double)size / (1024 * 1024));
}

static void print_node(const struct node *node, int level) {
    if (options.long_form) {
        printf("%-3s", node->mode);
        print_size(size_of(node));
        printf(" %6ld ", node->time);
    }
    printf("%*s%s%s\n", 2 * level, "", node->name, node->is_folder ? "/" : "");
}

static void list(struct node *folder, int level) {
    struct node *shown[MAX_CHILDREN];
    int count = 0;
    for (int i = 0; i < folder->child_count; i++)
        if (is_shown(folder->children[i]))
            shown[count++] = folder->children[i];
    qsort(shown, (size_t)count, sizeof shown[0], compare);
    for (int i = 0; i < count; i++) {
        print_node(shown[i], level);
        int deeper = options.recursive && (options.depth == 0 || level + 1 < options.depth);
        if (shown[i]->is_folder && deeper)
            list(shown[i], level + 1);
    }
}

static void print_total(const struct node *folder) {
    int files = 0, folders = 0;
    long bytes = 0;
    for (int i = 0; i < folder->child_count; i++) {
        const struct node *child = folder->children[i];
        if (!is_shown(child))
            continue;
        if (child->is_folder)
            folders++;
        else
            files++;
        bytes += size_of(child);
    }
    printf("%d files, %d folders, %ld bytes\n", files, folders, bytes);
}

/* ---- options ---- */

static int number(const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 100)
        die("not a depth: ", text);
    return (int)value;
}

static void parse_options(int argc, char **argv) {
    int letter;
    while ((letter = getopt(argc, argv, "alhrtSRd:p:s")) != -1) {
        switch (letter) {
        case 'a':
            options.all = 1;
            break;
        case 'l':
            options.long_form = 1;
            break;
        case 'h':
            options.human = 1;
            break;
        case 'r':
            options.reverse = 1;
            break;
        case 't':
            options.order = BY_TIME;
            break;
        case 'S':
            options.order = BY_SIZE;
            break;
        case 'd':
            options.recursive = 1;
            options.depth = number(optarg);
            break;
        case 'R':
            options.recursive = 1;
            options.depth = 0;
            break;
        case 'p':
            options.glob = optarg;
            break;
        case 's':
            options.sums = 1;
            break;
        default:
            die("usage: treels [-alhrtSRs] [-d DEPTH] [-p GLOB] CATALOGUE [PATH]", "");
        }
    }
}

int main(int argc, char **argv) {
    parse_options(argc, argv);
    if (optind == argc)
        die("a catalogue is needed", "");
    FILE *file = fopen(argv[optind], "r");
    if (!file)
        die("cannot open ", argv[optind]);
    struct node *root = read_catalogue(file);
    fclose(file);
    const char *path = optind + 1 < argc ? argv[optind + 1] : ".";
    struct node *start = find_path(root, path);
    if (!start) {
        printf("no %s\n", path);
        free_tree(root);
        return 1;
    }
    if (start->is_folder) {
        list(start, 0);
        print_total(start);
    } else {
        print_node(start, 0);
    }
    free_tree(root);
    return 0;
}
