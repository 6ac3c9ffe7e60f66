/* SPDX-License-Identifier: MIT */
/* whole_file.c - see whole_file.h. */
#include "whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/name_files.h"
#include "platform/os.h"
#include "text/path.h"

/* Creates a file with a new name that begins with the path. */
static int temporary_open(const char *path, char **name, int *fd)
{
    uint64_t number = 0;
    int system = EEXIST;
    *name = NULL;
    for (int tries = 0; tries < 100 && system == EEXIST; tries++) {
        char ending[64];
        if (os_random(&number, sizeof number))
            number = os_clock_ns();
        (void)snprintf(ending, sizeof ending, ".%" PRIx64 ".partial", number);
        free(*name);
        *name = path_ended(path, ending);
        system = *name ? os_open(*name, OS_WRITE_NEW, fd) : ENOMEM;
    }
    return system;
}

enum tokmap_status cli_file_write(const char *path, const void *bytes, size_t count, struct tokmap_error *error)
{
    char *name = NULL;
    int fd = -1;
    struct os_stat stat;
    if (!os_stat(path, &stat) && stat.kind != OS_KIND_FILE)
        return error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                         "this is not a regular file, and cannot be replaced by one; choose another name");
    int system = temporary_open(path, &name, &fd);
    if (!system) {
        bool named = false;
        system = os_write(fd, bytes, count);
        if (!system)
            system = name_file(fd, name, path, true, &named);
        os_close(fd);
        if (!named)
            (void)os_unlink(name);
    }
    free(name);
    return system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the file cannot be written") : TOKMAP_OK;
}

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
