/* output_folder.c - see output_folder.h. */
#include "output_folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

/* The folders that this process has made, each after the one that contains it. */
static struct {
    char **paths;
    size_t count;
} made;

static bool is_folder(const char *path)
{
    struct os_stat found;
    return !os_stat(path, &found) && found.kind == OS_KIND_FOLDER;
}

/* Makes one folder and remembers it. Another process may make it at the same time. */
static int folder_make(const char *path)
{
    char **grown = realloc(made.paths, (made.count + 1) * sizeof *made.paths);
    if (!grown)
        return ENOMEM;
    made.paths = grown;
    char *copy = strdup(path);
    if (!copy)
        return ENOMEM;
    const int system = os_make_folder(path);
    if (system) {
        free(copy);
        return system == EEXIST && is_folder(path) ? 0 : system;
    }
    made.paths[made.count++] = copy;
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

/* Makes a folder that may be missing, from the outermost one on. The path is changed meanwhile. */
static enum tokmap_status folders_make(char *path, struct tokmap_error *error)
{
    int system = 0;
    for (char *end = strchr(path + 1, '/');; end = strchr(end + 1, '/')) {
        if (end)
            *end = '\0';
        if (!is_folder(path))
            system = folder_make(path);
        if (system)
            return folder_failed(path, system, error);
        if (!end)
            return TOKMAP_OK;
        *end = '/';
    }
}

enum tokmap_status cli_output_folder(const char *output, struct tokmap_error *error)
{
    if (strstr(output, "://"))
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, output, TOKMAP_NO_OFFSET,
                         "the output is written to files of this machine; give the path of one, and copy the result");
    char *folder = path_folder(output);
    if (!folder)
        return error_set_memory(error, "a path", strlen(output));
    const enum tokmap_status status = is_folder(folder) ? TOKMAP_OK : folders_make(folder, error);
    free(folder);
    return status;
}

void cli_output_folders_remove(void)
{
    while (made.count) {
        char *path = made.paths[--made.count];
        (void)os_remove_folder(path);
        free(path);
    }
    free(made.paths);
    made.paths = NULL;
}
