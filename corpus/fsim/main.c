/* fsim: obeys commands on a simulated disk.
 *
 *     mkdir PATH           touch PATH            write PATH TEXT      append PATH TEXT
 *     fill PATH N C        cat PATH              ls PATH              rm PATH
 *     mv OLD NEW           cp OLD NEW            ln OLD NEW           cut PATH N
 *     df                   check                 sum PATH             # comment */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"

static struct disk disk;

static void say(enum status status, const char *what) {
    if (status != OK)
        printf("%s: %s\n", what, status_texts[status]);
}

static void print_entry(void *context, const struct entry *entry) {
    (void)context;
    const struct inode *inode = &disk.inodes[entry->inode];
    printf("  %-13s %s %5d", entry->name, inode->kind == KIND_FOLDER ? "folder" : "file  ",
           inode->size);
    if (inode->links > 1)
        printf(" (%d links)", inode->links);
    printf("\n");
}

static void list(const char *path) {
    int inode = look_up(&disk, path);
    if (inode == 0)
        say(ERROR_MISSING, path);
    else if (disk.inodes[inode].kind != KIND_FOLDER)
        say(ERROR_NOT_FOLDER, path);
    else
        for_entries(&disk, inode, print_entry, NULL);
}

static struct inode *file_at(const char *path) {
    int inode = look_up(&disk, path);
    if (inode == 0)
        say(ERROR_MISSING, path);
    else if (disk.inodes[inode].kind == KIND_FOLDER)
        say(ERROR_IS_FOLDER, path);
    else
        return &disk.inodes[inode];
    return NULL;
}

/* Long runs of one character are printed as a count. */
static void print_file(const char *path) {
    static char data[MAX_FILE];
    struct inode *file = file_at(path);
    if (!file)
        return;
    int length = read_at(&disk, file, 0, data, MAX_FILE);
    for (int i = 0; i < length;) {
        int run = 1;
        while (i + run < length && data[i + run] == data[i])
            run++;
        if (run > 8)
            printf("(%d x %c)", run, data[i] >= ' ' ? data[i] : '.');
        else
            printf("%.*s", run, data + i);
        i += run;
    }
    printf("\n");
}

static void print_sum(const char *path) {
    char data[BLOCK_SIZE];
    struct inode *file = file_at(path);
    unsigned long sum = 0;
    if (!file)
        return;
    for (int offset = 0, got; (got = read_at(&disk, file, offset, data, BLOCK_SIZE)) > 0;
         offset += got)
        for (int i = 0; i < got; i++)
            sum = sum * 31 + (unsigned char)data[i];
    printf("%s: %d bytes, sum %lu\n", path, file->size, sum % 1000003);
}

static void fill(const char *path, const char *amount, char c) {
    static char data[MAX_FILE + BLOCK_SIZE];
    int length = atoi(amount);
    if (length < 0 || length > MAX_FILE + BLOCK_SIZE)
        length = MAX_FILE + BLOCK_SIZE;
    memset(data, c, (size_t)length);
    say(write_file(&disk, path, data, length, 0), path);
}

static void cut(const char *path, int size) {
    struct inode *file = file_at(path);
    if (file && size >= 0 && size < file->size)
        truncate_inode(&disk, file, size);
}

static int obey_path(const char *order, const char *path, const char *rest) {
    if (strcmp(order, "mkdir") == 0)
        say(make_file(&disk, path, KIND_FOLDER), path);
    else if (strcmp(order, "touch") == 0)
        say(make_file(&disk, path, KIND_FILE), path);
    else if (strcmp(order, "write") == 0)
        say(write_file(&disk, path, rest, (int)strlen(rest), 0), path);
    else if (strcmp(order, "append") == 0)
        say(write_file(&disk, path, rest, (int)strlen(rest), 1), path);
    else if (strcmp(order, "cat") == 0)
        print_file(path);
    else if (strcmp(order, "sum") == 0)
        print_sum(path);
    else if (strcmp(order, "ls") == 0)
        list(path);
    else if (strcmp(order, "rm") == 0)
        say(remove_file(&disk, path), path);
    else if (strcmp(order, "cut") == 0)
        cut(path, atoi(rest));
    else if (strcmp(order, "mv") == 0)
        say(move_file(&disk, path, rest), path);
    else if (strcmp(order, "cp") == 0)
        say(copy_file(&disk, path, rest), path);
    else if (strcmp(order, "ln") == 0)
        say(link_file(&disk, path, rest), path);
    else
        return 0;
    return 1;
}

static int obey(const char *line) {
    char order[16] = "", path[64] = "", rest[160] = "", extra[8] = "";
    int words = sscanf(line, "%15s %63s %159[^\n]", order, path, rest);
    if (words < 1 || order[0] == '#')
        return 1;
    if (strcmp(order, "df") == 0) {
        printf("%d blocks free\n", free_blocks(&disk));
        return 1;
    }
    if (strcmp(order, "check") == 0) {
        printf("%d problems\n", check_disk(&disk));
        return 1;
    }
    if (words < 2)
        return 0;
    if (strcmp(order, "fill") == 0) {
        if (sscanf(rest, "%*s %7s", extra) != 1)
            return 0;
        fill(path, rest, extra[0]);
        return 1;
    }
    return obey_path(order, path, rest);
}

int main(void) {
    char line[256];
    format(&disk);
    for (int number = 1; fgets(line, sizeof line, stdin); number++) {
        if (!obey(line)) {
            printf("line %d: cannot understand this\n", number);
            return 2;
        }
    }
    return check_disk(&disk) ? 1 : 0;
}
