/* SPDX-License-Identifier: MIT */
#include "table_folders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "remote/remote_list.h"
#include "remote/remote_url.h"
#include "text/path.h"

#define LEVELS_MOST 8   /* folders that are looked at together */
#define THREADS_MOST 12 /* of object storage, where each look is a request */

bool table_mark(const char *name, size_t bytes)
{
    static const char *const marks[] = {"_SUCCESS", "_metadata", "_common_metadata", "_delta_log", "_spark_metadata"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (bytes == strlen(marks[i]) && !memcmp(name, marks[i], bytes))
            return true;
    return false;
}

/* What is looked for in a folder: a name with an ending; or NULL: a mark of tables, or a .parquet file. */
struct look {
    const char *folder, *ending;
};

/* Returns EEXIST for the name that is looked for. The name of an object may go on with a slash. */
static int name_look(void *user, const char *name)
{
    const struct look *look = user;
    const char *ending = look->ending ? look->ending : ".parquet";
    const size_t bytes = strcspn(name, "/"), length = strlen(ending);
    struct os_stat found = {.kind = OS_KIND_FILE};
    if (!look->ending && table_mark(name, bytes))
        return EEXIST;
    if (bytes < length || strncasecmp(name + bytes - length, ending, length) != 0)
        return 0;
    char *path = look->ending ? NULL : path_in(look->folder, name);
    if (path)
        (void)os_stat(path, &found);
    free(path);
    return !look->ending && (name[bytes] || found.kind == OS_KIND_FOLDER) ? 0 : EEXIST;
}

/* Looks for a name in the folder `name` of a folder. A folder that cannot be listed has none. */
static bool folder_has(const struct table_search *search, const char *folder, size_t bytes, const char *name,
                       const char *ending)
{
    char *inside = path_join(folder, bytes, name, strlen(name), *name ? "/" : "");
    struct look look = {inside && *inside ? inside : ".", ending};
    struct remote_list *list = NULL;
    int found = inside && !remote_kind(inside) ? os_folder_list(look.folder, name_look, &look) : 0;
    if (inside && remote_is_list(inside) &&
        !remote_list_open(&list, inside, false, search->stop, search->user, search->watch, NULL)) {
        uint64_t size, tag;
        for (const char *key; found != EEXIST && !remote_list_next(list, &key, &size, &tag, NULL);)
            found = name_look(&look, key + strlen(inside));
    }
    remote_list_close(list);
    free(inside);
    return found == EEXIST;
}

bool table_folder(struct table_search *search, const char *path, size_t bytes)
{
    if (search->asked && strlen(search->asked) == bytes && !memcmp(search->asked, path, bytes))
        return search->has_tables;
    free(search->asked);
    search->asked = strndup(path, bytes);
    search->has_tables = folder_has(search, path, bytes, "", NULL);
    return search->has_tables;
}

/* What is looked for in the folders above a file. */
static const struct {
    const char *folder, *ending, *what;
} marks[] = {{"_delta_log", "", "a table of Delta Lake, whose rows deltalake's DeltaTable reads"},
             {".hoodie", "", "a table of Hudi, whose rows Spark reads"},
             {"metadata", ".metadata.json", "a table of Iceberg, whose rows pyiceberg's scan() reads"}};
#define MARKS (sizeof marks / sizeof marks[0])
#define MARK_ICEBERG 2

struct levels {
    const struct table_search *search;
    const char *path;
    size_t bytes[LEVELS_MOST]; /* of the path, which are a folder */
    size_t count, next;        /* next: accessed atomically */
    bool has[LEVELS_MOST][MARKS];
};

static void marks_look(void *user, uint32_t number)
{
    struct levels *levels = user;
    (void)number;
    for (size_t i; (i = __atomic_fetch_add(&levels->next, 1, __ATOMIC_RELAXED)) < levels->count * MARKS;)
        levels->has[i / MARKS][i % MARKS] = folder_has(levels->search, levels->path, levels->bytes[i / MARKS],
                                                       marks[i % MARKS].folder, marks[i % MARKS].ending);
}

/* Looks at some folders. Returns what the first table among them is, and sets *at to its folder's bytes; or NULL. */
static const char *levels_look(struct levels *levels, size_t *at)
{
    const struct table_search *search = levels->search;
    levels->next = 0;
    if (levels->count && remote_kind(levels->path))
        os_threads_share("tokmap-look", (uint32_t)min64(levels->count * MARKS, THREADS_MOST), marks_look, levels);
    marks_look(levels, 0);
    for (size_t i = 0; i < levels->count * MARKS; i++) {
        *at = levels->bytes[i / MARKS];
        if (levels->has[i / MARKS][i % MARKS] &&
            (i % MARKS != MARK_ICEBERG || folder_has(search, levels->path, *at, "data", "") ||
             folder_has(search, levels->path, *at, "metadata", ".avro")))
            return marks[i % MARKS].what;
    }
    return NULL;
}

const char *table_find(struct table_search *search, const char *path, char **folder)
{
    struct remote_object object;
    struct levels levels = {.search = search, .path = path};
    const size_t least = !remote_kind(path)                      ? *path == '/'
                         : remote_object_of(path, &object, NULL) ? path_folder_bytes(path)
                                                                 : object.root_bytes + 1;
    const char *what = NULL;
    size_t at = 0;
    bool more = true;
    for (size_t bytes = path_folder_bytes(path); more && !what; bytes--) {
        if (bytes > least && path[bytes - 1] != '/')
            continue;
        *folder = bytes ? strndup(path, bytes) : strdup("./");
        more = *folder && known_paths_add(&search->looked, *folder, true) == PATH_NEW;
        if (more)
            levels.bytes[levels.count++] = bytes;
        more = more && bytes > least;
        free(*folder);
        if (!more || levels.count == LEVELS_MOST) {
            what = levels_look(&levels, &at);
            levels.count = 0;
        }
    }
    *folder = !what ? NULL : at ? strndup(path, at) : strdup("./");
    return *folder ? what : NULL;
}
