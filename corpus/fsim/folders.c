/* Folders are files of entries. */
#include <string.h>

#include "disk.h"

static struct entry *entries_of(struct disk *disk, int folder, int block_index) {
    uint16_t block = block_of(disk, &disk->inodes[folder], block_index, 0);
    return block ? (struct entry *)disk->blocks[block] : NULL;
}

static int block_count(const struct disk *disk, int folder) {
    return disk->inodes[folder].size / BLOCK_SIZE;
}

static struct entry *entry_named(struct disk *disk, int folder, const char *name) {
    for (int b = 0; b < block_count(disk, folder); b++) {
        struct entry *entries = entries_of(disk, folder, b);
        for (int i = 0; entries && i < ENTRIES; i++)
            if (entries[i].inode && strcmp(entries[i].name, name) == 0)
                return &entries[i];
    }
    return NULL;
}

int find_entry(struct disk *disk, int folder, const char *name) {
    struct entry *entry = entry_named(disk, folder, name);
    return entry ? entry->inode : 0;
}

static struct entry *free_entry(struct disk *disk, int folder) {
    struct inode *inode = &disk->inodes[folder];
    for (int b = 0; b < block_count(disk, folder); b++) {
        struct entry *entries = entries_of(disk, folder, b);
        for (int i = 0; entries && i < ENTRIES; i++)
            if (entries[i].inode == 0)
                return &entries[i];
    }
    if (inode->size + BLOCK_SIZE > MAX_FILE)
        return NULL;
    uint16_t block = block_of(disk, inode, inode->size / BLOCK_SIZE, 1);
    if (block == 0)
        return NULL;
    inode->size += BLOCK_SIZE;
    return (struct entry *)disk->blocks[block];
}

enum status add_entry(struct disk *disk, int folder, const char *name, int inode) {
    size_t length = strlen(name);
    if (length == 0 || length > NAME_LENGTH)
        return ERROR_BAD_NAME;
    struct entry *entry = free_entry(disk, folder);
    if (!entry)
        return ERROR_NO_SPACE;
    entry->inode = (uint16_t)inode;
    memcpy(entry->name, name, length + 1);
    disk->inodes[inode].links++;
    disk->writes++;
    return OK;
}

void remove_entry(struct disk *disk, int folder, const char *name) {
    struct entry *entry = entry_named(disk, folder, name);
    if (entry) {
        disk->inodes[entry->inode].links--;
        memset(entry, 0, sizeof *entry);
        disk->writes++;
    }
}

void for_entries(struct disk *disk, int folder, void (*visit)(void *, const struct entry *),
                 void *context) {
    for (int b = 0; b < block_count(disk, folder); b++) {
        struct entry *entries = entries_of(disk, folder, b);
        for (int i = 0; entries && i < ENTRIES; i++)
            if (entries[i].inode)
                visit(context, &entries[i]);
    }
}

static void count_one(void *context, const struct entry *entry) {
    (void)entry;
    (*(int *)context)++;
}

int is_empty(struct disk *disk, int folder) {
    int count = 0;
    for_entries(disk, folder, count_one, &count);
    return count == 0;
}

/* The next part of a path; returns what follows, or NULL at the end. */
static const char *next_part(const char *path, char *part) {
    int length = 0;
    while (*path == '/')
        path++;
    if (*path == '\0')
        return NULL;
    while (*path && *path != '/') {
        if (length < NAME_LENGTH + 1)
            part[length++] = *path;
        path++;
    }
    part[length] = '\0';
    return path;
}

int look_up(struct disk *disk, const char *path) {
    char part[NAME_LENGTH + 2];
    int inode = 1;
    while (inode && (path = next_part(path, part))) {
        if (disk->inodes[inode].kind != KIND_FOLDER)
            return 0;
        inode = find_entry(disk, inode, part);
    }
    return inode;
}

/* The folder that holds the last part of a path, and that part. */
enum status split_path(struct disk *disk, const char *path, int *folder, char *name) {
    char part[NAME_LENGTH + 2];
    int inode = 1;
    path = next_part(path, name);
    if (!path)
        return ERROR_BAD_NAME;
    while ((path = next_part(path, part))) {
        inode = find_entry(disk, inode, name);
        if (inode == 0)
            return ERROR_MISSING;
        if (disk->inodes[inode].kind != KIND_FOLDER)
            return ERROR_NOT_FOLDER;
        strcpy(name, part);
    }
    *folder = inode;
    return OK;
}
