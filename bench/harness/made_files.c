/* SPDX-License-Identifier: MIT */
/* made_files.c - see made_files.h. */
#include "made_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "platform/os.h"

#define SUFFIX_MOST 32 /* room for ".tmx.partial" and the like */

struct made_files {
    char id[32];
    char tree[BENCH_PATH]; /* the folder of made_tree(), or "" */
    char **paths;
    size_t count, capacity;
};

/* Returns the list, which the first call creates; NULL without memory. */
static struct made_files *made_list(struct bench *bench)
{
    if (!bench->made) {
        bench->made = calloc(1, sizeof *bench->made);
        if (bench->made)
            (void)snprintf(bench->made->id, sizeof bench->made->id, "%" PRIx64, os_clock_ns());
    }
    return bench->made;
}

int made_path(struct bench *bench, const char *name, char path[BENCH_PATH])
{
    const struct made_files *made = made_list(bench);
    if (!made)
        return bench_no_memory(bench);
    const int length = snprintf(path, BENCH_PATH, "%s/tokmap-bench-%s-%s", bench->options.folder, made->id, name);
    if (length > 0 && length < BENCH_PATH - SUFFIX_MOST)
        return CLI_DONE;
    return bench_failed_system(bench, ENAMETOOLONG, bench->options.folder,
                               "The paths of files in this folder would be too long; give a shorter --dir.");
}

int made_add(struct bench *bench, const char *path)
{
    struct made_files *made = made_list(bench);
    if (made && made->count == made->capacity) {
        const size_t capacity = made->capacity ? 2 * made->capacity : 64;
        char **grown = realloc(made->paths, capacity * sizeof *grown);
        if (!grown)
            return bench_no_memory(bench);
        made->paths = grown;
        made->capacity = capacity;
    }
    char *copy = made ? strdup(path) : NULL;
    if (!copy)
        return bench_no_memory(bench);
    made->paths[made->count++] = copy;
    return CLI_DONE;
}

int made_file(struct bench *bench, const char *name, char path[BENCH_PATH])
{
    const int result = made_path(bench, name, path);
    return result ? result : made_add(bench, path);
}

int made_folder(struct bench *bench, const char *name, char path[BENCH_PATH])
{
    const int result = made_file(bench, name, path);
    const int system = result ? 0 : os_make_folder(path);
    return system ? bench_failed_system(bench, system, path, "The folder cannot be created.") : result;
}

int made_tree(struct bench *bench, const char *name, char path[BENCH_PATH])
{
    const int result = made_folder(bench, name, path);
    if (!result)
        (void)snprintf(bench->made->tree, sizeof bench->made->tree, "%s", path);
    return result;
}

int made_shard(struct bench *bench, const char *name, char prefix[BENCH_PATH])
{
    static const char *const endings[] = {".bin", ".tmx", ".mask"}; /* a shard need not have the last */
    int result = made_path(bench, name, prefix);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0] && !result; i++) {
        char path[BENCH_PATH + 8];
        (void)snprintf(path, sizeof path, "%s%s", prefix, endings[i]);
        result = made_add(bench, path);
    }
    return result;
}

struct removal {
    const char *folder;
    unsigned depth;
};

static void folder_empty(const char *path, unsigned depth);

static int entry_remove(void *user, const char *name)
{
    const struct removal *removal = user;
    char path[BENCH_PATH];
    if (snprintf(path, sizeof path, "%s/%s", removal->folder, name) >= BENCH_PATH)
        return 0;                    /* too long for us; the folder then stays */
    if (os_unlink(path) == EISDIR) { /* links are removed, not followed */
        folder_empty(path, removal->depth + 1);
        (void)os_remove_folder(path);
    }
    return 0;
}

/* Removes what a folder contains, down to a depth that no converted data has. */
static void folder_empty(const char *path, unsigned depth)
{
    struct removal removal = {path, depth};
    if (depth < 32)
        (void)os_folder_list(path, entry_remove, &removal);
}

void made_tree_empty(struct bench *bench)
{
    if (bench->made && *bench->made->tree)
        folder_empty(bench->made->tree, 0);
}

static void remove_at(struct made_files *made, size_t i, bool keep)
{
    if (!keep && !strcmp(made->paths[i], made->tree))
        folder_empty(made->tree, 0);
    if (!keep && os_unlink(made->paths[i]) == EISDIR)
        (void)os_remove_folder(made->paths[i]);
    free(made->paths[i]);
    made->paths[i] = made->paths[--made->count];
}

void made_file_remove(struct bench *bench, const char *path)
{
    struct made_files *made = bench->made;
    for (size_t i = made ? made->count : 0; i-- > 0;)
        if (!strcmp(made->paths[i], path))
            remove_at(made, i, bench->options.keep);
}

void made_files_remove(struct bench *bench)
{
    struct made_files *made = bench->made;
    while (made && made->count) /* files before the folder that they are in, which was added before them */
        remove_at(made, made->count - 1, bench->options.keep);
    if (made)
        free(made->paths);
    free(made);
    bench->made = NULL;
}
