/* SPDX-License-Identifier: MIT */
/* train_files.c - see train_files.h. */
#include "train_files.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/path.h"

struct train_files {
    char *paths[FILE_GROUP_MAX], *partials[FILE_GROUP_MAX], *replaced[FILE_GROUP_MAX];
    int fds[FILE_GROUP_MAX]; /* -1: not open */
    uint32_t count;
    bool replace, made[FILE_GROUP_MAX];
};

static enum tokmap_status exists_check(const struct train_files *files, struct tokmap_error *error)
{
    struct os_stat stat;
    /* Without the locks: what a killed writer has left may be there, too. */
    if (files->fds[files->count - 1] < 0 && !os_lstat(files->partials[files->count - 1], &stat))
        return TOKMAP_OK;
    for (uint32_t i = 0; i < files->count; i++)
        if (!files->replace && !os_lstat(files->paths[i], &stat))
            return error_set(error, TOKMAP_ERROR_EXISTS, files->paths[i], TOKMAP_NO_OFFSET,
                             "the output already exists; choose another name, or use --force");
    return TOKMAP_OK;
}

static struct file_group set_of(const struct train_files *files)
{
    return (struct file_group){files->count, files->paths, files->partials, files->replaced};
}

static int take_back(void *user)
{
    const struct file_group group = set_of(user);
    return file_group_take_back(&group);
}

static enum tokmap_status cannot_create(int system, const char *path, struct tokmap_error *error)
{
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                         "another process is writing this output; wait for it, or choose another name");
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the output cannot be created%s",
                            system == EACCES || system == EPERM
                                ? "; its folder may not be writable for you, or the file may belong to another user"
                                : "");
}

/* Creates the partial files and locks them, that of the last file first: whoever has it may look at the others. What a
 * killed writer has left of a file that is not made is removed. */
static enum tokmap_status partials_open(struct train_files *files, struct tokmap_error *error)
{
    const struct file_group group = set_of(files);
    for (uint32_t i = files->count; i-- > 0;) {
        if (!files->made[i]) {
            (void)os_unlink(files->partials[i]);
            continue;
        }
        const int system =
            partial_file_open(files->partials[i], i == files->count - 1 ? take_back : NULL, files, &files->fds[i]);
        if (system)
            return cannot_create(system, files->partials[i], error);
    }
    const int system = file_group_finish(&group);
    return system ? cannot_create(system, files->paths[files->count - 1], error) : exists_check(files, error);
}

enum tokmap_status train_files_open(struct train_files **files, const char *prefix, const struct train_file *names,
                                    uint32_t count, bool replace, struct tokmap_error *error)
{
    static const char partial[] = ".partial", replaced[] = ".replaced";
    assert(prefix && count && count <= FILE_GROUP_MAX && names[count - 1].made);
    *files = NULL;
    if (!*path_name(prefix))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET,
                         "the name of the output is empty or names a folder; give a prefix, for example data/web");
    struct train_files *made = calloc(1, sizeof *made);
    enum tokmap_status status = made ? TOKMAP_OK : error_set_memory(error, "the output's names", sizeof *made);
    if (status)
        return status;
    made->replace = replace;
    made->count = count;
    for (uint32_t i = 0; i < count; i++)
        made->fds[i] = -1;
    for (uint32_t i = 0; i < count && !status; i++) {
        made->made[i] = names[i].made;
        const size_t bytes = strlen(prefix) + strlen(names[i].ending) + sizeof replaced;
        made->paths[i] = malloc(bytes);
        made->partials[i] = malloc(bytes);
        made->replaced[i] = malloc(bytes);
        if (!made->paths[i] || !made->partials[i] || !made->replaced[i]) {
            status = error_set_memory(error, "the output's names", bytes);
            break;
        }
        (void)snprintf(made->paths[i], bytes, "%s%s", prefix, names[i].ending);
        (void)snprintf(made->partials[i], bytes, "%s%s%s", prefix, names[i].ending, partial);
        (void)snprintf(made->replaced[i], bytes, "%s%s%s", prefix, names[i].ending, replaced);
    }
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
        if (files->fds[i] >= 0) {
            (void)os_unlink(files->partials[i]);
            os_close(files->fds[i]);
        }
        free(files->paths[i]);
        free(files->partials[i]);
        free(files->replaced[i]);
    }
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
    const struct file_group group = set_of(files);
    if (!status) {
        status = file_group_commit(&group, files->made, error);
        for (uint32_t i = 0; i < files->count && !status; i++) { /* the partial files have their names */
            os_close(files->fds[i]);
            files->fds[i] = -1;
        }
    }
    train_files_abort(files);
    return status;
}

const char *train_files_name(const struct train_files *files, uint32_t i)
{
    return i < files->count ? files->paths[i] : i < 2 * files->count ? files->partials[i - files->count] : NULL;
}
