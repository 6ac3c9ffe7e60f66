/* SPDX-License-Identifier: MIT */
#include "parquet_input.h"

#include <stdlib.h>

#include "common/error.h"
#include "platform/os.h"

struct file_input {
    const char *path;
    int fd;
    struct os_stat stat;
};

static enum tokmap_status changed(const char *path, uint64_t offset, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_MISMATCH, path, offset,
                     "the file changed while it was read; run the command again when no program writes to it");
}

static enum tokmap_status file_read(void *user, void *into, uint64_t offset, uint64_t count, struct tokmap_error *error)
{
    const struct file_input *file = user;
    size_t got;
    const int system = os_pread(file->fd, into, (size_t)count, offset, &got);
    if (system)
        return error_set_system(error, system, file->path, offset, "the input cannot be read");
    return got == count ? TOKMAP_OK : changed(file->path, offset, error);
}

static enum tokmap_status file_check(void *user, struct tokmap_error *error)
{
    const struct file_input *file = user;
    struct os_stat now;
    return os_fstat(file->fd, &now) || now.bytes != file->stat.bytes || now.modified_ns != file->stat.modified_ns
               ? changed(file->path, TOKMAP_NO_OFFSET, error)
               : TOKMAP_OK;
}

static void file_close(void *user)
{
    const struct file_input *file = user;
    os_close(file->fd);
    free(user);
}

enum tokmap_status parquet_input_open(struct parquet_input *input, const char *path, struct tokmap_error *error)
{
    struct file_input *file = malloc(sizeof *file);
    if (!file)
        return error_set_memory(error, "the reader of a Parquet file", sizeof *file);
    *file = (struct file_input){.path = path, .fd = -1};
    *input = (struct parquet_input){.user = file, .read = file_read, .check = file_check, .close = file_close};
    int system = os_open(path, OS_READ_NOW, &file->fd);
    if (!system)
        system = os_fstat(file->fd, &file->stat);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the input cannot be opened");
    input->bytes = file->stat.bytes;
    return file->stat.kind == OS_KIND_FILE
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "a Parquet file is read from its end, which a pipe does not allow; name a regular file");
}

enum tokmap_status parquet_input_read(const struct parquet_input *input, const char *path, void *into, uint64_t offset,
                                      uint64_t count, struct tokmap_error *error)
{
    if (offset > input->bytes || count > input->bytes - offset)
        return changed(path, input->bytes, error);
    return input->read(input->user, into, offset, count, error);
}
