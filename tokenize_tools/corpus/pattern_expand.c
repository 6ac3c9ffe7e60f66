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
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"

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

/* Appends to `into` the folders below into->names[at], one level. */
static int folders_add(struct names *into, size_t at, size_t from, bool hidden)
{
    const char *prefix = into->names[at];
    struct names found = {0};
    struct match match = {&found, prefix, NULL, strlen(prefix), hidden};
    int system = os_folder_list(*prefix ? prefix : ".", name_collect_plain, &match);
    if (system != ENOMEM)
        system = 0; /* a folder that cannot be listed has no matches */
    for (size_t i = 0; i < found.count && !system; i++) {
        struct os_stat link, stat;
        if (os_lstat(found.names[i], &link) || (link.kind != OS_KIND_FOLDER && link.kind != OS_KIND_LINK))
            continue;
        if (os_stat(found.names[i], &stat) || stat.kind != OS_KIND_FOLDER)
            continue;
        if (link.kind == OS_KIND_LINK && leads_back(found.names[i], from, &stat))
            continue;
        system = names_add(into, found.names[i], strlen(found.names[i]), "/");
    }
    names_clear(&found);
    return system;
}

/* Expands a component of two stars: each path of `from`, and all folders below it. */
static int stars_expand(const struct names *from, bool hidden, struct names *into)
{
    int system = 0;
    for (size_t i = 0; i < from->count && !system; i++) {
        const size_t first = into->count, bytes = strlen(from->names[i]);
        system = names_add(into, from->names[i], bytes, "");
        for (size_t at = first; at < into->count && !system; at++)
            system = folders_add(into, at, bytes ? bytes - 1 : 0, hidden);
    }
    return system;
}

/* Expands one more component of a pattern: appends to `into` the matches of the component below each path of `from`.
 * These paths are empty or end with '/'. */
static int component_expand(const struct names *from, const char *component, bool last, bool hidden, struct names *into)
{
    for (size_t i = 0; i < from->count; i++) {
        const char *prefix = from->names[i];
        struct names found = {0};
        struct match match = {&found, prefix, component, strlen(prefix), hidden};
        int system = 0;
        if (strpbrk(component, "*?[")) {
            system = os_folder_list(*prefix ? prefix : ".", name_collect_match, &match);
            if (system != ENOMEM)
                system = 0; /* a folder that cannot be listed has no matches */
        } else {
            system = names_add(&found, prefix, match.prefix_bytes, component);
        }
        for (size_t k = 0; k < found.count && !system; k++) {
            struct os_stat stat;
            /* A symbolic link whose target is missing matches as a file, so that its absence is reported. */
            const bool exists = !os_stat(found.names[k], &stat);
            if (!exists && (!last || os_lstat(found.names[k], &stat)))
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

int pattern_expand(const char *pattern, bool hidden, struct names *matches, uint64_t *folders)
{
    struct names from = {0};
    const size_t root = strspn(pattern, "/");
    bool stars = false;
    int system = names_add(&from, pattern, root, "");
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
        if (double_star)
            system = stars_expand(&from, hidden, &into);
        else
            system = component_expand(&from, component, last, hidden, &into);
        stars |= double_star;
        names_clear(&from);
        from = into;
        if (double_star && last && !system) {
            struct names files = {0};
            system = component_expand(&from, "*", true, hidden, &files);
            names_clear(&from);
            from = files;
        }
        component = last ? NULL : next;
    }
    free(copy);
    if (system) {
        names_clear(&from);
        return system;
    }
    names_sort(&from);
    names_unique(&from);
    *folders = stars ? folders_remove(&from) : 0;
    *matches = from;
    return 0;
}
