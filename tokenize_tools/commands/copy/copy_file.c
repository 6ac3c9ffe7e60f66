/* SPDX-License-Identifier: MIT */
#include "copy_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "format/partial_file.h"
#include "format/values_file.h"
#include "platform/os.h"
#include "text/path.h"

void copy_hands_free(struct copy_hands *hands)
{
    remote_client_free(&hands->client);
    sealed_reader_free(hands->reader);
    free(hands->bytes);
}

/* Makes room for what is read of a part. */
static enum tokmap_status hands_ready(struct copy_hands *hands, size_t bytes, struct tokmap_error *error)
{
    if (hands->capacity >= bytes)
        return TOKMAP_OK;
    free(hands->bytes);
    hands->bytes = malloc(bytes);
    hands->capacity = hands->bytes ? bytes : 0;
    return hands->bytes ? TOKMAP_OK : error_set_memory(error, "a part of a file", bytes);
}

/* ---- open ---- */

static enum tokmap_status size_differs(const char *name, uint64_t bytes, uint64_t wanted, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, name, min64(bytes, wanted),
                     "the file has %" PRIu64 " bytes, but its index says %" PRIu64
                     "; restore it from a good copy, or pack the shard again",
                     bytes, wanted);
}

static enum tokmap_status source_open(struct copy_file *file, struct copy_hands *hands, struct tokmap_error *error)
{
    struct os_stat found;
    if (remote_is(file->from)) {
        const enum tokmap_status status = remote_object_find(&hands->client, file->from, &file->version, error);
        return !status && file->version.bytes != file->bytes
                   ? size_differs(file->from, file->version.bytes, file->bytes, error)
                   : status;
    }
    int system = os_open(file->from, OS_READ, &file->from_fd);
    if (system == ENOENT && file->file != SHARD_INDEX) { /* a writer was killed, or is at work: shard_commit.h */
        char *saved = shard_file_replaced(file->from, file->index->id);
        system = saved ? os_open(saved, OS_READ, &file->from_fd) : ENOMEM;
        free(saved);
    }
    if (system)
        file->from_fd = -1;
    if (!system)
        system = os_fstat(file->from_fd, &found);
    if (system)
        return error_set_system(error, system, file->from, TOKMAP_NO_OFFSET, "the file cannot be read");
    return found.bytes != file->bytes ? size_differs(file->from, found.bytes, file->bytes, error) : TOKMAP_OK;
}

static enum tokmap_status exists(const struct copy_file *file, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_EXISTS, file->to, TOKMAP_NO_OFFSET,
                     "there is another file of this name; give --force to replace it, or choose another name");
}

/* Notes that there is a file of this name, which may be the same. */
static enum tokmap_status target_found(struct copy_file *file, uint64_t bytes, struct tokmap_error *error)
{
    file->comparing = bytes == file->bytes;
    return file->comparing || file->replace ? TOKMAP_OK : exists(file, error);
}

/* Opens the partial file of an earlier process, or makes one. */
static enum tokmap_status partial_open(struct copy_file *file, struct tokmap_error *error)
{
    int system = partial_file_reopen(file->partial, &file->to_fd);
    file->resumed = !system;
    if (system == ENOENT)
        system = os_open(file->partial, OS_WRITE_NEW, &file->to_fd);
    file->made = !system;
    if (system)
        file->to_fd = -1;
    else
        system = os_truncate(file->to_fd, file->bytes);
    return system ? error_set_system(error, system, file->partial, TOKMAP_NO_OFFSET, "the copy cannot be written")
                  : TOKMAP_OK;
}

static enum tokmap_status part_found(void *user, uint32_t number, uint64_t bytes, const char *tag,
                                     struct tokmap_error *error)
{
    struct copy_file *file = user;
    if (number > file->parts)
        return TOKMAP_OK;
    free(file->tags[number - 1]);
    file->tags[number - 1] = strdup(tag);
    file->sizes[number - 1] = bytes;
    return file->tags[number - 1] ? TOKMAP_OK : error_set_memory(error, "a file that is copied", 0);
}

/* Begins an upload, unless one continues. */
static enum tokmap_status upload_begin(struct copy_file *file, struct copy_hands *hands, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_ERROR_NOT_FOUND;
    if (!file->bytes)
        return TOKMAP_OK;
    if (file->upload.count)
        status = remote_parts_find(&hands->client, file->to, (const char *)file->upload.bytes, part_found, file, error);
    if (status != TOKMAP_ERROR_NOT_FOUND)
        return status;
    file->upload.count = 0;
    return remote_upload_begin(&hands->client, file->to, &file->upload, error);
}

static enum tokmap_status copy_open(struct copy_file *file, struct copy_hands *hands, struct tokmap_error *error)
{
    struct os_stat found;
    enum tokmap_status status = TOKMAP_OK;
    if (!remote_is(file->to)) {
        const int system = os_stat(file->to, &found);
        if (system && system != ENOENT)
            return error_set_system(error, system, file->to, TOKMAP_NO_OFFSET, "the copy cannot be written");
        if (!system)
            status = target_found(file, found.bytes, error);
        return status || file->comparing ? status : partial_open(file, error);
    }
    status = remote_object_find(&hands->client, file->to, &file->old, error);
    if (status == TOKMAP_ERROR_NOT_FOUND) {
        file->old = (struct remote_facts){.bytes = 0};
        return upload_begin(file, hands, error);
    }
    if (!status)
        status = target_found(file, file->old.bytes, error);
    if (status || !file->comparing)
        return status ? status : upload_begin(file, hands, error);
    /* An ETag of as many parts can be compared with the source, and does not cost another way over the network. */
    const char *dash = strchr(file->old.tag, '-');
    file->by_tag = dash && !file->old.keyed && strtoul(dash + 1, NULL, 10) == file->parts;
    return TOKMAP_OK;
}

char *copy_file_path(const char *stem, enum shard_file file, enum shard_state state)
{
    if (!values_file_is(stem))
        return shard_file_path(stem, file, state);
    return path_ended(stem, state == SHARD_PARTIAL ? ".copy.partial" : ""); /* a writer's is .values.partial */
}

enum tokmap_status copy_file_open(struct copy_file *file, const char *from, const char *to, const char *upload,
                                  struct copy_hands *hands, struct tokmap_error *error)
{
    file->from_fd = file->to_fd = -1;
    file->bytes = file->file == SHARD_INDEX ? file->index->file_bytes : shard_file_size(file->index, file->file);
    file->part_bytes = max64(file->part_bytes ? file->part_bytes : COPY_PART_BYTES,
                             round_up(div_ceil(file->bytes, UPLOAD_PARTS_MOST), COPY_ALIGN));
    file->parts = file->left = (uint32_t)max64(div_ceil(file->bytes, file->part_bytes), 1);
    file->from = copy_file_path(from, file->file, SHARD_FINAL);
    file->to = copy_file_path(to, file->file, SHARD_FINAL);
    bool good = file->from && file->to;
    if (remote_is(to)) {
        file->tags = calloc(file->parts, sizeof *file->tags);
        file->sizes = calloc(file->parts, sizeof *file->sizes);
        file->hashes = calloc(file->parts, sizeof *file->hashes);
        good = good && file->tags && file->sizes && file->hashes &&
               (!upload || bytes_append(&file->upload, upload, strlen(upload) + 1));
    } else {
        file->partial = copy_file_path(to, file->file, SHARD_PARTIAL);
        good = good && file->partial;
    }
    enum tokmap_status status = good ? TOKMAP_OK : error_set_memory(error, "a file that is copied", 0);
    if (!status)
        status = source_open(file, hands, error);
    return status ? status : copy_open(file, hands, error);
}

static void file_close(struct copy_file *file)
{
    os_close(file->from_fd);
    os_close(file->to_fd);
    file->from_fd = file->to_fd = -1;
}

void copy_file_free(struct copy_file *file)
{
    if (file->from)
        file_close(file);
    for (uint32_t i = 0; file->tags && i < file->parts; i++)
        free(file->tags[i]);
    free(file->tags);
    free(file->sizes);
    free(file->hashes);
    free(file->from);
    free(file->to);
    free(file->partial);
    bytes_free(&file->upload);
    *file = (struct copy_file){.from_fd = -1, .to_fd = -1};
}

/* ---- parts ---- */

static enum tokmap_status local_read(const char *name, int fd, uint64_t at, size_t count, uint8_t *into,
                                     struct tokmap_error *error)
{
    size_t got = 0;
    const int system = os_pread(fd, into, count, at, &got);
    if (system)
        return error_set_system(error, system, name, at, "the file cannot be read from storage");
    return got == count ? TOKMAP_OK
                        : error_set(error, TOKMAP_ERROR_TRUNCATED, name, at + got,
                                    "the file ends at this byte, and was longer when it was opened");
}

/* Bytes [at, at + count) of a file, and the ranges that they are in. These are read: `bytes` bytes from byte `from`. */
struct part {
    uint64_t at, from;
    size_t count, bytes;
    uint64_t first, end;
};

static enum tokmap_status part_find(const struct copy_file *file, uint32_t number, struct copy_hands *hands,
                                    struct part *part, struct tokmap_error *error)
{
    const uint64_t at = number * file->part_bytes, count = min64(file->part_bytes, file->bytes - at);
    uint64_t bytes = count;
    enum tokmap_status status = TOKMAP_OK;
    *part = (struct part){.at = at, .from = at, .count = (size_t)count};
    if (file->file != SHARD_INDEX)
        status = shard_ranges_find(file->index, file->file, at, count, &part->first, &part->end, error);
    if (!status && part->first < part->end)
        status = shard_ranges_place(file->index, file->file, part->first, part->end, &part->from, &bytes, error);
    part->bytes = (size_t)bytes;
    return status ? status : hands_ready(hands, part->bytes + 1, error);
}

static enum tokmap_status source_read(const struct copy_file *file, const struct part *part, struct copy_hands *hands,
                                      struct tokmap_error *error)
{
    return file->from_fd < 0 ? remote_object_read(&hands->client, file->from, &file->version, part->from, part->bytes,
                                                  hands->bytes, error)
                             : local_read(file->from, file->from_fd, part->from, part->bytes, hands->bytes, error);
}

/* Compares what the thread has read of `name` with the index. */
static enum tokmap_status part_check(const struct copy_file *file, const char *name, const struct part *part,
                                     struct copy_hands *hands, struct tokmap_error *error)
{
    return part->first == part->end ? TOKMAP_OK
                                    : shard_ranges_check(file->index, file->file, part->first, part->end, name,
                                                         hands->bytes, &hands->reader, error);
}

/* Reads a part of what has the name, and compares it: with the index, or that of an index with the source. */
static enum tokmap_status target_check(struct copy_file *file, const struct part *part, struct copy_hands *hands,
                                       struct tokmap_error *error)
{
    enum tokmap_status status;
    if (remote_is(file->to)) {
        status = remote_object_read(&hands->client, file->to, &file->old, part->from, part->bytes, hands->bytes, error);
    } else {
        int fd;
        const int system = os_open(file->to, OS_READ, &fd);
        if (system)
            return error_set_system(error, system, file->to, part->from, "the file cannot be read");
        status = local_read(file->to, fd, part->from, part->bytes, hands->bytes, error);
        os_close(fd);
    }
    if (status || file->file != SHARD_INDEX)
        return status ? status : part_check(file, file->to, part, hands, error);
    uint8_t *other = malloc(part->bytes + 1);
    if (!other)
        return error_set_memory(error, "a file that is copied", 0);
    memcpy(other, hands->bytes, part->bytes);
    status = source_read(file, part, hands, error);
    if (!status && memcmp(other, hands->bytes, part->bytes) != 0)
        status = exists(file, error);
    free(other);
    return status;
}

static enum tokmap_status part_send(struct copy_file *file, uint32_t number, const struct part *part,
                                    struct copy_hands *hands, struct tokmap_error *error)
{
    const uint8_t *bytes = hands->bytes + (part->at - part->from);
    const size_t count = part->count;
    char wanted[HTTP_TAG_MOST], tag[HTTP_TAG_MOST];
    if (!remote_is(file->to)) {
        const int system = os_pwrite(file->to_fd, bytes, count, part->at);
        hands->sent += count;
        return system ? error_set_system(error, system, file->partial, part->at, "the copy cannot be written")
                      : TOKMAP_OK;
    }
    md5(bytes, count, file->hashes[number]);
    if (file->comparing || !count)
        return TOKMAP_OK;
    remote_tag_of(&file->hashes[number], 1, false, wanted);
    if (file->tags[number] && file->sizes[number] == count && !strcmp(file->tags[number], wanted)) {
        hands->kept += count;
        return TOKMAP_OK;
    }
    const enum tokmap_status status = remote_upload_part(&hands->client, file->to, (const char *)file->upload.bytes,
                                                         number + 1, bytes, count, file->hashes[number], tag, error);
    if (status)
        return status;
    hands->sent += count;
    free(file->tags[number]);
    file->tags[number] = strdup(tag);
    return file->tags[number] ? TOKMAP_OK : error_set_memory(error, "a file that is copied", 0);
}

enum tokmap_status copy_file_part(struct copy_file *file, uint32_t number, struct copy_hands *hands,
                                  struct tokmap_error *error)
{
    struct part part;
    enum tokmap_status status = part_find(file, number, hands, &part, error);
    if (!status && file->comparing && !file->by_tag) {
        if (__atomic_load_n(&file->differs, __ATOMIC_RELAXED))
            return TOKMAP_OK;
        status = target_check(file, &part, hands, error);
        if (status != TOKMAP_ERROR_CORRUPT && status != TOKMAP_ERROR_EXISTS && status != TOKMAP_ERROR_TRUNCATED)
            return status;
        __atomic_store_n(&file->differs, 1, __ATOMIC_RELAXED);
        return TOKMAP_OK;
    }
    if (!status && file->resumed &&
        !local_read(file->partial, file->to_fd, part.from, part.bytes, hands->bytes, NULL) &&
        !part_check(file, file->partial, &part, hands, NULL)) {
        hands->kept += part.count;
        return TOKMAP_OK;
    }
    if (!status)
        status = source_read(file, &part, hands, error);
    if (!status)
        status = part_check(file, file->from, &part, hands, error);
    return status ? status : part_send(file, number, &part, hands, error);
}

/* ---- the end ---- */

/* Reads a file again, and compares it. */
static enum tokmap_status all_check(struct copy_file *file, bool partial, struct copy_hands *hands,
                                    struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < file->parts && !status; i++) {
        struct part part;
        status = part_find(file, i, hands, &part, error);
        if (!status && partial) {
            status = local_read(file->partial, file->to_fd, part.from, part.bytes, hands->bytes, error);
            status = status ? status : part_check(file, file->partial, &part, hands, error);
        } else if (!status) {
            status = target_check(file, &part, hands, error);
        }
    }
    return status;
}

enum tokmap_status copy_file_read_again(struct copy_file *file, struct copy_hands *hands, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (remote_is(file->to))
        status = remote_object_find(&hands->client, file->to, &file->old, error);
    return status ? status : all_check(file, false, hands, error);
}

enum tokmap_status copy_file_end(struct copy_file *file, bool full, bool *again, struct copy_hands *hands,
                                 struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    char wanted[HTTP_TAG_MOST];
    *again = false;
    if (file->comparing) {
        if (file->by_tag) {
            remote_tag_of((const uint8_t(*)[MD5_BYTES])file->hashes, file->parts, true, wanted);
            file->differs = strcmp(file->old.tag, wanted) != 0;
        }
        file->there = !file->differs;
        hands->kept += file->there ? file->bytes : 0;
        if (file->there) {
            file_close(file);
            return TOKMAP_OK;
        }
        file->comparing = file->by_tag = false;
        *again = true;
        return !file->replace        ? exists(file, error)
               : remote_is(file->to) ? upload_begin(file, hands, error)
                                     : partial_open(file, error);
    }
    if (!remote_is(file->to)) {
        const int system = os_sync(file->to_fd);
        if (system)
            status = error_set_system(error, system, file->partial, TOKMAP_NO_OFFSET, "the copy cannot be written");
        if (!status && full)
            status = all_check(file, true, hands, error);
    }
    file_close(file);
    return status;
}

enum tokmap_status copy_file_name(struct copy_file *file, struct copy_hands *hands, struct tokmap_error *error)
{
    char wanted[HTTP_TAG_MOST];
    if (file->there || !remote_is(file->to))
        return TOKMAP_OK;
    if (!file->bytes)
        return remote_object_put(&hands->client, file->to, "", 0, NULL, error);
    remote_tag_of((const uint8_t(*)[MD5_BYTES])file->hashes, file->parts, true, wanted);
    const enum tokmap_status status = remote_upload_end(&hands->client, file->to, (const char *)file->upload.bytes,
                                                        file->tags, file->parts, file->bytes, wanted, error);
    if (!status)
        file->upload.count = 0;
    return status;
}

void copy_file_abort(struct copy_file *file, struct copy_hands *hands)
{
    if (file->upload.count)
        (void)remote_upload_abort(&hands->client, file->to, (const char *)file->upload.bytes, NULL);
    file->upload.count = 0;
    if (file->made)
        (void)os_unlink(file->partial);
    file->made = false;
}
