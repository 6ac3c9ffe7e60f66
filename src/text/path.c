#include "path.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

size_t path_folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

const char *path_name(const char *path)
{
    return path + path_folder_bytes(path);
}

bool path_is_absolute(const char *path)
{
    return path[0] == '/';
}

char *path_join(const char *folder, size_t folder_bytes, const char *name, size_t name_bytes, const char *ending)
{
    assert(name && ending && (folder || !folder_bytes));
    const size_t ending_bytes = strlen(ending);
    char *path = malloc(folder_bytes + 1 + name_bytes + ending_bytes + 1), *at = path;
    if (!path)
        return NULL;
    if (folder_bytes) {
        memcpy(at, folder, folder_bytes);
        at += folder_bytes;
        if (at[-1] != '/')
            *at++ = '/';
    }
    memcpy(at, name, name_bytes);
    memcpy(at + name_bytes, ending, ending_bytes + 1);
    return path;
}

char *path_in(const char *folder, const char *name)
{
    return path_join(folder, strlen(folder), name, strlen(name), "");
}

char *path_beside(const char *file, const char *name)
{
    return path_join(file, path_folder_bytes(file), name, strlen(name), "");
}

char *path_folder(const char *path)
{
    const size_t bytes = path_folder_bytes(path);
    return bytes ? strndup(path, bytes > 1 ? bytes - 1 : 1) : strdup(".");
}
