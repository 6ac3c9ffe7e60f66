/* SPDX-License-Identifier: MIT */
/* train_files.c - see train_files.h. */
#include "train_files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/path.h"

struct train_files {
    char *lock; /* PREFIX.partial */
    int lock_fd;
    char *paths[TRAIN_FILES_MOST], *partials[TRAIN_FILES_MOST];
    int fds[TRAIN_FILES_MOST]; /* -1: not open */
    uint32_t count;
    bool replace, made[TRAIN_FILES_MOST];
    struct name_files group;
};

/* Refuses to replace a group, unless a killed writer has left it without its last file. */
static enum tokmap_status exists_check(const struct train_files *files, struct tokmap_error *error)
{
    struct os_stat stat;
    const uint32_t first = name_files_pending(&files->group) ? files->count - 1 : 0;
    for (uint32_t i = first; i < files->count; i++)
        if (!files->replace && !os_lstat(files->paths[i], &stat))
            return error_set(error, TOKMAP_ERROR_EXISTS, files->paths[i], TOKMAP_NO_OFFSET,
                             "the output already exists; choose another name, or use --force");
    return TOKMAP_OK;
}

/* Creates a file and locks it. */
static enum tokmap_status partial_open(const char *path, int *fd, struct tokmap_error *error)
{
    const int system = partial_file_open(path, NULL, NULL, fd);
    return system ? partial_file_failed(system, path, error) : TOKMAP_OK;
}

/* Takes the lock, gives the files of a killed writer their names, and creates the partial files. One that it has left,
 * and that is not made now, is removed. */
static enum tokmap_status partials_open(struct train_files *files, struct tokmap_error *error)
{
    bool found = false;
    enum tokmap_status status = partial_open(files->lock, &files->lock_fd, error);
    if (!status)
        status = exists_check(files, error);
    if (!status)
        status = name_files_complete(&files->group, true, false, &found, error);
    files->replace = files->replace || found; /* whoever asked for no replacement has not seen them complete */
    for (uint32_t i = 0; i < files->count && !status; i++) {
        if (files->made[i])
            status = partial_open(files->partials[i], &files->fds[i], error);
        else
            (void)os_unlink(files->partials[i]);
    }
    return status;
}

enum tokmap_status train_files_open(struct train_files **files, const char *prefix, const struct train_file *names,
                                    uint32_t count, bool replace, struct tokmap_error *error)
{
    assert(prefix && count && count <= TRAIN_FILES_MOST && names[count - 1].made);
    *files = NULL;
    if (!*path_name(prefix) || strchr(path_name(prefix), '\n'))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET,
                         "the name of the output is empty, names a folder, or has a line end; give a prefix, for "
                         "example data/web");
    struct train_files *made = calloc(1, sizeof *made);
    enum tokmap_status status = made ? TOKMAP_OK : error_set_memory(error, "the output's names", sizeof *made);
    if (status)
        return status;
    made->replace = replace;
    made->count = count;
    made->lock = path_ended(prefix, ".partial");
    made->lock_fd = -1;
    made->group = (struct name_files){.name = prefix, .beside = true};
    bool complete = made->lock != NULL;
    for (uint32_t i = 0; i < count; i++) {
        made->fds[i] = -1;
        made->made[i] = names[i].made;
        made->paths[i] = path_ended(prefix, names[i].ending);
        made->partials[i] = made->paths[i] ? path_ended(made->paths[i], ".partial") : NULL;
        complete = complete && made->partials[i];
    }
    if (!complete)
        status = error_set_memory(error, "the output's names", strlen(prefix));
    if (!status)
        status = exists_check(made, error);
    if (!status)
        status = partials_open(made, error);
    if (status)
        train_files_abort(made);
    else
        *files = made;
    return status;
}

void train_files_abort(struct train_files *files)
{
    if (!files)
        return;
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->fds[i] >= 0)
            (void)os_unlink(files->partials[i]);
        os_close(files->fds[i]);
        free(files->paths[i]);
        free(files->partials[i]);
    }
    if (files->lock_fd >= 0)
        (void)os_unlink(files->lock);
    os_close(files->lock_fd); /* last, as no other writer may use these names before */
    free(files->lock);
    name_files_free(&files->group);
    free(files);
}

static enum tokmap_status file_write(struct train_files *files, uint32_t i, const struct growing *g,
                                     struct tokmap_error *error)
{
    if (g->failed)
        return error_set_memory(error, "the vocabulary's files", g->count);
    int system = os_write(files->fds[i], g->bytes, g->count);
    if (!system)
        system = os_sync(files->fds[i]);
    if (system)
        return error_set_system(error, system, files->partials[i], TOKMAP_NO_OFFSET, "the output cannot be written");
    return TOKMAP_OK;
}

enum tokmap_status train_files_commit(struct train_files *files, const struct growing *contents,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < files->count && !status; i++)
        if (files->made[i])
            status = file_write(files, i, &contents[i], error);
    if (!status)
        status = exists_check(files, error);
    /* All are of one level, so that what has their names is removed before the first of them gets its own. */
    for (uint32_t i = 0; i < files->count && !status; i++) {
        if (files->made[i])
            name_files_add(&files->group, 1, strdup(files->partials[i]), strdup(files->paths[i]));
        else
            name_files_remove(&files->group, 1, strdup(files->paths[i]));
    }
    if (!status)
        status = name_files_write(&files->group, true, NULL, NULL, error);
    if (!status) {
        for (uint32_t i = 0; i < files->count; i++) { /* they are the next writer's, if this one fails */
            os_close(files->fds[i]);
            files->fds[i] = -1;
        }
        bool found;
        status = name_files_complete(&files->group, true, false, &found, error);
    }
    train_files_abort(files);
    return status;
}

const char *train_files_name(const struct train_files *files, uint32_t i)
{
    return i < files->count        ? files->paths[i]
           : i < 2 * files->count  ? files->partials[i - files->count]
           : i == 2 * files->count ? files->lock
                                   : NULL;
}
