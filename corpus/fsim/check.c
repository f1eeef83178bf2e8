/* Looking for contradictions on a disk. */
#include <stdio.h>
#include <string.h>

#include "disk.h"

struct check {
    struct disk *disk;
    int problems;
    int owners[BLOCKS];
    int links[INODES];
};

static void complain(struct check *check, const char *message, int number) {
    printf("  %s %d\n", message, number);
    check->problems++;
}

static void own(struct check *check, uint16_t block, int inode) {
    if (block == 0)
        return;
    if (!check->disk->used[block])
        complain(check, "a free block is used by inode", inode);
    if (check->owners[block] && check->owners[block] != inode)
        complain(check, "a block is shared by inode", inode);
    check->owners[block] = inode;
}

static void check_inode(struct check *check, int number) {
    struct inode *inode = &check->disk->inodes[number];
    for (int i = 0; i < DIRECT; i++)
        own(check, inode->direct[i], number);
    if (inode->indirect) {
        own(check, inode->indirect, number);
        const uint16_t *numbers = (uint16_t *)check->disk->blocks[inode->indirect];
        for (int i = 0; i < INDIRECT; i++)
            if (numbers[i] < BLOCKS)
                own(check, numbers[i], number);
    }
    if (inode->size > MAX_FILE)
        complain(check, "too large is inode", number);
}

static void count_link(void *context, const struct entry *entry) {
    struct check *check = context;
    if (entry->inode < INODES)
        check->links[entry->inode]++;
}

int check_disk(struct disk *disk) {
    struct check check = {.disk = disk};
    check.links[1] = 1;
    for (int i = 1; i < INODES; i++) {
        if (disk->inodes[i].kind == KIND_FREE)
            continue;
        check_inode(&check, i);
        if (disk->inodes[i].kind == KIND_FOLDER)
            for_entries(disk, i, count_link, &check);
    }
    for (int i = 1; i < INODES; i++)
        if (disk->inodes[i].kind != KIND_FREE && disk->inodes[i].links != check.links[i])
            complain(&check, "wrong number of links in inode", i);
    for (int i = 1; i < BLOCKS; i++)
        if (disk->used[i] && !check.owners[i])
            complain(&check, "lost block", i);
    return check.problems;
}
