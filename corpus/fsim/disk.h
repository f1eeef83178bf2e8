/* A small file system on a simulated disk. */
#ifndef DISK_H
#define DISK_H

#include <stdint.h>

enum {
    BLOCK_SIZE = 64,
    BLOCKS = 256,
    INODES = 64,
    DIRECT = 6,            /* block numbers in an inode */
    INDIRECT = 32,         /* block numbers in an indirect block */
    NAME_LENGTH = 13,
    ENTRIES = 4,           /* directory entries in a block */
    MAX_FILE = (DIRECT + INDIRECT) * BLOCK_SIZE,
};

enum kind { KIND_FREE, KIND_FILE, KIND_FOLDER };

enum status {
    OK,
    ERROR_EXISTS,
    ERROR_MISSING,
    ERROR_NO_SPACE,
    ERROR_TOO_LARGE,
    ERROR_NOT_FOLDER,
    ERROR_IS_FOLDER,
    ERROR_NOT_EMPTY,
    ERROR_BAD_NAME,
};

struct inode {
    uint8_t kind;
    uint8_t links;
    uint16_t size;
    uint16_t direct[DIRECT]; /* 0: none */
    uint16_t indirect;
};

struct entry {
    uint16_t inode; /* 0: free; the root is inode 1 and in no folder */
    char name[NAME_LENGTH + 1];
};

struct disk {
    uint8_t blocks[BLOCKS][BLOCK_SIZE]; /* block 0 is never given out */
    uint8_t used[BLOCKS];
    struct inode inodes[INODES];
    int reads;
    int writes;
};

extern const char *const status_texts[];

/* blocks.c */
void format(struct disk *disk);
int free_blocks(const struct disk *disk);
int allocate_inode(struct disk *disk, enum kind kind);
uint16_t block_of(struct disk *disk, struct inode *inode, int index, int make);
void truncate_inode(struct disk *disk, struct inode *inode, int size);
int read_at(struct disk *disk, struct inode *inode, int offset, char *data, int length);
enum status write_at(struct disk *disk, struct inode *inode, int offset, const char *data,
                     int length);

/* folders.c */
int find_entry(struct disk *disk, int folder, const char *name);
enum status add_entry(struct disk *disk, int folder, const char *name, int inode);
void remove_entry(struct disk *disk, int folder, const char *name);
int is_empty(struct disk *disk, int folder);
int look_up(struct disk *disk, const char *path);
enum status split_path(struct disk *disk, const char *path, int *folder, char *name);
void for_entries(struct disk *disk, int folder, void (*visit)(void *, const struct entry *),
                 void *context);

/* files.c */
enum status make_file(struct disk *disk, const char *path, enum kind kind);
enum status write_file(struct disk *disk, const char *path, const char *data, int length,
                       int append);
enum status link_file(struct disk *disk, const char *old, const char *fresh);
enum status remove_file(struct disk *disk, const char *path);
enum status move_file(struct disk *disk, const char *old, const char *fresh);
enum status copy_file(struct disk *disk, const char *old, const char *fresh);

/* check.c */
int check_disk(struct disk *disk);

#endif
