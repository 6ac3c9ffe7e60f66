/* SPDX-License-Identifier: MIT */
#include "copy_shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "format/index_verify.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "format/shard_commit.h"
#include "format/values_file.h"
#include "platform/os.h"
#include "remote/remote_object.h"
#include "text/path.h"

#define STEP ((size_t)4 << 20) /* read at once of an index */

static const char lacking[] = "a shard that is copied"; /* in messages about memory */

static enum tokmap_status not_written(int system, const char *path, struct tokmap_error *error)
{
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the copy cannot be written");
}

/* ---- names on a file system ---- */

/* The paths of a shard, for shard_commit.h. */
struct paths {
    char *finals[COPY_FILES], *partials[COPY_FILES];
    struct shard_commit commit;
};

static bool paths_make(struct paths *paths, const char *stem)
{
    bool good = true;
    *paths = (struct paths){.commit = {.sync = true}};
    for (int i = 0; i < COPY_FILES; i++) {
        paths->finals[i] = shard_file_path(stem, (enum shard_file)i, SHARD_FINAL);
        paths->partials[i] = shard_file_path(stem, (enum shard_file)i, SHARD_PARTIAL);
        good = good && paths->finals[i] && paths->partials[i];
        if (i != SHARD_INDEX) {
            paths->commit.names[i] = paths->finals[i];
            paths->commit.partials[i] = paths->partials[i];
        }
    }
    paths->commit.index = paths->finals[SHARD_INDEX];
    paths->commit.index_partial = paths->partials[SHARD_INDEX];
    return good;
}

static void paths_free(struct paths *paths)
{
    for (int i = 0; i < COPY_FILES; i++) {
        free(paths->finals[i]);
        free(paths->partials[i]);
    }
}

static enum tokmap_status folders_make(const char *path, struct tokmap_error *error)
{
    const int system = os_make_folders(path);
    return system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the folder of the copy cannot be made")
                  : TOKMAP_OK;
}

static int leftover_take(void *user)
{
    const struct paths *paths = user;
    return shard_take_back(&paths->commit);
}

/* ---- the index ---- */

/* Copies the index to an open file. */
static enum tokmap_status index_copy(const char *from, int fd, const char *into, struct copy_hands *hands,
                                     struct tokmap_error *error)
{
    struct remote_facts facts = {.bytes = 0};
    struct os_stat found;
    int from_fd = -1, system = 0;
    uint8_t *bytes = malloc(STEP);
    enum tokmap_status status = bytes ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    if (!status && remote_is(from)) {
        status = remote_object_find(&hands->client, from, &facts, error);
    } else if (!status) {
        system = os_open(from, OS_READ, &from_fd);
        from_fd = system ? -1 : from_fd;
        if (!system)
            system = os_fstat(from_fd, &found);
        facts.bytes = system ? 0 : found.bytes;
    }
    for (uint64_t at = 0; !status && !system && at < facts.bytes; at += STEP) {
        size_t count = (size_t)min64(STEP, facts.bytes - at);
        if (from_fd < 0)
            status = remote_object_read(&hands->client, from, &facts, at, count, bytes, error);
        else
            system = os_pread(from_fd, bytes, count, at, &count);
        const int written = status || system ? 0 : os_pwrite(fd, bytes, count, at);
        if (written)
            status = not_written(written, into, error);
    }
    if (!status && system)
        status = error_set_system(error, system, from, TOKMAP_NO_OFFSET, "the index cannot be read");
    if (!status && (system = os_sync(fd)))
        status = not_written(system, into, error);
    os_close(from_fd);
    free(bytes);
    return status;
}

/* Sets *same to whether both files have the same bytes; there may be no second one. */
static enum tokmap_status same_find(const char *one, const char *other, bool *same, bool *missing,
                                    struct tokmap_error *error)
{
    int fds[2] = {-1, -1};
    uint8_t *bytes = malloc(2 * STEP);
    size_t got[2] = {1, 1};
    int system = bytes ? os_open(one, OS_READ, &fds[0]) : ENOMEM;
    if (!system)
        system = os_open(other, OS_READ, &fds[1]);
    *missing = system == ENOENT && fds[0] >= 0;
    *same = !system;
    for (uint64_t at = 0; !system && *same && got[0]; at += got[0]) {
        system = os_pread(fds[0], bytes, STEP, at, &got[0]);
        system = system ? system : os_pread(fds[1], bytes + STEP, STEP, at, &got[1]);
        *same = !system && got[0] == got[1] && !memcmp(bytes, bytes + STEP, got[0]);
    }
    os_close(fds[0]);
    os_close(fds[1]);
    free(bytes);
    return !system || *missing ? TOKMAP_OK
                               : error_set_system(error, system, other, TOKMAP_NO_OFFSET, "the file cannot be read");
}

/* Makes NAME.tmx.partial, which is also the lock of a writer, and looks at the index that there is. */
static enum tokmap_status index_take_local(struct copy_shard *shard, const char *from,
                                           const struct copy_settings *settings, struct copy_hands *hands,
                                           struct tokmap_error *error)
{
    struct paths paths;
    int fd = -1;
    bool missing = false;
    enum tokmap_status status = paths_make(&paths, shard->name->to) ? folders_make(shard->name->to, error)
                                                                    : error_set_memory(error, lacking, 0);
    if (!status) {
        const int system = partial_file_open(paths.partials[SHARD_INDEX], leftover_take, &paths, &fd);
        status = system == EWOULDBLOCK
                     ? error_set(error, TOKMAP_ERROR_BUSY, paths.partials[SHARD_INDEX], TOKMAP_NO_OFFSET,
                                 "another process is writing this shard; wait for it")
                 : system ? not_written(system, paths.partials[SHARD_INDEX], error)
                          : TOKMAP_OK;
    }
    if (!status)
        status = shard_recover(&paths.commit, error);
    if (!status)
        status = index_copy(from, fd, paths.partials[SHARD_INDEX], hands, error);
    if (!status)
        status =
            same_find(paths.partials[SHARD_INDEX], paths.finals[SHARD_INDEX], &shard->index_there, &missing, error);
    if (!status && !missing && !shard->index_there && !settings->replace)
        status = error_set(error, TOKMAP_ERROR_EXISTS, paths.finals[SHARD_INDEX], TOKMAP_NO_OFFSET,
                           "there is another shard of this name; give --force to replace it, or choose another name");
    if (fd >= 0 && status)
        (void)os_unlink(paths.partials[SHARD_INDEX]);
    os_close(fd);
    shard->index_made = !status;
    shard->index_path = paths.partials[SHARD_INDEX];
    paths.partials[SHARD_INDEX] = NULL;
    paths_free(&paths);
    return status;
}

/* Makes a temporary file with the index, for a copy between objects. */
static enum tokmap_status index_take_temporary(struct copy_shard *shard, const char *from, struct copy_hands *hands,
                                               struct tokmap_error *error)
{
    const char *folder = secure_getenv("TMPDIR");
    char name[64];
    uint64_t number = 0;
    int fd;
    (void)os_random(&number, sizeof number);
    (void)snprintf(name, sizeof name, "tokmap-copy-%016" PRIx64 ".tmx", number);
    shard->index_path = path_in(folder && *folder ? folder : "/tmp", name);
    if (!shard->index_path)
        return error_set_memory(error, lacking, 0);
    const int system = os_open(shard->index_path, OS_WRITE_NEW, &fd);
    if (system)
        return error_set_system(error, system, shard->index_path, TOKMAP_NO_OFFSET,
                                "a temporary file for an index cannot be made; set TMPDIR to a folder with space");
    shard->temporary = true;
    const enum tokmap_status status = index_copy(from, fd, shard->index_path, hands, error);
    os_close(fd);
    return status;
}

static int fault_take(void *user, const struct tokmap_error *fault)
{
    *(struct tokmap_error *)user = *fault;
    return 1;
}

static enum tokmap_status index_check(struct copy_shard *shard, const char *from, struct tokmap_error *error)
{
    struct tokmap_error fault = {.status = TOKMAP_OK};
    enum tokmap_status status = index_open(&shard->index, shard->index_path, error);
    shard->index_opened = !status;
    if (status || index_verify(&shard->index, fault_take, &fault)) {
        const struct tokmap_error found = status ? *error : fault;
        return error_set(error, found.status, from, found.offset, "%s", found.message);
    }
    return !shard->index.store.offset
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_UNSUPPORTED, from, TOKMAP_NO_OFFSET,
                           "the tokens of this shard are in a file of another project, which is not copied; make a "
                           "shard of it first (tokmap convert)");
}

/* ---- the shard ---- */

static const char *upload_find(const struct copy_settings *settings, const char *to)
{
    const char *const key = to + 5 + strcspn(to + 5, "/") + 1;
    uint64_t first = 0, last = settings->upload_count;
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;
        if (strcmp(settings->uploads[middle].key, key) <= 0)
            first = middle + 1;
        else
            last = middle;
    }
    return first && !strcmp(settings->uploads[first - 1].key, key) ? settings->uploads[first - 1].id : NULL;
}

static enum tokmap_status file_open(struct copy_shard *shard, enum shard_file kind,
                                    const struct copy_settings *settings, struct copy_hands *hands,
                                    struct tokmap_error *error)
{
    struct copy_file *file = &shard->files[kind];
    const char *upload = NULL;
    *file = (struct copy_file){
        .file = kind, .index = &shard->index, .replace = settings->replace, .part_bytes = settings->part_bytes};
    if (remote_is(shard->name->to)) {
        char *to = copy_file_path(shard->name->to, kind, SHARD_FINAL);
        if (!to)
            return error_set_memory(error, lacking, 0);
        upload = upload_find(settings, to);
        free(to);
    }
    const enum tokmap_status status = copy_file_open(file, shard->name->from, shard->name->to, upload, hands, error);
    shard->bytes += file->bytes;
    return status;
}

/* Sends the index, which gets no name yet. If there is another one, nothing else is sent. */
static enum tokmap_status index_send(struct copy_shard *shard, const struct copy_settings *settings,
                                     struct copy_hands *hands, struct tokmap_error *error)
{
    struct copy_file *file = &shard->files[SHARD_INDEX];
    enum tokmap_status status = file_open(shard, SHARD_INDEX, settings, hands, error);
    if (!status && shard->temporary) {
        const int system = os_open(shard->index_path, OS_READ, &file->from_fd);
        status = system ? error_set_system(error, system, shard->index_path, 0, "the index cannot be read") : TOKMAP_OK;
    }
    for (bool again = true; !status && again;) {
        for (uint32_t i = 0; i < file->parts && !status; i++)
            status = copy_file_part(file, i, hands, error);
        again = false;
        if (!status)
            status = copy_file_end(file, false, &again, hands, error);
    }
    shard->index_there = file->there;
    return status;
}

/* A file of values in object storage. */
struct values_object {
    struct copy_hands *hands;
    const char *name;
    struct remote_facts version;
};

static enum tokmap_status object_read(void *user, uint64_t at, size_t bytes, void *into, struct tokmap_error *error)
{
    const struct values_object *object = user;
    return remote_object_read(&object->hands->client, object->name, &object->version, at, bytes, into, error);
}

/* Opens a file of values. */
static enum tokmap_status values_open(struct copy_shard *shard, const struct copy_settings *settings,
                                      struct copy_hands *hands, struct tokmap_error *error)
{
    struct values_object object = {hands, shard->name->from, {.bytes = 0}};
    const struct values_reader reader = {object_read, &object};
    struct values_ranges *ranges = NULL;
    enum tokmap_status status = TOKMAP_OK;
    if (remote_is(object.name)) {
        status = remote_object_find(&hands->client, object.name, &object.version, error);
        if (!status)
            status = values_ranges_read(&ranges, object.name, object.version.bytes, &reader, error);
    } else {
        status = values_ranges_load(&ranges, object.name, error);
    }
    shard->index = (struct index){.path = object.name, .values = ranges};
    shard->index_there = true;
    shard->left = 1;
    if (!status && !remote_is(shard->name->to))
        status = folders_make(shard->name->to, error);
    return status ? status : file_open(shard, SHARD_TOKENS, settings, hands, error);
}

enum tokmap_status copy_shard_open(struct copy_shard *shard, const struct copy_settings *settings,
                                   struct copy_hands *hands, struct tokmap_error *error)
{
    if (values_file_is(shard->name->from))
        return values_open(shard, settings, hands, error);
    char *from = shard_file_path(shard->name->from, SHARD_INDEX, SHARD_FINAL);
    enum tokmap_status status = from ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    if (!status && !remote_is(shard->name->to))
        status = index_take_local(shard, from, settings, hands, error);
    else if (!status && remote_is(from))
        status = index_take_temporary(shard, from, hands, error);
    else if (!status && !(shard->index_path = strdup(from)))
        status = error_set_memory(error, lacking, 0);
    if (!status)
        status = index_check(shard, from, error);
    if (!status && remote_is(shard->name->to)) {
        status = index_send(shard, settings, hands, error);
    } else if (!status) {
        shard->bytes += shard->index.file_bytes;
        hands->sent += shard->index_there ? 0 : shard->index.file_bytes;
    }
    for (int i = 0; i < SHARD_FILES && !status; i++) {
        if (!shard_has_file(&shard->index, (enum shard_file)i))
            continue;
        shard->left++;
        status = file_open(shard, (enum shard_file)i, settings, hands, error);
    }
    free(from);
    return status;
}

void copy_shard_rest(struct copy_shard *shard)
{
    if (shard->index_opened)
        index_close(&shard->index);
    shard->index_opened = false;
}

void copy_shard_free(struct copy_shard *shard)
{
    copy_shard_rest(shard);
    free((void *)(uintptr_t)shard->index.values);
    for (int i = 0; i < COPY_FILES; i++)
        copy_file_free(&shard->files[i]);
    if (shard->temporary)
        (void)os_unlink(shard->index_path);
    free(shard->index_path);
    shard->index_path = NULL;
    shard->temporary = false;
}

bool copy_shard_changes(const struct copy_shard *shard)
{
    bool changes = !shard->index_there;
    for (int i = 0; i < SHARD_FILES; i++)
        changes = changes || (shard->files[i].parts && !shard->files[i].there);
    return changes;
}

enum tokmap_status copy_shard_name_files(struct copy_shard *shard, const struct copy_settings *settings,
                                         struct copy_hands *hands, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (!remote_is(shard->name->to))
        return TOKMAP_OK;
    for (int i = 0; i < SHARD_FILES && !status; i++)
        if (shard->files[i].parts)
            status = copy_file_name(&shard->files[i], hands, error);
    if (!settings->full || status || !copy_shard_changes(shard))
        return status;
    if (!shard->index.values) {
        status = index_open(&shard->index, shard->index_path, error);
        shard->index_opened = !status;
    }
    for (int i = 0; i < SHARD_FILES && !status; i++)
        if (shard->files[i].parts && !shard->files[i].there)
            status = copy_file_read_again(&shard->files[i], hands, error);
    copy_shard_rest(shard);
    return status;
}

/* Gives a file of values its name on a file system. */
static enum tokmap_status values_name(struct copy_file *file, struct tokmap_error *error)
{
    const int system = file->there || remote_is(file->to) ? 0 : name_file(-1, file->partial, file->to, true, NULL);
    file->made = file->made && system;
    return system ? error_set_system(error, system, file->to, TOKMAP_NO_OFFSET, "the values cannot be renamed")
                  : TOKMAP_OK;
}

enum tokmap_status copy_shard_name(struct copy_shard *shard, struct copy_hands *hands, struct tokmap_error *error)
{
    struct paths paths;
    bool visible = false;
    int fd = -1;
    if (shard->index.values)
        return values_name(&shard->files[SHARD_TOKENS], error);
    if (remote_is(shard->name->to))
        return copy_file_name(&shard->files[SHARD_INDEX], hands, error);
    if (!copy_shard_changes(shard)) {
        (void)os_unlink(shard->index_path);
        return TOKMAP_OK;
    }
    enum tokmap_status status = paths_make(&paths, shard->name->to) ? TOKMAP_OK : error_set_memory(error, lacking, 0);
    const int system = status ? 0 : partial_file_take(paths.commit.index_partial, &fd);
    if (system)
        status = error_set_system(error, system, paths.commit.index_partial, TOKMAP_NO_OFFSET,
                                  "another process has taken or removed this file; run the command again");
    if (!status)
        status = index_open(&shard->index, paths.commit.index_partial, error);
    if (!status) {
        paths.commit.id = shard->index.id;
        index_close(&shard->index);
        for (int i = 0; i < SHARD_FILES; i++)
            if (!shard->files[i].parts || shard->files[i].there)
                paths.commit.partials[i] = NULL;
        for (int i = 0; i < SHARD_FILES; i++)
            if (shard->files[i].there)
                paths.commit.names[i] = NULL;
        status = shard_commit(&paths.commit, &visible, error);
    }
    os_close(fd);
    paths_free(&paths);
    shard->index_made = shard->index_made && !visible;
    return status;
}

void copy_shard_abort(struct copy_shard *shard, struct copy_hands *hands)
{
    for (int i = 0; i < COPY_FILES; i++)
        copy_file_abort(&shard->files[i], hands);
    if (shard->index_made)
        (void)os_unlink(shard->index_path);
}

void copy_shard_abort_uploads(const struct copy_shard *shard, const struct copy_settings *settings,
                              struct copy_hands *hands)
{
    for (int i = 0; i < COPY_FILES && remote_is(shard->name->to); i++) {
        char *to = copy_file_path(shard->name->to, (enum shard_file)i, SHARD_FINAL);
        const char *upload = to ? upload_find(settings, to) : NULL;
        if (upload)
            (void)remote_upload_abort(&hands->client, to, upload, NULL);
        free(to);
    }
}
