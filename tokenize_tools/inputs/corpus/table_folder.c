/* SPDX-License-Identifier: MIT */
/* table_folder.c - see table_folder.h. */
#include "table_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "platform/os.h"
#include "remote/remote_list.h"
#include "remote/remote_url.h"
#include "text/path.h"

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

const char *table_find(struct table_search *search, const char *path, char **folder)
{
    const size_t least = remote_kind(path) ? 5 + strcspn(path + 5, "/") + 1 : *path == '/';
    for (size_t bytes = path_folder_bytes(path);; bytes--) {
        if (bytes > least && path[bytes - 1] != '/')
            continue;
        *folder = bytes ? strndup(path, bytes) : strdup("./");
        if (!*folder || known_paths_add(&search->looked, *folder, true) != PATH_NEW)
            break;
        if (folder_has(search, path, bytes, "_delta_log", ""))
            return "a table of Delta Lake, whose rows deltalake's DeltaTable reads";
        if (folder_has(search, path, bytes, ".hoodie", ""))
            return "a table of Hudi, whose rows Spark reads";
        if (folder_has(search, path, bytes, "metadata", ".metadata.json") &&
            (folder_has(search, path, bytes, "data", "") || folder_has(search, path, bytes, "metadata", ".avro")))
            return "a table of Iceberg, whose rows pyiceberg's scan() reads";
        if (bytes <= least)
            break;
        free(*folder);
    }
    free(*folder);
    *folder = NULL;
    return NULL;
}
