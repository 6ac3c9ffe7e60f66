/* append_file.c - see append_file.h. */
#include "append_file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "partial_file.h"
#include "platform/os.h"
#include "text/path.h"

#define NAME "kept-"

/* Where a file is at a checkpoint. */
struct mark {
    uint64_t bytes, hash;
};

void append_file_init(struct append_file *file, const char *folder)
{
    *file = (struct append_file){.folder = folder, .fd = -1};
}

void append_file_free(struct append_file *file)
{
    os_close(file->fd);
    free(file->buffer);
    hash_state_free(file->hash);
    append_file_init(file, file->folder);
}

/* Writes what is in the buffer. */
static int buffer_write(struct append_file *file)
{
    int system = file->fd < 0 ? os_open(file->folder, OS_WRITE_UNNAMED, &file->fd) : 0;
    if (system) {
        file->fd = -1;
        return system;
    }
    system = os_pwrite(file->fd, file->buffer, file->used, file->stored);
    if (system)
        return system;
    if (file->named)
        hash_state_add(file->hash, file->buffer, file->used);
    file->stored += file->used;
    file->used = 0;
    return 0;
}

int append_file_add(struct append_file *file, const void *bytes, size_t count)
{
    if (!file->buffer && !(file->buffer = malloc(APPEND_BUFFER)))
        return ENOMEM;
    while (count) {
        if (file->used == APPEND_BUFFER) {
            int system = buffer_write(file);
            if (system)
                return system;
        }
        size_t part = (size_t)min64(count, APPEND_BUFFER - file->used);
        memcpy(file->buffer + file->used, bytes, part);
        file->used += part;
        bytes = (const uint8_t *)bytes + part;
        count -= part;
    }
    return 0;
}

int append_file_read(const struct append_file *file, uint64_t offset, void *into, size_t count)
{
    assert(offset <= append_file_bytes(file) && count <= append_file_bytes(file) - offset);
    const size_t part = offset < file->stored ? (size_t)min64(count, file->stored - offset) : 0;
    size_t got = 0;
    const int system = part ? os_pread(file->fd, into, part, offset, &got) : 0;
    if (system || got < part)
        return system ? system : EIO; /* our own file has become shorter */
    if (count > part)
        memcpy((uint8_t *)into + part, file->buffer + (offset + part - file->stored), count - part);
    return 0;
}

bool append_file_is_name(const char *entry)
{
    return !strncmp(entry, NAME, strlen(NAME));
}

/* ---- checkpoints ---- */

static char *path_make(const struct checkpoint *checkpoint, const char *stem, const char *name)
{
    char entry[128];
    (void)snprintf(entry, sizeof entry, NAME "%s-%s", stem, name);
    return path_in(checkpoint->folder, entry);
}

/* Hashes the first bytes of a file, and copies them to another one unless that is -1. */
static int bytes_take(struct append_file *file, uint64_t bytes, int from, int into)
{
    uint8_t *piece = malloc(APPEND_BUFFER);
    int system = piece ? 0 : ENOMEM;
    for (uint64_t at = 0; at < bytes && !system;) {
        const size_t part = (size_t)min64(APPEND_BUFFER, bytes - at);
        size_t got = 0;
        system = os_pread(from, piece, part, at, &got);
        if (!system && got < part)
            system = EINVAL;
        if (!system)
            hash_state_add(file->hash, piece, part);
        if (!system && into >= 0)
            system = os_pwrite(into, piece, part, at);
        at += part;
    }
    free(piece);
    return system;
}

/* Gives a file its name: copies there what it has, since not every file system can name a file afterwards. */
static int file_name(struct checkpoint *checkpoint, struct append_file *file, const char *path)
{
    int fd = -1;
    if (!(file->hash = hash_state_new()))
        return ENOMEM;
    (void)os_unlink(path); /* of an earlier shard, or of work that was given up */
    int system = os_open(path, OS_WRITE_NEW, &fd);
    if (system)
        return system;
    if (file->stored)
        system = bytes_take(file, file->stored, file->fd, fd);
    os_close(file->fd);
    file->fd = fd;
    file->named = checkpoint->is_new = true;
    return system;
}

/* Opens a file of another process, and cuts it where it was. */
static int file_take(struct append_file *file, const char *path, const struct mark *mark)
{
    assert(!append_file_bytes(file));
    if (!(file->hash = hash_state_new()))
        return ENOMEM;
    int system = partial_file_reopen(path, &file->fd);
    if (system)
        return system == ENOENT ? EINVAL : system;
    system = bytes_take(file, mark->bytes, file->fd, -1);
    if (!system && hash_state_64(file->hash) != mark->hash)
        system = EINVAL;
    if (!system)
        system = os_truncate(file->fd, mark->bytes);
    file->stored = file->synced = mark->bytes;
    file->named = true;
    return system;
}

int checkpoint_pass(struct checkpoint *checkpoint, void *numbers, size_t count)
{
    struct bytes_buffer *bytes = &checkpoint->bytes;
    if (!checkpoint->takes)
        return bytes_append(bytes, numbers, count) ? 0 : ENOMEM;
    if (count > bytes->count - checkpoint->at)
        return EINVAL;
    if (count)
        memcpy(numbers, bytes->bytes + checkpoint->at, count);
    checkpoint->at += count;
    return 0;
}

int checkpoint_file(struct checkpoint *checkpoint, struct append_file *file, const char *stem, const char *name)
{
    struct mark mark = {.bytes = append_file_bytes(file)};
    int system = checkpoint->takes ? checkpoint_pass(checkpoint, &mark, sizeof mark) : 0;
    if (system)
        return system;
    char *path = mark.bytes ? path_make(checkpoint, stem, name) : NULL;
    if (mark.bytes && !path)
        return ENOMEM;
    if (mark.bytes && checkpoint->takes)
        system = file_take(file, path, &mark);
    else if (mark.bytes && !file->named)
        system = file_name(checkpoint, file, path);
    free(path);
    if (system || checkpoint->takes)
        return system;
    if (file->used)
        system = buffer_write(file);
    mark.hash = file->hash ? hash_state_64(file->hash) : 0;
    if (!system && file->stored != file->synced)
        system = bytes_append(&checkpoint->files, &file, sizeof file) ? 0 : ENOMEM;
    return system ? system : checkpoint_pass(checkpoint, &mark, sizeof mark);
}

int checkpoint_sync(struct checkpoint *checkpoint)
{
    struct append_file *file;
    int system = 0;
    /* The kernel begins with all of them, so that the second loop waits for one round of the storage and not many. */
    for (size_t at = 0; at < checkpoint->files.count; at += sizeof file) {
        memcpy(&file, checkpoint->files.bytes + at, sizeof file);
        os_write_behind(file->fd, file->synced, file->stored - file->synced);
    }
    for (size_t at = 0; at < checkpoint->files.count && !system; at += sizeof file) {
        memcpy(&file, checkpoint->files.bytes + at, sizeof file);
        system = os_sync(file->fd);
        file->synced = system ? file->synced : file->stored;
    }
    checkpoint->files.count = 0;
    if (system || !checkpoint->is_new)
        return system;
    char *path = path_make(checkpoint, "", "");
    system = path ? os_sync_folder(path) : ENOMEM;
    checkpoint->is_new = system != 0;
    free(path);
    return system;
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    bytes_free(&checkpoint->bytes);
    bytes_free(&checkpoint->files);
}
