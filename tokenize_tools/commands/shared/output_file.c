/* output_file.c - see output_file.h. */
#include "output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

#define TRIES 100

static enum tokmap_status place_check(const struct output_file *file, struct tokmap_error *error)
{
    struct os_stat stat;
    if (!*path_name(file->path))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, file->path, TOKMAP_NO_OFFSET,
                         "the name of the output is empty or names a folder; give the name of a file");
    if (os_lstat(file->path, &stat))
        return TOKMAP_OK;
    if (stat.kind != OS_KIND_FILE && stat.kind != OS_KIND_LINK)
        return error_set(error, TOKMAP_ERROR_EXISTS, file->path, TOKMAP_NO_OFFSET,
                         "this is %s, which cannot be replaced by a file; choose another name",
                         stat.kind == OS_KIND_FOLDER ? "a folder" : "not a regular file");
    if (!file->replace)
        return error_set(error, TOKMAP_ERROR_EXISTS, file->path, TOKMAP_NO_OFFSET,
                         "the output already exists; choose another name, or use options.replace");
    return TOKMAP_OK;
}

/* Creates the partial file, or takes over one that a dead process has left, and locks it. Between the open and the
 * lock, another process may have renamed or removed the file. Then the name leads to a different file, and the attempt
 * is repeated. */
static enum tokmap_status partial_open(struct output_file *file, struct tokmap_error *error)
{
    for (int i = 0; i < TRIES; i++) {
        struct os_stat opened = {0}, named = {0};
        int system = os_open(file->partial, OS_WRITE_OPEN, &file->fd);
        if (system) {
            file->fd = -1;
            return error_set_system(error, system, file->partial, TOKMAP_NO_OFFSET, "the output cannot be created");
        }
        system = os_lock(file->fd);
        const bool busy = system == EWOULDBLOCK;
        if (!system)
            system = os_fstat(file->fd, &opened);
        const int missing = system ? 0 : os_lstat(file->partial, &named);
        const bool renamed = !system && (missing == ENOENT ||
                                         (!missing && (opened.inode != named.inode || opened.device != named.device)));
        const bool own = !system && !missing && !renamed;
        if (!system && !renamed)
            system = missing ? missing : os_truncate(file->fd, 0);
        if (!system && !renamed)
            return TOKMAP_OK;
        if (own)
            (void)os_unlink(file->partial);
        os_close(file->fd);
        file->fd = -1;
        if (busy)
            return error_set(error, TOKMAP_ERROR_BUSY, file->partial, TOKMAP_NO_OFFSET,
                             "another process is writing this output; wait for it, or choose another name");
        if (system)
            return error_set_system(error, system, file->partial, TOKMAP_NO_OFFSET, "the output cannot be created");
    }
    return error_set(error, TOKMAP_ERROR_BUSY, file->partial, TOKMAP_NO_OFFSET,
                     "other processes keep creating and removing this output; choose another name");
}

static void names_free(struct output_file *file)
{
    free(file->path);
    free(file->partial);
    file->path = file->partial = NULL;
}

enum tokmap_status output_file_open(struct output_file *file, const char *path, bool replace,
                                    struct tokmap_error *error)
{
    *file = (struct output_file){.fd = -1, .replace = replace};
    file->path = strdup(path);
    file->partial = path_join("", 0, path, strlen(path), ".partial");
    enum tokmap_status status = TOKMAP_OK;
    if (!file->path || !file->partial)
        status = error_set_memory(error, "the output's name", strlen(path) + 9);
    if (!status)
        status = place_check(file, error);
    if (!status)
        status = partial_open(file, error);
    if (status)
        names_free(file);
    return status;
}

enum tokmap_status output_file_commit(struct output_file *file, struct tokmap_error *error)
{
    enum tokmap_status status = place_check(file, error); /* another process may have made the file meanwhile */
    int system = status ? 0 : os_sync(file->fd);
    if (!status && !system)
        system = os_rename(file->partial, file->path);
    if (system)
        status = error_set_system(error, system, file->path, TOKMAP_NO_OFFSET, "the output cannot be completed");
    if (status) {
        output_file_abort(file);
        return status;
    }
    os_close(file->fd);
    file->fd = -1;
    system = os_sync_folder(file->path);
    if (system)
        status = error_set_system(error, system, file->path, TOKMAP_NO_OFFSET, "the output's folder cannot be synced");
    names_free(file);
    return status;
}

void output_file_abort(struct output_file *file)
{
    if (file->fd >= 0) {
        (void)os_unlink(file->partial);
        os_close(file->fd);
        file->fd = -1;
    }
    names_free(file);
}
