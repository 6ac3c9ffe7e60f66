/* SPDX-License-Identifier: MIT */
#include "whole_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"

enum tokmap_status cli_file_read(const char *path, size_t most, struct bytes_buffer *into, struct tokmap_error *error)
{
    int fd;
    size_t got = 0;
    const size_t before = into->count;
    int system = os_open(path, OS_READ, &fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the file cannot be opened");
    do {
        system = bytes_reserve(into, 65536) ? os_read(fd, into->bytes + into->count, 65536, &got) : ENOMEM;
        into->count += system ? 0 : got;
    } while (!system && got && into->count - before <= most);
    os_close(fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the file cannot be read");
    if (into->count - before > most)
        return error_set(error, TOKMAP_ERROR_RANGE, path, TOKMAP_NO_OFFSET,
                         "the file is larger than %zu bytes, which no file of this kind is", most);
    return TOKMAP_OK;
}

/* ---- the folder of an output ---- */

static bool is_folder(const char *path)
{
    struct os_stat found;
    return !os_stat(path, &found) && found.kind == OS_KIND_FOLDER;
}

/* Makes one folder. Another process may make it at the same time. */
static int folder_make(const char *path)
{
    const int system = os_make_folder(path);
    if (system)
        return is_folder(path) ? 0 : system;
    return os_sync_folder(path);
}

static enum tokmap_status folder_failed(const char *path, int system, struct tokmap_error *error)
{
    if (system == EEXIST || system == ENOTDIR)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET,
                         "the output folder is not a folder; choose another name");
    return error_set_system(
        error, system, path, TOKMAP_NO_OFFSET, "the output folder cannot be made%s",
        system == EACCES || system == EPERM ? "; the folder that contains it may not be writable for you" : "");
}

enum tokmap_status cli_output_folder(const char *output, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (strstr(output, "://"))
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, output, TOKMAP_NO_OFFSET,
                         "the output is written to files of this machine; give the path of one, and copy the result");
    char *folder = path_folder(output);
    if (!folder)
        return error_set_memory(error, "a path", strlen(output));
    for (char *end = folder; end && !status && !is_folder(folder);) { /* from the outermost one on */
        end = strchr(end + 1, '/');
        if (end)
            *end = '\0';
        const int system = is_folder(folder) ? 0 : folder_make(folder);
        if (system)
            status = folder_failed(folder, system, error);
        if (end)
            *end = '/';
    }
    free(folder);
    return status;
}

/* ---- names ---- */

static bool exists_with(const char *name, const char *ending)
{
    const size_t capacity = strlen(name) + strlen(ending) + 1;
    char *path = malloc(capacity);
    struct os_stat found;
    if (!path)
        return false;
    snprintf(path, capacity, "%s%s", name, ending);
    const bool exists = os_stat(path, &found) == 0;
    free(path);
    return exists;
}

bool cli_head_read(const char *path, char *head, size_t room, size_t *got)
{
    int fd;
    *got = 0;
    if (os_open(path, OS_READ_NOW, &fd))
        return false;
    const int failed = os_pread(fd, head, room, 0, got);
    os_close(fd);
    return !failed;
}

bool cli_is_manifest(const char *path)
{
    char head[64];
    size_t got;
    return cli_head_read(path, head, sizeof head, &got) && shard_manifest_begins(head, got);
}

/* Returns whether the bytes before a zero byte are lines of text. The file is then a damaged run file, whose reader
 * reports the zero byte, rather than a file of tokens. */
static bool is_damaged_text(const char *head, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)head[i] < ' ' && !strchr("\t\n\r", head[i]))
            return false;
    return memchr(head, '\n', count) != NULL;
}

/* Looks at the beginning of the file, which decides: a manifest has its own first line, and token files contain zero
 * bytes. */
static bool is_plain_text(const char *name)
{
    char head[4096];
    size_t got;
    if (!cli_head_read(name, head, sizeof head, &got))
        return false;
    const char *zero = memchr(head, '\0', got);
    return (!zero || is_damaged_text(head, (size_t)(zero - head))) && !shard_manifest_begins(head, got);
}

bool cli_names_run(const char *name)
{
    struct os_stat found;
    if (strncmp(name, TOKMAP_SYNTHETIC, sizeof TOKMAP_SYNTHETIC - 1) == 0)
        return false;
    return os_stat(name, &found) == 0 && found.kind == OS_KIND_FILE && !shard_file_is(name, SHARD_INDEX) &&
           !shard_file_is(name, SHARD_TOKENS) && !exists_with(name, shard_file_ending(SHARD_INDEX, SHARD_FINAL)) &&
           is_plain_text(name);
}
