/* SPDX-License-Identifier: MIT */
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
    size_t scheme = 0;
    while ((path[scheme] >= 'a' && path[scheme] <= 'z') || (scheme && path[scheme] >= '0' && path[scheme] <= '9'))
        scheme++;
    return *path == '/' || (scheme && !strncmp(path + scheme, "://", 3));
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

char *path_ended(const char *path, const char *ending)
{
    return path_join("", 0, path, strlen(path), ending);
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

/* Takes the next part of a path, without slashes and without parts that are ".". Returns its length, 0 at the end. */
static size_t part_next(const char **at, const char **part)
{
    for (;;) {
        *at += strspn(*at, "/");
        const size_t length = strcspn(*at, "/");
        *part = *at;
        *at += length;
        if (length != 1 || **part != '.')
            return length;
    }
}

bool path_relative(const char *from, const char *file, char **relative)
{
    const char *from_at = from, *file_at = file, *a, *b, *file_rest = file;
    size_t from_length, file_length, ups = 0;
    *relative = NULL;
    for (;;) {
        file_rest = file_at;
        from_length = part_next(&from_at, &a);
        file_length = part_next(&file_at, &b);
        const char *after = file_at;
        /* The last part of `file` is its name, and never a folder in common. */
        if (!from_length || from_length != file_length || memcmp(a, b, from_length) != 0 || !strspn(after, "/"))
            break;
    }
    for (; from_length; from_length = part_next(&from_at, &a), ups++)
        if (from_length == 2 && !memcmp(a, "..", 2))
            return false;
    file_rest += strspn(file_rest, "/");
    const size_t room = 3 * ups + strlen(file_rest) + 1;
    char *made = malloc(room);
    for (size_t i = 0; made && i < ups; i++)
        memcpy(made + 3 * i, "../", 3);
    if (made)
        memcpy(made + 3 * ups, file_rest, strlen(file_rest) + 1);
    *relative = made;
    return true;
}

bool path_ends_in(const char *path, size_t bytes, const char *ending)
{
    const size_t count = strlen(ending);
    return bytes > count && !memcmp(path + bytes - count, ending, count);
}

int path_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *path_user_cache(void)
{
    static const char *const names[][2] = {
        {"TOKMAP_CACHE", ""}, {"XDG_CACHE_HOME", "/tokmap"}, {"HOME", "/.cache/tokmap"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = secure_getenv(names[i][0]);
        if (value && *value)
            return path_ended(value, names[i][1]);
    }
    return NULL;
}
