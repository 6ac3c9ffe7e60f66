/* SPDX-License-Identifier: MIT */
/*
 * path_glob.c - see path_glob.h. Components are compared with fnmatch(3). After a mismatch, only the last component of
 * two stars is given one more component of the path: an earlier one cannot do better, so the time is at most the
 * product of both lengths.
 */
#include "path_glob.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#define COMPONENT_MOST 512 /* bytes; the kernel allows 255 in a name */

/* Sets *bytes to the length of the component at `at`, and returns where the next one begins, or NULL. */
static const char *component_end(const char *at, size_t *bytes)
{
    *bytes = strcspn(at, "/");
    const char *next = at + *bytes + strspn(at + *bytes, "/");
    return *next ? next : NULL;
}

static bool component_matches(const char *glob, size_t glob_bytes, const char *name, size_t name_bytes)
{
    char pattern[COMPONENT_MOST], text[COMPONENT_MOST];
    if (glob_bytes >= sizeof pattern || name_bytes >= sizeof text)
        return false;
    memcpy(pattern, glob, glob_bytes);
    pattern[glob_bytes] = '\0';
    memcpy(text, name, name_bytes);
    text[name_bytes] = '\0';
    return !fnmatch(pattern, text, 0);
}

/* Compares all components. part: a glob that ends before the path does matches, too. */
static bool path_matches(const char *glob, const char *path, bool part)
{
    const char *star_glob = NULL, *star_path = NULL; /* after the last two stars, and where they may begin next */
    while (path && (glob || star_glob)) {
        size_t glob_bytes = 0, path_bytes;
        const char *next_glob = glob ? component_end(glob, &glob_bytes) : NULL;
        const char *next_path = component_end(path, &path_bytes);
        if (glob && glob_bytes == 2 && !memcmp(glob, "**", 2)) {
            if (!next_glob)
                return true;
            glob = star_glob = next_glob;
            star_path = path;
            continue;
        }
        if (glob && component_matches(glob, glob_bytes, path, path_bytes)) {
            if (part && !next_glob)
                return true;
            glob = next_glob;
            path = next_path;
            continue;
        }
        if (!star_glob)
            return false;
        size_t skipped;
        star_path = component_end(star_path, &skipped);
        path = star_path;
        glob = star_glob;
    }
    /* Two stars match nothing, too. */
    while (!path && glob) {
        size_t bytes;
        const char *next = component_end(glob, &bytes);
        if (bytes != 2 || memcmp(glob, "**", 2) != 0)
            return false;
        glob = next;
    }
    return !path;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns the glob without slashes at its start, and whether it is one for whole paths. */
static const char *glob_begin(const char *glob, bool *whole)
{
    *whole = strchr(glob, '/') != NULL;
    return glob + strspn(glob, "/");
}

bool path_glob_file(const char *glob, const char *path)
{
    bool whole;
    glob = glob_begin(glob, &whole);
    path += strspn(path, "/");
    if (!whole) {
        const char *name = name_of(path);
        return component_matches(glob, strlen(glob), name, strlen(name));
    }
    return *glob && *path && path_matches(glob, path, false);
}

bool path_glob_tree(const char *glob, const char *path)
{
    bool whole;
    glob = glob_begin(glob, &whole);
    path += strspn(path, "/");
    if (whole)
        return *glob && *path && path_matches(glob, path, true);
    for (const char *at = *path ? path : NULL; at;) {
        size_t bytes;
        const char *next = component_end(at, &bytes);
        if (component_matches(glob, strlen(glob), at, bytes))
            return true;
        at = next;
    }
    return false;
}
