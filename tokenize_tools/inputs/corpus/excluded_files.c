/* SPDX-License-Identifier: MIT */
#include "excluded_files.h"

#include <stdlib.h>

#include "text/path.h"

enum tokmap_status excluded_files_add(struct excluded_files *excluded, const char *path, struct tokmap_error *error)
{
    struct os_stat found;
    if (os_stat(path, &found))
        return TOKMAP_OK;
    for (size_t i = 0; i < excluded->count; i++)
        if (excluded->list[i].device == found.device && excluded->list[i].inode == found.inode)
            return TOKMAP_OK;
    if (excluded->count == EXCLUDED_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "more than %d files are excluded from the inputs; this is a bug in tokmap, please report it",
                         EXCLUDED_MOST);
    excluded->list[excluded->count++] = found;
    return TOKMAP_OK;
}

/* Returns true if a file, or the folder that it is in, was added. */
static bool is_listed(const struct excluded_files *excluded, const char *path, const struct os_stat *own)
{
    char *folder = path_folder(path);
    struct os_stat holder = {0};
    const bool known = folder && !os_stat(folder, &holder);
    free(folder);
    for (size_t i = 0; i < excluded->count; i++) {
        const struct os_stat *one = &excluded->list[i], *other = one->kind == OS_KIND_FOLDER ? &holder : own;
        if ((known || other == own) && other->device == one->device && other->inode == one->inode)
            return true;
    }
    return false;
}

enum tokmap_status excluded_kind_error(enum excluded_kind kind, const char *shown, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, shown, TOKMAP_NO_OFFSET, "%s",
                     kind == EXCLUDED_OUTPUT
                         ? "this input is an output of the same command; write it outside of the inputs' folder"
                         : "this input is a file of an older output of this name; leave it out with --exclude, "
                           "or write the output outside of the inputs' folder");
}

enum tokmap_status excluded_files_check(const struct excluded_files *excluded, const char *path,
                                        const struct os_stat *own, const char *shown, struct tokmap_error *error)
{
    const enum excluded_kind kind = is_listed(excluded, path, own) ? EXCLUDED_OUTPUT
                                    : excluded->kind_of            ? excluded->kind_of(excluded->user, path)
                                                                   : EXCLUDED_NOT;
    return kind ? excluded_kind_error(kind, shown, error) : TOKMAP_OK;
}
