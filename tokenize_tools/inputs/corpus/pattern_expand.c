/* SPDX-License-Identifier: MIT */
/*
 * pattern_expand.c - see pattern_expand.h.
 *
 * A pattern is expanded component by component: a list of the paths that match its first components becomes the list
 * of those that match one more. A component of two stars replaces each folder by itself and all folders below it. A
 * symbolic link to a folder is followed like the folder, but not if that folder contains the link, which would never
 * end; only links are compared with the folders above them, because nothing else can lead back.
 */
#include "pattern_expand.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "known_paths.h"
#include "platform/os.h"
#include "text/path.h"

struct match {
    struct names *into;
    const char *prefix, *pattern;
    size_t prefix_bytes;
    bool hidden;
};

static int name_collect_match(void *user, const char *name)
{
    const struct match *match = user;
    if (fnmatch(match->pattern, name, match->hidden ? 0 : FNM_PERIOD))
        return 0;
    return names_add(match->into, match->prefix, match->prefix_bytes, name);
}

static int name_collect_plain(void *user, const char *name)
{
    const struct match *match = user;
    if (*name == '.' && !match->hidden)
        return 0;
    return names_add(match->into, match->prefix, match->prefix_bytes, name);
}

/* Returns true if the folder is the same as one of those above it: the prefixes of `path` that end with a slash, from
 * byte `from` on. */
static bool leads_back(char *path, size_t from, const struct os_stat *folder)
{
    for (char *slash = path + from; *slash; slash++) {
        struct os_stat above;
        const char kept = *slash;
        if (kept != '/' && slash != path)
            continue;
        *slash = '\0';
        const bool same = !os_stat(*path         ? path
                                   : kept == '/' ? "/"
                                                 : ".",
                                   &above) &&
                          above.device == folder->device && above.inode == folder->inode;
        *slash = kept;
        if (same)
            return true;
    }
    return false;
}

struct expansion {
    bool hidden;
    bool (*stop)(void *user); /* may be NULL */
    void *user;
    struct known_paths linked; /* "device inode number" for each path through a symbolic link to a folder */
    struct pattern_matches *matches;
};

static bool is_stopped(const struct expansion *expansion)
{
    return expansion->stop && expansion->stop(expansion->user);
}

/* Counts a path through a symbolic link to a folder. Links can lead to the same folders on many more paths than there
 * are folders: among 10 folders that each have a link to every other one, there are more than 9 million. Returns 0,
 * ENOMEM, or ELOOP if there are too many. */
static int linked_count(struct expansion *expansion, const char *path, const struct os_stat *folder)
{
    for (int i = 0; i < PATTERN_LINKED_MOST; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%" PRIx64 " %" PRIx64 " %d", folder->device, folder->inode, i);
        const enum known_paths_result result = known_paths_add(&expansion->linked, text, true);
        if (result != PATH_KNOWN)
            return result == PATH_NEW ? 0 : ENOMEM;
    }
    return names_add(&expansion->matches->paths, path, strlen(path), "") ? ENOMEM : ELOOP;
}

/* Notes that a name in a folder could not be examined, or the folder not be listed. What does not exist is not a fault,
 * and a link that leads nowhere is not either. path: of the folder; empty, or ends with a slash. Returns 0 or ENOMEM.
 */
static int unreadable_note(struct expansion *expansion, const char *path, int system)
{
    if (!system || system == ENOENT || system == ENOTDIR || system == ELOOP)
        return 0;
    expansion->matches->system = system;
    return names_add(&expansion->matches->unreadable, path, strlen(path), *path ? "" : ".");
}

/* Lists a folder, whose path is empty or ends with a slash. Returns 0 or ENOMEM. */
static int folder_collect(struct expansion *expansion, const char *path, int (*collect)(void *user, const char *name),
                          struct match *match)
{
    const int system = os_folder_list(*path ? path : ".", collect, match);
    if (!system || system == ENOMEM)
        return system;
    names_clear(match->into); /* of a folder that was listed in part */
    return unreadable_note(expansion, path, system);
}

/* Result of stars_expand(): the folders, and for each whether its path passes a symbolic link. */
struct folders {
    struct names names;
    bool *through_link;
    uint64_t capacity;
};

static int folder_add(struct folders *folders, const char *path, const char *end, bool through_link)
{
    if (!list_room(&folders->through_link, folders->names.count, &folders->capacity, sizeof *folders->through_link))
        return ENOMEM;
    folders->through_link[folders->names.count] = through_link;
    return names_add(&folders->names, path, strlen(path), end);
}

/* Appends to `into` the folders below its folder `at`, one level. from: bytes of the path that are not looked at for
 * a folder to which a link leads back. */
static int folders_add(struct expansion *expansion, struct folders *into, size_t at, size_t from)
{
    const char *prefix = into->names.names[at];
    struct names found = {0};
    struct match match = {&found, prefix, NULL, strlen(prefix), expansion->hidden};
    int system = folder_collect(expansion, prefix, name_collect_plain, &match);
    for (size_t i = 0; i < found.count && !system; i++) {
        struct os_stat link, stat;
        int examined = os_lstat(found.names[i], &link);
        if (!examined && link.kind != OS_KIND_FOLDER && link.kind != OS_KIND_LINK)
            continue;
        if (!examined)
            examined = os_stat(found.names[i], &stat);
        system = unreadable_note(expansion, prefix, examined);
        if (system || examined || stat.kind != OS_KIND_FOLDER)
            continue;
        if (link.kind == OS_KIND_LINK && leads_back(found.names[i], from, &stat))
            continue;
        const bool through_link = into->through_link[at] || link.kind == OS_KIND_LINK;
        if (through_link)
            system = linked_count(expansion, found.names[i], &stat);
        if (!system)
            system = folder_add(into, found.names[i], "/", through_link);
    }
    names_clear(&found);
    return system;
}

/* Expands a component of two stars: each path of `from`, and all folders below it. */
static int stars_expand(struct expansion *expansion, const struct names *from, struct names *into)
{
    struct folders folders = {.names = {0}};
    int system = 0;
    for (size_t i = 0; i < from->count && !system; i++) {
        const size_t first = folders.names.count, bytes = strlen(from->names[i]);
        system = folder_add(&folders, from->names[i], "", false);
        for (size_t at = first; at < folders.names.count && !system; at++)
            system = is_stopped(expansion) ? EINTR : folders_add(expansion, &folders, at, bytes ? bytes - 1 : 0);
        /* Another path of `from` may lead to the same folders by the same links. */
        known_paths_free(&expansion->linked);
    }
    free(folders.through_link);
    *into = folders.names;
    return system;
}

/* Expands one more component of a pattern: appends to `into` the matches of the component below each path of `from`.
 * These paths are empty or end with '/'. */
static int component_expand(struct expansion *expansion, const struct names *from, const char *component, bool last,
                            struct names *into)
{
    for (size_t i = 0; i < from->count; i++) {
        const char *prefix = from->names[i];
        struct names found = {0};
        struct match match = {&found, prefix, component, strlen(prefix), expansion->hidden};
        int system = 0;
        if (is_stopped(expansion))
            return EINTR;
        if (strpbrk(component, "*?[")) {
            system = folder_collect(expansion, prefix, name_collect_match, &match);
        } else {
            system = names_add(&found, prefix, match.prefix_bytes, component);
        }
        for (size_t k = 0; k < found.count && !system; k++) {
            struct os_stat stat;
            int examined = os_stat(found.names[k], &stat);
            /* A symbolic link whose target is missing matches as a file, so that its absence is reported. */
            if (examined && last)
                examined = os_lstat(found.names[k], &stat);
            system = unreadable_note(expansion, prefix, examined);
            if (system || examined)
                continue;
            if (!last && stat.kind != OS_KIND_FOLDER)
                continue;
            system = names_add(into, found.names[k], strlen(found.names[k]), last ? "" : "/");
        }
        names_clear(&found);
        if (system)
            return system;
    }
    return 0;
}

/* Removes the folders from the matches and returns how many there were. */
static uint64_t folders_remove(struct names *matches)
{
    size_t kept = 0;
    for (size_t i = 0; i < matches->count; i++) {
        struct os_stat stat;
        if (!os_stat(matches->names[i], &stat) && stat.kind == OS_KIND_FOLDER)
            free(matches->names[i]);
        else
            matches->names[kept++] = matches->names[i];
    }
    const uint64_t removed = matches->count - kept;
    matches->count = kept;
    return removed;
}

/* Removes names that are equal to the one before them. */
static void names_unique(struct names *names)
{
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (kept && !strcmp(names->names[kept - 1], names->names[i]))
            free(names->names[i]);
        else
            names->names[kept++] = names->names[i];
    }
    names->count = kept;
}

static int components_expand(struct expansion *expansion, const char *pattern, struct names *from, bool *stars)
{
    const size_t root = strspn(pattern, "/");
    int system = names_add(from, pattern, root, "");
    char *copy = strdup(pattern + root);
    if (!copy)
        system = ENOMEM;
    for (char *component = copy; component && !system;) {
        char *slash = strchr(component, '/');
        char *next = slash ? slash + strspn(slash, "/") : NULL;
        if (slash)
            *slash = '\0';
        const bool last = !next || !*next, double_star = !strcmp(component, "**");
        struct names into = {0};
        system = double_star ? stars_expand(expansion, from, &into)
                             : component_expand(expansion, from, component, last, &into);
        *stars |= double_star;
        names_clear(from);
        *from = into;
        /* Two components of two stars reach a folder in many ways. If each way were kept, the ways of further
         * components would multiply them. */
        if (*stars) {
            names_sort(from);
            names_unique(from);
        }
        if (double_star && last && !system) {
            struct names files = {0};
            system = component_expand(expansion, from, "*", true, &files);
            names_clear(from);
            *from = files;
        }
        component = last ? NULL : next;
    }
    free(copy);
    return system;
}

void pattern_matches_clear(struct pattern_matches *matches)
{
    names_clear(&matches->paths);
    names_clear(&matches->unreadable);
    matches->folders = 0;
}

int pattern_expand(const char *pattern, bool hidden, bool (*stop)(void *user), void *user,
                   struct pattern_matches *matches)
{
    struct expansion expansion = {.hidden = hidden, .stop = stop, .user = user, .matches = matches};
    struct names from = {0};
    bool stars = false;
    const int system = components_expand(&expansion, pattern, &from, &stars);
    known_paths_free(&expansion.linked);
    if (system) {
        names_clear(&from);
        return system;
    }
    names_sort(&from);
    names_unique(&from);
    names_sort(&matches->unreadable);
    names_unique(&matches->unreadable);
    matches->folders = stars ? folders_remove(&from) : 0;
    matches->paths = from;
    return 0;
}

/* ---- lists of names ---- */

void names_clear(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    memset(names, 0, sizeof *names);
}

int names_add(struct names *names, const char *first, size_t first_bytes, const char *second)
{
    if (!list_room(&names->names, names->count, &names->capacity, sizeof *names->names))
        return ENOMEM;
    const size_t second_bytes = strlen(second);
    char *name = malloc(first_bytes + second_bytes + 2);
    if (!name)
        return ENOMEM;
    if (first_bytes)
        memcpy(name, first, first_bytes);
    memcpy(name + first_bytes, second, second_bytes + 1);
    names->names[names->count++] = name;
    return 0;
}

void names_sort(struct names *names)
{
    if (names->count)
        qsort(names->names, names->count, sizeof *names->names, path_compare);
}
