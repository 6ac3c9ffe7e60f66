/* output_folder.c - see output_folder.h. */
#include "output_folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

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
