/* SPDX-License-Identifier: MIT */
/*
 * dataset_copy.c - see dataset_copy.h.
 *
 * Each thread takes the next part of a shard that is ready; without one, it makes the next shard ready; after the last
 * shard, it waits. So a few shards at a time are open, however many there are.
 */
#include "dataset_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "copy_shard.h"
#include "dataset/dataset_name.h"
#include "dataset/shard_names.h"
#include "dataset/values_names.h"
#include "format/manifest.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "platform/process.h"
#include "remote/remote_client.h"
#include "remote/remote_list.h"
#include "remote/remote_object.h"
#include "remote/remote_upload.h"
#include "text/path.h"

/* ---- names ---- */

/*
 * The shards of a dataset that is copied, each with its name here and its name there.
 *
 * A name is a path, or an address (s3://, gs://, https://), and what it stands for is what FORMAT.md says of datasets:
 *
 *     FROM is                       the copy
 *     a shard data/web              TO.tmx, or TO/web.tmx if TO is a folder or ends in a slash
 *     a folder, all shards in it    TO/ and the rest of each path
 *     a manifest data/web           TO, or TO/web; its shards are named as its lines say
 */
struct copy_names {
    struct copy_name *shards; /* in byte order of `to`, each once */
    uint64_t count, capacity;
    char *manifest_from, *manifest_to; /* NULL if there is no manifest */
    struct bytes_buffer manifest;      /* its text */
};

static const char lacking[] = "a copy of a dataset"; /* in messages about memory */

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
        return error_set_memory(error, lacking, 0);
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

static void copy_names_free(struct copy_names *names)
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
            : error_set_memory(error, lacking, 0);
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

/* Takes the values of the shards. */
static enum tokmap_status values_find(struct copy_names *names, const struct remote_client *client,
                                      struct tokmap_error *error)
{
    struct values_names found = {.client = client};
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0, count = names->count; i < count && !status; i++) {
        char what[VALUES_NAME_MOST + 1];
        status = values_names_begin(&found, names->shards[i].from, error);
        while (!status && values_names_next(&found, what))
            status = name_add(names, values_file_path(names->shards[i].from, what, VALUES_FINAL),
                              values_file_path(names->shards[i].to, what, VALUES_FINAL), error);
    }
    values_names_free(&found);
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
    enum tokmap_status status =
        index && folder ? remote_object_find(client, index, &facts, error) : error_set_memory(error, lacking, 0);
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

/* Fills zeroed *names. The caller frees it with every status. client: for addresses. Statuses: OK, ERROR_ARGUMENT (a
 * part of a dataset; a name that cannot be one at the other end), ERROR_NOT_FOUND, ERROR_UNSUPPORTED (files of other
 * projects; a manifest with shards outside of its folder; TO is not written), those of manifests and of object
 * storage. */
static enum tokmap_status copy_names_find(struct copy_names *names, const char *from, const char *to,
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
    if (!status)
        status = values_find(names, client, error);
    free(base);
    shards_sort(names);
    return status;
}

struct copying {
    const struct dataset_copy_options *options;
    struct copy_settings settings;
    struct copy_names names;
    struct copy_shard *shards;
    struct copy_hands *hands;
    struct copy_upload *uploads;
    uint64_t upload_count, upload_room;
    bool manifest_there, manifest_differs;
    struct remote_facts manifest_old;
    int lock_fd; /* of NAME.partial, where a manifest on a file system is made */
    char *lock;

    struct os_mutex *mutex; /* protects what follows */
    struct os_condition *changed;
    uint64_t next, first; /* shard to be opened; the first that is not done */
    uint64_t opening;     /* shards that are being opened */
    uint64_t ready_bytes, ready, done_bytes;
    bool failed;
    struct tokmap_error error;

    /* Of a step for all shards. */
    enum tokmap_status (*step)(struct copying *copying, struct copy_shard *shard, struct copy_hands *hands,
                               struct tokmap_error *error);
    uint64_t step_next; /* accessed atomically */
};

/* Keeps the first failure, which ends all threads. */
static void fail(struct copying *copying, const struct tokmap_error *error)
{
    os_mutex_lock(copying->mutex);
    if (!copying->failed)
        copying->error = *error;
    __atomic_store_n(&copying->failed, true, __ATOMIC_RELAXED);
    os_condition_broadcast(copying->changed);
    os_mutex_unlock(copying->mutex);
}

/* Ends requests that wait, for whatever reason. */
static bool stop(void *user)
{
    const struct copying *copying = user;
    return __atomic_load_n(&copying->failed, __ATOMIC_RELAXED) || os_signal_caught();
}

/* ---- step 1 ---- */

/* Reports the progress, with the mutex held. Sizes of shards that are not open yet are taken for those of the others.
 */
static void progress(struct copying *copying, uint64_t bytes)
{
    const struct dataset_copy_options *options = copying->options;
    copying->done_bytes += bytes;
    if (copying->ready)
        options->progress(options->user, copying->done_bytes,
                          mul_div(copying->ready_bytes, copying->names.count, copying->ready));
}

/* Finds a part that can be copied, with the mutex held. */
static bool part_take(struct copying *copying, struct copy_shard **shard, struct copy_file **file, uint32_t *number)
{
    while (copying->first < copying->next && copying->shards[copying->first].done)
        copying->first++;
    for (uint64_t i = copying->first; i < copying->next; i++) {
        *shard = &copying->shards[i];
        for (int k = 0; k < SHARD_FILES && (*shard)->ready && !(*shard)->done; k++) {
            *file = &(*shard)->files[k];
            if ((*file)->next < (*file)->parts) {
                *number = (*file)->next++;
                return true;
            }
        }
    }
    return false;
}

/* Notes, with the mutex held, that a shard has no parts left to copy. */
static void shard_done(struct copy_shard *shard)
{
    copy_shard_rest(shard);
    shard->done = true;
}

static enum tokmap_status shard_begin(struct copying *copying, struct copy_hands *hands, struct tokmap_error *error)
{
    struct copy_shard *shard = &copying->shards[copying->next++];
    copying->opening++;
    os_mutex_unlock(copying->mutex);
    const enum tokmap_status status = copy_shard_open(shard, &copying->settings, hands, error);
    os_mutex_lock(copying->mutex);
    copying->opening--;
    copying->ready++;
    copying->ready_bytes += shard->bytes;
    shard->ready = !status;
    progress(copying, shard->index.file_bytes);
    os_condition_broadcast(copying->changed);
    return status;
}

static enum tokmap_status part_copy(struct copying *copying, struct copy_shard *shard, struct copy_file *file,
                                    uint32_t number, struct copy_hands *hands, struct tokmap_error *error)
{
    os_mutex_unlock(copying->mutex);
    enum tokmap_status status = copy_file_part(file, number, hands, error);
    os_mutex_lock(copying->mutex);
    if (!status && --file->left == 0) {
        bool again;
        os_mutex_unlock(copying->mutex); /* nobody else uses the file, because it has no more parts */
        status = copy_file_end(file, copying->settings.full, &again, hands, error);
        os_mutex_lock(copying->mutex);
        if (!status && again) {
            file->next = 0;
            file->left = file->parts;
        } else if (!status && --shard->left == 0) {
            shard_done(shard);
        }
        os_condition_broadcast(copying->changed);
    }
    if (!status)
        progress(copying, min64(file->part_bytes, file->bytes - number * file->part_bytes));
    return status;
}

static void parts_work(void *user, uint32_t number)
{
    struct copying *copying = user;
    struct copy_hands *hands = &copying->hands[number];
    struct tokmap_error error;
    enum tokmap_status status = TOKMAP_OK;
    os_mutex_lock(copying->mutex);
    while (!status && !copying->failed) {
        struct copy_shard *shard;
        struct copy_file *file;
        uint32_t part;
        if (os_signal_caught())
            status = error_set(&error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        else if (part_take(copying, &shard, &file, &part))
            status = part_copy(copying, shard, file, part, hands, &error);
        else if (copying->next < copying->names.count)
            status = shard_begin(copying, hands, &error);
        else if (copying->opening || copying->first < copying->next)
            (void)os_condition_wait_for(copying->changed, copying->mutex, 100000000);
        else
            break;
    }
    os_mutex_unlock(copying->mutex);
    if (status)
        fail(copying, &error);
}

/* ---- step 2 ---- */

static void step_work(void *user, uint32_t number)
{
    struct copying *copying = user;
    for (uint64_t i;
         !stop(copying) && (i = __atomic_fetch_add(&copying->step_next, 1, __ATOMIC_RELAXED)) < copying->names.count;) {
        struct tokmap_error error;
        if (copying->step(copying, &copying->shards[i], &copying->hands[number], &error))
            fail(copying, &error);
    }
}

static enum tokmap_status name_files(struct copying *copying, struct copy_shard *shard, struct copy_hands *hands,
                                     struct tokmap_error *error)
{
    return copy_shard_name_files(shard, &copying->settings, hands, error);
}

static enum tokmap_status name_index(struct copying *copying, struct copy_shard *shard, struct copy_hands *hands,
                                     struct tokmap_error *error)
{
    (void)copying;
    return copy_shard_name(shard, hands, error);
}

static enum tokmap_status abort_shard(struct copying *copying, struct copy_shard *shard, struct copy_hands *hands,
                                      struct tokmap_error *error)
{
    (void)copying;
    (void)error;
    copy_shard_abort(shard, hands);
    return TOKMAP_OK;
}

/* Gives up an upload that this process has begun without learning its id, because another thread failed. */
static enum tokmap_status abort_found(struct copying *copying, struct copy_shard *shard, struct copy_hands *hands,
                                      struct tokmap_error *error)
{
    (void)error;
    copy_shard_abort_uploads(shard, &copying->settings, hands);
    return TOKMAP_OK;
}

static enum tokmap_status on_threads(struct copying *copying, void (*work)(void *user, uint32_t number),
                                     struct tokmap_error *error)
{
    copying->step_next = 0;
    os_threads_share("tokmap-copy", copying->options->connections, work, copying);
    if (!copying->failed && !stop(copying))
        return TOKMAP_OK;
    if (copying->failed)
        *error = copying->error;
    return copying->failed ? copying->error.status
                           : error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
}

static enum tokmap_status step_do(struct copying *copying,
                                  enum tokmap_status (*step)(struct copying *copying, struct copy_shard *shard,
                                                             struct copy_hands *hands, struct tokmap_error *error),
                                  struct tokmap_error *error)
{
    copying->step = step;
    return on_threads(copying, step_work, error);
}

/* ---- the manifest ---- */

static enum tokmap_status manifest_exists(const char *path, bool other, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET, "%s",
                     other ? "there is a file of this name that is not a manifest; choose another name"
                           : "there is another dataset of this name; give --force to replace it, or choose another "
                             "name");
}

/* Looks at the manifest that there is, and locks its name. */
static enum tokmap_status manifest_look(struct copying *copying, struct tokmap_error *error)
{
    const char *to = copying->names.manifest_to;
    struct bytes_buffer text = {0};
    enum tokmap_status status;
    int system = 0;
    if (remote_is(to)) {
        status =
            remote_object_get(&copying->hands->client, to, MANIFEST_BYTES_MOST, &text, &copying->manifest_old, error);
    } else {
        copying->lock = path_ended(to, ".partial");
        system = copying->lock ? partial_file_open(copying->lock, NULL, NULL, &copying->lock_fd) : 0;
        copying->lock_fd = system ? -1 : copying->lock_fd;
        status = !copying->lock               ? error_set_memory(error, lacking, 0)
                 : system == EWOULDBLOCK      ? error_set(error, TOKMAP_ERROR_BUSY, to, TOKMAP_NO_OFFSET,
                                                          "another process is writing this dataset; wait for it")
                 : system && system != ENOENT ? error_set_system(error, system, copying->lock, TOKMAP_NO_OFFSET,
                                                                 "the manifest cannot be written")
                                              : manifest_read(to, &text, error);
    }
    if (status == TOKMAP_ERROR_NOT_FOUND) {
        copying->manifest_old = (struct remote_facts){.bytes = 0};
        status = TOKMAP_OK;
    } else if (!status) {
        const struct bytes_buffer *new = &copying->names.manifest;
        copying->manifest_there = text.count == new->count && !memcmp(text.bytes, new->bytes, text.count);
        copying->manifest_differs = !copying->manifest_there;
        if (copying->manifest_differs && !shard_manifest_begins((const char *)text.bytes, text.count))
            status = manifest_exists(to, true, error);
        else if (copying->manifest_differs && !copying->options->replace)
            status = manifest_exists(to, false, error);
    }
    bytes_free(&text);
    return status;
}

/* Removes a manifest that names shards that are about to be replaced. */
static enum tokmap_status manifest_remove(struct copying *copying, struct tokmap_error *error)
{
    const char *to = copying->names.manifest_to;
    bool changes = false;
    for (uint64_t i = 0; i < copying->names.count; i++)
        changes = changes || copy_shard_changes(&copying->shards[i]);
    if (!to || (!copying->manifest_differs && !(copying->manifest_there && changes)))
        return TOKMAP_OK;
    copying->manifest_there = false;
    copying->manifest_old = (struct remote_facts){.bytes = 0};
    if (remote_is(to))
        return remote_object_remove(&copying->hands->client, to, error);
    int system = os_unlink(to);
    if (!system)
        system = os_sync_folder(to);
    return system && system != ENOENT
               ? error_set_system(error, system, to, TOKMAP_NO_OFFSET, "the old manifest cannot be removed")
               : TOKMAP_OK;
}

static enum tokmap_status manifest_write(struct copying *copying, struct tokmap_error *error)
{
    const char *to = copying->names.manifest_to;
    const struct bytes_buffer *text = &copying->names.manifest;
    if (!to || copying->manifest_there)
        return TOKMAP_OK;
    if (remote_is(to))
        return remote_object_put(&copying->hands->client, to, text->bytes, text->count, &copying->manifest_old, error);
    int system = 0;
    if (copying->lock_fd < 0) /* there was no folder before */
        system = partial_file_open(copying->lock, NULL, NULL, &copying->lock_fd);
    if (!system)
        system = os_pwrite(copying->lock_fd, text->bytes, text->count, 0);
    if (!system)
        system = name_file(copying->lock_fd, copying->lock, to, true, NULL);
    return system ? error_set_system(error, system, to, TOKMAP_NO_OFFSET, "the manifest cannot be written") : TOKMAP_OK;
}

/* ---- all of it ---- */

static enum tokmap_status upload_found(void *user, const char *key, const char *id, struct tokmap_error *error)
{
    struct copying *copying = user;
    if (!list_room(&copying->uploads, copying->upload_count, &copying->upload_room, sizeof *copying->uploads))
        return error_set_memory(error, lacking, 0);
    struct copy_upload *upload = &copying->uploads[copying->upload_count];
    *upload = (struct copy_upload){strdup(key), strdup(id)};
    copying->upload_count += upload->key && upload->id;
    if (upload->key && upload->id)
        return TOKMAP_OK;
    free(upload->key);
    free(upload->id);
    return error_set_memory(error, lacking, 0);
}

static int upload_compare(const void *a, const void *b)
{
    return strcmp(((const struct copy_upload *)a)->key, ((const struct copy_upload *)b)->key);
}

/* Lists the uploads that an earlier process has left: of names that begin as all shards do. */
static enum tokmap_status uploads_find(struct copying *copying, struct tokmap_error *error)
{
    const struct copy_names *names = &copying->names;
    if (!names->count || !remote_is(names->shards[0].to))
        return TOKMAP_OK;
    const char *first = names->shards[0].to, *last = names->shards[names->count - 1].to;
    size_t same = 0;
    while (first[same] && first[same] == last[same])
        same++;
    char *prefix = strndup(first, same);
    const enum tokmap_status status =
        prefix ? remote_uploads_find(&copying->hands->client, prefix, upload_found, copying, error)
               : error_set_memory(error, lacking, 0);
    free(prefix);
    if (copying->upload_count)
        qsort(copying->uploads, copying->upload_count, sizeof *copying->uploads, upload_compare);
    copying->settings.uploads = copying->uploads;
    copying->settings.upload_count = copying->upload_count;
    return status;
}

static void uploads_forget(struct copying *copying)
{
    for (uint64_t i = 0; i < copying->upload_count; i++) {
        free(copying->uploads[i].key);
        free(copying->uploads[i].id);
    }
    copying->upload_count = copying->settings.upload_count = 0;
}

static enum tokmap_status begin(struct copying *copying, struct tokmap_error *error)
{
    const struct dataset_copy_options *options = copying->options;
    int system = os_mutex_new(&copying->mutex);
    if (!system)
        system = os_condition_new(&copying->changed);
    copying->hands = calloc(options->connections, sizeof *copying->hands);
    if (system || !copying->hands)
        return error_set_memory(error, lacking, 0);
    for (uint32_t i = 0; i < options->connections; i++)
        remote_client_init(&copying->hands[i].client, stop, copying, NULL);
    enum tokmap_status status =
        copy_names_find(&copying->names, options->from, options->to, &copying->hands->client, error);
    if (!status && copying->names.manifest_to)
        status = manifest_look(copying, error);
    if (status)
        return status;
    copying->shards = calloc(max64(copying->names.count, 1), sizeof *copying->shards);
    if (!copying->shards)
        return error_set_memory(error, lacking, 0);
    for (uint64_t i = 0; i < copying->names.count; i++)
        copying->shards[i].name = &copying->names.shards[i];
    return uploads_find(copying, error);
}

static void result_fill(struct copying *copying, struct dataset_copy_result *result)
{
    *result = (struct dataset_copy_result){.manifest = copying->names.manifest_to};
    for (uint64_t i = 0; copying->shards && i < copying->names.count; i++) {
        *(values_file_is(copying->names.shards[i].from) ? &result->values : &result->shards) += 1;
        result->changed += copy_shard_changes(&copying->shards[i]);
        result->bytes += copying->shards[i].bytes;
    }
    for (uint32_t i = 0; copying->hands && i < copying->options->connections; i++) {
        result->sent += copying->hands[i].sent;
        result->kept += copying->hands[i].kept;
    }
}

static void end(struct copying *copying)
{
    for (uint64_t i = 0; copying->shards && i < copying->names.count; i++)
        copy_shard_free(&copying->shards[i]);
    uploads_forget(copying);
    for (uint32_t i = 0; copying->hands && i < copying->options->connections; i++)
        copy_hands_free(&copying->hands[i]);
    if (copying->lock_fd >= 0)
        (void)os_unlink(copying->lock);
    os_close(copying->lock_fd);
    free(copying->lock);
    free(copying->uploads);
    free(copying->shards);
    free(copying->hands);
    copy_names_free(&copying->names);
    os_condition_free(copying->changed);
    os_mutex_free(copying->mutex);
}

enum tokmap_status dataset_copy(const struct dataset_copy_options *options, struct dataset_copy_result *result,
                                struct tokmap_error *error)
{
    struct copying copying = {
        .options = options,
        .settings = {.replace = options->replace, .full = options->full, .part_bytes = options->part_bytes},
        .lock_fd = -1};
    enum tokmap_status status = begin(&copying, error);
    if (!status)
        status = on_threads(&copying, parts_work, error);
    result_fill(&copying, result);
    if (!status) {
        status = manifest_remove(&copying, error);
        if (!status)
            status = step_do(&copying, name_files, error);
        if (!status)
            status = step_do(&copying, name_index, error);
        if (!status)
            status = manifest_write(&copying, error);
    }
    result->unfinished = status == TOKMAP_ERROR_IO || status == TOKMAP_ERROR_INTERRUPTED;
    if (status && !result->unfinished && copying.shards) {
        struct tokmap_error ignored;
        copying.failed = false;
        (void)step_do(&copying, abort_shard, &ignored);
        uploads_forget(&copying);
        if (status != TOKMAP_ERROR_EXISTS && status != TOKMAP_ERROR_BUSY && !uploads_find(&copying, &ignored))
            (void)step_do(&copying, abort_found, &ignored);
    }
    end(&copying);
    return status;
}

enum tokmap_status dataset_copy_remove(const char *name, struct tokmap_error *error)
{
    struct copy_names names = {.shards = NULL};
    const enum tokmap_status status = copy_names_find(&names, name, "./", NULL, error);
    if (!status && names.manifest_from)
        (void)os_unlink(names.manifest_from);
    for (int kind = SHARD_INDEX + 1; kind-- && !status;)
        for (uint64_t i = 0; i < names.count; i++) {
            char *path = copy_file_path(names.shards[i].from, (enum shard_file)kind, SHARD_FINAL);
            if (path)
                (void)os_unlink(path);
            free(path);
        }
    copy_names_free(&names);
    return status;
}
