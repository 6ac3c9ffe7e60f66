/* SPDX-License-Identifier: MIT */
/* copy_names.c - see copy_names.h. */
#include "copy_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "dataset/dataset_name.h"
#include "dataset/shard_names.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "remote/remote_list.h"
#include "remote/remote_object.h"
#include "text/path.h"

static bool ends_in_slash(const char *name)
{
    const size_t bytes = strlen(name);
    return bytes && name[bytes - 1] == '/';
}

/* Returns the length of a name without the ending of a file of a shard. */
static size_t stem_bytes(const char *name)
{
    struct shard_name found;
    const size_t bytes = strlen(name);
    return shard_file_find(name, bytes, &found) && found.state == SHARD_FINAL && shard_file_is_main(name) ? found.stem
                                                                                                          : bytes;
}

/* Adds a shard: both names belong to the list from now on; NULL stands for no memory. */
static enum tokmap_status name_add(struct copy_names *names, char *from, char *to, struct tokmap_error *error)
{
    if (!from || !to || !list_room(&names->shards, names->count, &names->capacity, sizeof *names->shards)) {
        free(from);
        free(to);
        return error_set_memory(error, "the names of shards", 0);
    }
    names->shards[names->count++] = (struct copy_name){from, to};
    return TOKMAP_OK;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(((const struct copy_name *)a)->to, ((const struct copy_name *)b)->to);
}

/* Sorts the shards, and drops doubles: a manifest can name a shard twice. */
static void shards_sort(struct copy_names *names)
{
    uint64_t kept = 0;
    qsort(names->shards, names->count, sizeof *names->shards, name_compare);
    for (uint64_t i = 0; i < names->count; i++) {
        if (kept && !strcmp(names->shards[i].to, names->shards[kept - 1].to)) {
            free(names->shards[i].from);
            free(names->shards[i].to);
        } else {
            names->shards[kept++] = names->shards[i];
        }
    }
    names->count = kept;
}

void copy_names_free(struct copy_names *names)
{
    for (uint64_t i = 0; i < names->count; i++) {
        free(names->shards[i].from);
        free(names->shards[i].to);
    }
    free(names->shards);
    free(names->manifest_from);
    free(names->manifest_to);
    bytes_free(&names->manifest);
    *names = (struct copy_names){.shards = NULL};
}

/* Checks a path below the folder of a dataset, which a hostile key or manifest could lead elsewhere. */
static enum tokmap_status below_check(const char *below, const char *name, struct tokmap_error *error)
{
    for (const char *at = below;; at++) {
        const size_t bytes = strcspn(at, "/");
        if (!bytes || (bytes <= 2 && !strncmp(at, "..", bytes)))
            return error_set(
                error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                "'%.200s' is not a name below the folder of the dataset, since it has an empty part, '.', or "
                "'..'; copy this shard by its own name",
                below);
        at += bytes;
        if (!*at)
            return TOKMAP_OK;
    }
}

/* Returns TO, or TO/NAME if TO is a folder, in memory that the caller frees. */
static char *place_make(const char *to, const char *name, size_t name_bytes)
{
    struct os_stat found;
    const bool folder = ends_in_slash(to) || (!remote_is(to) && !os_stat(to, &found) && found.kind == OS_KIND_FOLDER);
    return folder ? path_join(to, strlen(to), name, name_bytes, "") : strndup(to, stem_bytes(to));
}

/* ---- what FROM is ---- */

static enum tokmap_status shard_take(struct copy_names *names, const char *from, const char *to,
                                     struct tokmap_error *error)
{
    char *stem = strndup(from, stem_bytes(from));
    return name_add(names, stem, stem ? place_make(to, path_name(stem), strlen(path_name(stem))) : NULL, error);
}

/* Takes a shard of a folder by its index. folder: bytes of the index's name that are the folder's. */
static enum tokmap_status folder_take(struct copy_names *names, const char *index, size_t folder, const char *to,
                                      struct tokmap_error *error)
{
    const size_t stem = stem_bytes(index);
    const enum tokmap_status status = below_check(index + folder, index, error);
    return status ? status
                  : name_add(names, strndup(index, stem), path_join(to, strlen(to), index + folder, stem - folder, ""),
                             error);
}

/* Takes the shards of the manifest whose text is in *names. */
static enum tokmap_status manifest_take(struct copy_names *names, const char *from, const char *to,
                                        struct tokmap_error *error)
{
    struct manifest manifest = {.path = NULL};
    names->manifest_from = strdup(from);
    names->manifest_to = place_make(to, path_name(from), strlen(path_name(from)));
    enum tokmap_status status =
        names->manifest_from && names->manifest_to
            ? manifest_parse(&manifest, from, (const char *)names->manifest.bytes, names->manifest.count, error)
            : error_set_memory(error, "the names of shards", 0);
    for (uint64_t i = 0; i < manifest.count && !status; i++) {
        const char *name = manifest_name(&manifest, &manifest.shards[i]);
        name += strncmp(name, "./", 2) ? 0 : 2;
        if (path_is_absolute(name) || strstr(name, ".."))
            status = below_check(name, from, error);
        if (!status)
            status = name_add(
                names, path_join(from, path_folder_bytes(from), name, stem_bytes(name), ""),
                path_join(names->manifest_to, path_folder_bytes(names->manifest_to), name, stem_bytes(name), ""),
                error);
    }
    manifest_free(&manifest);
    return status;
}

/* ---- a file system ---- */

static enum tokmap_status local_find(struct copy_names *names, const char *from, const char *to,
                                     struct tokmap_error *error)
{
    struct shard_names found = {.count = 0};
    const size_t bytes = strlen(from);
    enum tokmap_status status = shard_names_find(&found, from, error);
    if (!status && found.manifest.path) {
        status = manifest_read(from, &names->manifest, error);
        if (!status)
            status = manifest_take(names, from, to, error);
    }
    for (uint64_t i = 0; !status && !found.manifest.path && i < found.count; i++) {
        const char *index = found.index_paths[i];
        const bool below = !strncmp(index, from, bytes) && (ends_in_slash(from) || index[bytes] == '/');
        status = below ? folder_take(names, index, bytes + !ends_in_slash(from), to, error)
                       : shard_take(names, index, to, error);
    }
    shard_names_free(&found);
    return status;
}

/* ---- object storage ---- */

/* Takes the shards below a prefix, which ends in a slash. Statuses: also NOT_FOUND. */
static enum tokmap_status prefix_take(struct copy_names *names, const char *prefix, const char *to,
                                      struct remote_client *client, struct tokmap_error *error)
{
    struct remote_list *list;
    const char *path;
    uint64_t bytes, tag;
    if (remote_kind(prefix) == REMOTE_WEB)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, prefix, TOKMAP_NO_OFFSET,
                         "there is no such shard or manifest, and files of a web server cannot be listed; name a "
                         "shard or a manifest");
    enum tokmap_status status =
        remote_list_open(&list, prefix, false, client->stop, client->user, client->watch, error);
    while (!status) {
        status = remote_list_next(list, &path, &bytes, &tag, error);
        if (!status && shard_file_is(path + remote_list_base(list), SHARD_INDEX))
            status = folder_take(names, path, remote_list_base(list), to, error);
    }
    remote_list_close(list);
    if (status == TOKMAP_END)
        status = names->count
                     ? TOKMAP_OK
                     : error_set(error, TOKMAP_ERROR_NOT_FOUND, prefix, TOKMAP_NO_OFFSET,
                                 "there is no shard here: no object whose name ends in .tmx; correct the name");
    return status;
}

static enum tokmap_status remote_find(struct copy_names *names, const char *from, const char *to,
                                      struct remote_client *client, struct tokmap_error *error)
{
    struct remote_facts facts;
    if (ends_in_slash(from))
        return prefix_take(names, from, to, client, error);
    if (stem_bytes(from) < strlen(from))
        return shard_take(names, from, to, error);
    char *index = path_ended(from, shard_file_ending(SHARD_INDEX, SHARD_FINAL)), *folder = path_ended(from, "/");
    enum tokmap_status status = index && folder ? remote_object_find(client, index, &facts, error)
                                                : error_set_memory(error, "the names of shards", 0);
    if (!status) {
        status = shard_take(names, from, to, error);
    } else if (status != TOKMAP_ERROR_INTERRUPTED && status != TOKMAP_ERROR_MEMORY) {
        /* An object that is missing is reported as forbidden (403) to a user who may not list the bucket. */
        struct tokmap_error second;
        const enum tokmap_status got =
            remote_object_get(client, from, MANIFEST_BYTES_MOST, &names->manifest, &facts, &second);
        if (!got)
            status = shard_manifest_begins((const char *)names->manifest.bytes, names->manifest.count)
                         ? TOKMAP_OK
                         : error_set(error, TOKMAP_ERROR_FORMAT, from, TOKMAP_NO_OFFSET,
                                     "this is neither a shard nor a manifest; name a dataset of `tokmap pack`");
        if (!got && !status)
            status = manifest_take(names, from, to, error);
        else if (got == TOKMAP_ERROR_NOT_FOUND && status == TOKMAP_ERROR_NOT_FOUND)
            status = prefix_take(names, folder, to, client, error);
    }
    free(index);
    free(folder);
    return status;
}

enum tokmap_status copy_names_find(struct copy_names *names, const char *from, const char *to,
                                   struct remote_client *client, struct tokmap_error *error)
{
    struct dataset_part part;
    char *base = NULL;
    enum tokmap_status status = remote_written_check(to, error);
    if (!status)
        status = dataset_name_split(from, &base, &part, error);
    if (!status && part.unit != PART_WHOLE)
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, from, TOKMAP_NO_OFFSET,
                           "this is a part of a dataset, and datasets are copied whole; leave #%s... out",
                           part.unit == PART_TOKENS ? "tokens=" : "docs=");
    if (!status)
        status = remote_is(from) ? remote_find(names, from, to, client, error) : local_find(names, from, to, error);
    free(base);
    shards_sort(names);
    return status;
}
