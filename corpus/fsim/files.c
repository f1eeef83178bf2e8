/* What users do with files. */
#include <string.h>

#include "disk.h"

enum { NAME_BUFFER = NAME_LENGTH + 2 };

enum status make_file(struct disk *disk, const char *path, enum kind kind) {
    char name[NAME_BUFFER];
    int folder;
    enum status status = split_path(disk, path, &folder, name);
    if (status != OK)
        return status;
    if (find_entry(disk, folder, name))
        return ERROR_EXISTS;
    int inode = allocate_inode(disk, kind);
    if (inode == 0)
        return ERROR_NO_SPACE;
    status = add_entry(disk, folder, name, inode);
    if (status != OK)
        disk->inodes[inode].kind = KIND_FREE;
    return status;
}

enum status write_file(struct disk *disk, const char *path, const char *data, int length,
                       int append) {
    int inode = look_up(disk, path);
    if (inode == 0) {
        enum status status = make_file(disk, path, KIND_FILE);
        if (status != OK)
            return status;
        inode = look_up(disk, path);
    }
    struct inode *file = &disk->inodes[inode];
    if (file->kind == KIND_FOLDER)
        return ERROR_IS_FOLDER;
    if (!append)
        truncate_inode(disk, file, 0);
    return write_at(disk, file, file->size, data, length);
}

enum status link_file(struct disk *disk, const char *old, const char *fresh) {
    char name[NAME_BUFFER];
    int folder, inode = look_up(disk, old);
    if (inode == 0)
        return ERROR_MISSING;
    if (disk->inodes[inode].kind == KIND_FOLDER)
        return ERROR_IS_FOLDER;
    enum status status = split_path(disk, fresh, &folder, name);
    if (status != OK)
        return status;
    if (find_entry(disk, folder, name))
        return ERROR_EXISTS;
    return add_entry(disk, folder, name, inode);
}

enum status remove_file(struct disk *disk, const char *path) {
    char name[NAME_BUFFER];
    int folder;
    enum status status = split_path(disk, path, &folder, name);
    if (status != OK)
        return status;
    int inode = find_entry(disk, folder, name);
    if (inode == 0)
        return ERROR_MISSING;
    struct inode *file = &disk->inodes[inode];
    if (file->kind == KIND_FOLDER && !is_empty(disk, inode))
        return ERROR_NOT_EMPTY;
    remove_entry(disk, folder, name);
    if (file->links == 0) {
        truncate_inode(disk, file, 0);
        file->kind = KIND_FREE;
    }
    return OK;
}

enum status move_file(struct disk *disk, const char *old, const char *fresh) {
    char old_name[NAME_BUFFER], new_name[NAME_BUFFER];
    int old_folder, new_folder;
    enum status status = split_path(disk, old, &old_folder, old_name);
    if (status == OK)
        status = split_path(disk, fresh, &new_folder, new_name);
    if (status != OK)
        return status;
    int inode = find_entry(disk, old_folder, old_name);
    if (inode == 0)
        return ERROR_MISSING;
    if (find_entry(disk, new_folder, new_name))
        return ERROR_EXISTS;
    status = add_entry(disk, new_folder, new_name, inode);
    if (status == OK)
        remove_entry(disk, old_folder, old_name);
    return status;
}

enum status copy_file(struct disk *disk, const char *old, const char *fresh) {
    char data[BLOCK_SIZE];
    int source = look_up(disk, old);
    if (source == 0)
        return ERROR_MISSING;
    if (disk->inodes[source].kind == KIND_FOLDER)
        return ERROR_IS_FOLDER;
    enum status status = make_file(disk, fresh, KIND_FILE);
    if (status != OK)
        return status;
    int target = look_up(disk, fresh);
    for (int offset = 0; offset < disk->inodes[source].size && status == OK;) {
        int got = read_at(disk, &disk->inodes[source], offset, data, BLOCK_SIZE);
        status = write_at(disk, &disk->inodes[target], offset, data, got);
        offset += got;
    }
    return status;
}
