/* excluded_files.c - see excluded_files.h. */
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

bool excluded_files_have(const struct excluded_files *excluded, const char *path, const struct os_stat *own)
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
