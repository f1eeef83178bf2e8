/* Blocks and inodes. */
#include <string.h>

#include "disk.h"

const char *const status_texts[] = {
    "ok",           "exists already", "does not exist",  "no space left", "too large",
    "not a folder", "is a folder",    "is not empty",    "bad name",
};

void format(struct disk *disk) {
    memset(disk, 0, sizeof *disk);
    disk->used[0] = 1;
    disk->inodes[1].kind = KIND_FOLDER;
    disk->inodes[1].links = 1;
}

int free_blocks(const struct disk *disk) {
    int count = 0;
    for (int i = 0; i < BLOCKS; i++)
        count += !disk->used[i];
    return count;
}

static uint16_t allocate_block(struct disk *disk) {
    for (int i = 1; i < BLOCKS; i++) {
        if (!disk->used[i]) {
            disk->used[i] = 1;
            memset(disk->blocks[i], 0, BLOCK_SIZE);
            return (uint16_t)i;
        }
    }
    return 0;
}

static void release_block(struct disk *disk, uint16_t block) {
    disk->used[block] = 0;
}

int allocate_inode(struct disk *disk, enum kind kind) {
    for (int i = 2; i < INODES; i++) {
        struct inode *inode = &disk->inodes[i];
        if (inode->kind == KIND_FREE) {
            memset(inode, 0, sizeof *inode);
            inode->kind = (uint8_t)kind;
            return i;
        }
    }
    return 0;
}

static uint16_t *indirect_numbers(struct disk *disk, struct inode *inode) {
    return (uint16_t *)disk->blocks[inode->indirect];
}

/* The number of a file's block; made on demand if `make`. 0: there is none. */
uint16_t block_of(struct disk *disk, struct inode *inode, int index, int make) {
    uint16_t *place;
    if (index < DIRECT) {
        place = &inode->direct[index];
    } else {
        if (inode->indirect == 0) {
            if (!make)
                return 0;
            inode->indirect = allocate_block(disk);
            if (inode->indirect == 0)
                return 0;
        }
        place = &indirect_numbers(disk, inode)[index - DIRECT];
    }
    if (*place == 0 && make)
        *place = allocate_block(disk);
    return *place;
}

/* Gives back the blocks behind the new end. */
void truncate_inode(struct disk *disk, struct inode *inode, int size) {
    int keep = (size + BLOCK_SIZE - 1) / BLOCK_SIZE;
    for (int i = keep; i < DIRECT; i++) {
        if (inode->direct[i])
            release_block(disk, inode->direct[i]);
        inode->direct[i] = 0;
    }
    if (inode->indirect) {
        uint16_t *numbers = indirect_numbers(disk, inode);
        for (int i = keep > DIRECT ? keep - DIRECT : 0; i < INDIRECT; i++) {
            if (numbers[i])
                release_block(disk, numbers[i]);
            numbers[i] = 0;
        }
        if (keep <= DIRECT) {
            release_block(disk, inode->indirect);
        }
    }
    inode->size = (uint16_t)size;
}

int read_at(struct disk *disk, struct inode *inode, int offset, char *data, int length) {
    int done = 0;
    while (done < length && offset + done < inode->size) {
        int position = offset + done;
        int within = position % BLOCK_SIZE;
        int piece = BLOCK_SIZE - within;
        if (piece > length - done)
            piece = length - done;
        if (piece > inode->size - position)
            piece = inode->size - position;
        uint16_t block = block_of(disk, inode, position / BLOCK_SIZE, 0);
        if (block)
            memcpy(data + done, disk->blocks[block] + within, (size_t)piece);
        else
            memset(data + done, 0, (size_t)piece);
        disk->reads++;
        done += piece;
    }
    return done;
}

enum status write_at(struct disk *disk, struct inode *inode, int offset, const char *data,
                     int length) {
    if (offset + length > MAX_FILE)
        return ERROR_TOO_LARGE;
    for (int done = 0; done < length;) {
        int position = offset + done;
        int within = position % BLOCK_SIZE;
        int piece = BLOCK_SIZE - within;
        if (piece > length - done)
            piece = length - done;
        uint16_t block = block_of(disk, inode, position / BLOCK_SIZE, 1);
        if (block == 0)
            return ERROR_NO_SPACE;
        memcpy(disk->blocks[block] + within, data + done, (size_t)piece);
        disk->writes++;
        done += piece;
        if (position + piece > inode->size)
            inode->size = (uint16_t)(position + piece);
    }
    return OK;
}
