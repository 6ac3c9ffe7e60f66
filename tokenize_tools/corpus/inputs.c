/* inputs.c - see inputs.h. Folders are walked with a stack of sorted lists, one per folder on the current path. */
#include "inputs.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"

/* A list of names, sorted when it is complete. */
struct names {
    char **names;
    size_t count, capacity;
};

/* A folder on the current path. Names of its subfolders end with '/', so that sorting the names sorts the paths. */
struct level {
    struct names names;
    size_t next;
    size_t path_bytes; /* length of the folder's path in inputs->path, with the slash */
};

struct inputs {
    const char *const *operands;
    size_t operand_count, operand_next;
    struct names matches; /* of the current operand, if it is a pattern */
    size_t match_next;
    struct level *levels;
    size_t depth, level_capacity;
    bool found_any; /* the folder that an operand names has at least one file */
    char *path;
    size_t path_bytes, path_capacity;
};

static void names_clear(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    memset(names, 0, sizeof *names);
}

static int names_add(struct names *names, const char *first, size_t first_bytes, const char *second)
{
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity ? 2 * names->capacity : 64;
        char **grown = realloc(names->names, capacity * sizeof *grown);
        if (!grown)
            return ENOMEM;
        names->names = grown;
        names->capacity = capacity;
    }
    const size_t second_bytes = strlen(second);
    char *name = malloc(first_bytes + second_bytes + 2); /* level_filter() may append a slash */
    if (!name)
        return ENOMEM;
    if (first_bytes)
        memcpy(name, first, first_bytes);
    memcpy(name + first_bytes, second, second_bytes + 1);
    names->names[names->count++] = name;
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_sort(struct names *names)
{
    if (names->count)
        qsort(names->names, names->count, sizeof *names->names, compare);
}

static int name_collect(void *user, const char *name)
{
    return names_add(user, NULL, 0, name);
}

enum tokmap_status inputs_new(struct inputs **inputs, const char *const *operands, size_t count,
                              struct tokmap_error *error)
{
    *inputs = calloc(1, sizeof **inputs);
    if (!*inputs)
        return error_set_memory(error, "the list of inputs", sizeof **inputs);
    (*inputs)->operands = operands;
    (*inputs)->operand_count = count;
    return TOKMAP_OK;
}

static void levels_clear(struct inputs *inputs)
{
    while (inputs->depth)
        names_clear(&inputs->levels[--inputs->depth].names);
}

void inputs_free(struct inputs *inputs)
{
    if (!inputs)
        return;
    levels_clear(inputs);
    names_clear(&inputs->matches);
    free(inputs->levels);
    free(inputs->path);
    free(inputs);
}

/* Sets the path to its first `keep` bytes followed by the name. Returns false if there is not enough memory. */
static bool path_set(struct inputs *inputs, size_t keep, const char *name)
{
    const size_t bytes = strlen(name);
    assert(keep <= inputs->path_bytes);
    if (keep + bytes + 2 > inputs->path_capacity) {
        const size_t capacity = 2 * (keep + bytes) + 64;
        char *grown = realloc(inputs->path, capacity);
        if (!grown)
            return false;
        inputs->path = grown;
        inputs->path_capacity = capacity;
    }
    memcpy(inputs->path + keep, name, bytes + 1);
    inputs->path_bytes = keep + bytes;
    return true;
}

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "the list of inputs", 0);
}

/* Keeps the folders, to whose names it appends a slash, and the regular files; removes other names. inputs->path is the
 * path of the folder that contains them, with a slash. Returns 0 or an errno value. */
static int level_filter(struct inputs *inputs, struct names *names)
{
    const size_t base = inputs->path_bytes;
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        char *name = names->names[i];
        struct os_stat found;
        if (!path_set(inputs, base, name))
            return ENOMEM;
        /* A file that was removed after the folder was listed is ignored. A name that cannot be examined is kept, so
         * that the error appears when it is opened. */
        const int system = os_lstat(inputs->path, &found);
        const bool folder = !system && found.kind == OS_KIND_FOLDER;
        if (system == ENOENT || (!system && !folder && found.kind != OS_KIND_FILE)) {
            free(name);
            continue;
        }
        if (folder)
            memcpy(name + strlen(name), "/", 2);
        names->names[kept++] = name;
    }
    names->count = kept;
    inputs->path_bytes = base;
    inputs->path[base] = '\0';
    return 0;
}

/* Reads the folder at inputs->path and pushes it on the stack. */
static enum tokmap_status folder_enter(struct inputs *inputs, struct tokmap_error *error)
{
    assert(inputs->path_bytes);
    if (inputs->depth == inputs->level_capacity) {
        const size_t capacity = inputs->level_capacity ? 2 * inputs->level_capacity : 16;
        struct level *grown = realloc(inputs->levels, capacity * sizeof *grown);
        if (!grown)
            return no_memory(error);
        inputs->levels = grown;
        inputs->level_capacity = capacity;
    }
    struct level *level = &inputs->levels[inputs->depth];
    memset(level, 0, sizeof *level);
    int system = os_folder_list(inputs->path, name_collect, &level->names);
    if (!system && inputs->path[inputs->path_bytes - 1] != '/' && !path_set(inputs, inputs->path_bytes, "/"))
        system = ENOMEM;
    if (!system)
        system = level_filter(inputs, &level->names);
    if (system) {
        names_clear(&level->names);
        return error_set_system(error, system, inputs->path, TOKMAP_NO_OFFSET, "the folder cannot be read");
    }
    names_sort(&level->names);
    level->path_bytes = inputs->path_bytes;
    inputs->depth++;
    return TOKMAP_OK;
}

/* Sets the path to the next file of the folders on the stack. Returns END if the stack is empty. */
static enum tokmap_status folders_next(struct inputs *inputs, struct tokmap_error *error)
{
    while (inputs->depth) {
        struct level *level = &inputs->levels[inputs->depth - 1];
        if (level->next == level->names.count) {
            const size_t own = level->path_bytes;
            names_clear(&level->names);
            inputs->depth--;
            if (!inputs->depth && !inputs->found_any) {
                inputs->path[own > 1 ? own - 1 : own] = '\0';
                return error_set(error, TOKMAP_ERROR_NOT_FOUND, inputs->path, TOKMAP_NO_OFFSET,
                                 "the folder contains no regular files, and symbolic links are not followed; name a "
                                 "folder that contains texts");
            }
            continue;
        }
        const char *name = level->names.names[level->next++];
        if (!path_set(inputs, level->path_bytes, name))
            return no_memory(error);
        if (inputs->path[inputs->path_bytes - 1] != '/') {
            inputs->found_any = true;
            return TOKMAP_OK;
        }
        const enum tokmap_status status = folder_enter(inputs, error);
        if (status) {
            inputs->found_any = true; /* the folder that cannot be read may contain files */
            return status;
        }
    }
    return TOKMAP_END;
}

struct match {
    struct names *into;
    const char *prefix, *pattern;
    size_t prefix_bytes;
};

static int name_collect_match(void *user, const char *name)
{
    const struct match *match = user;
    if (fnmatch(match->pattern, name, FNM_PERIOD))
        return 0;
    return names_add(match->into, match->prefix, match->prefix_bytes, name);
}

/* Expands one more component of a pattern: appends to `into` the matches of the component below each path of `from`.
 * These paths are empty or end with '/'. Returns 0 or an errno value. */
static int component_expand(const struct names *from, const char *component, bool last, struct names *into)
{
    for (size_t i = 0; i < from->count; i++) {
        const char *prefix = from->names[i];
        struct names found = {0};
        struct match match = {&found, prefix, component, strlen(prefix)};
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
            if (os_stat(found.names[k], &stat) || (!last && stat.kind != OS_KIND_FOLDER))
                continue;
            system = names_add(into, found.names[k], strlen(found.names[k]), last ? "" : "/");
        }
        names_clear(&found);
        if (system)
            return system;
    }
    return 0;
}

/* Expands a pattern, component by component, to a sorted list. Returns 0 or an errno value. */
static int pattern_expand(const char *pattern, struct names *matches)
{
    struct names from = {0};
    const size_t root = strspn(pattern, "/");
    int system = names_add(&from, pattern, root, "");
    char *copy = strdup(pattern + root);
    if (!copy)
        system = ENOMEM;
    for (char *component = copy; component && !system;) {
        char *slash = strchr(component, '/');
        char *next = slash ? slash + strspn(slash, "/") : NULL;
        if (slash)
            *slash = '\0';
        const bool last = !next || !*next;
        struct names into = {0};
        system = component_expand(&from, component, last, &into);
        names_clear(&from);
        from = into;
        component = last ? NULL : next;
    }
    free(copy);
    if (system) {
        names_clear(&from);
        return system;
    }
    names_sort(&from);
    *matches = from;
    return 0;
}

/* Begins with an operand that is not a pattern, or with a match of a pattern: sets the path to it, or to the first file
 * if it is a folder. */
static enum tokmap_status path_begin(struct inputs *inputs, const char *path, struct tokmap_error *error)
{
    struct os_stat stat;
    if (!path_set(inputs, 0, path))
        return no_memory(error);
    inputs->found_any = false;
    if (strcmp(path, "-") && !os_stat(path, &stat) && stat.kind == OS_KIND_FOLDER) {
        const enum tokmap_status status = folder_enter(inputs, error);
        return status ? status : folders_next(inputs, error);
    }
    return TOKMAP_OK; /* if the file does not exist, opening it reports that */
}

static enum tokmap_status operand_begin(struct inputs *inputs, const char *operand, struct tokmap_error *error)
{
    struct os_stat stat;
    if (!*operand)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                         "the name of an input is empty; name a file, a folder, or -");
    if (!strcmp(operand, "-") || !strpbrk(operand, "*?[") || !os_lstat(operand, &stat))
        return path_begin(inputs, operand, error);
    const int system = pattern_expand(operand, &inputs->matches);
    inputs->match_next = 0;
    if (system)
        return no_memory(error);
    if (!inputs->matches.count)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, operand, TOKMAP_NO_OFFSET,
                         "no file matches this pattern; check the path with 'ls'");
    return path_begin(inputs, inputs->matches.names[inputs->match_next++], error);
}

enum tokmap_status inputs_next(struct inputs *inputs, const char **path, struct tokmap_error *error)
{
    enum tokmap_status status = inputs->depth ? folders_next(inputs, error) : TOKMAP_END;
    while (status == TOKMAP_END) {
        if (inputs->match_next < inputs->matches.count) {
            status = path_begin(inputs, inputs->matches.names[inputs->match_next++], error);
        } else if (inputs->operand_next < inputs->operand_count) {
            names_clear(&inputs->matches);
            inputs->match_next = 0;
            status = operand_begin(inputs, inputs->operands[inputs->operand_next++], error);
        } else {
            return TOKMAP_END;
        }
    }
    *path = inputs->path;
    return status;
}
