/* SPDX-License-Identifier: MIT */
/*
 * skipped_items.c - see skipped_items.h. An item is struct item_head, the path, and the message. It has a hash of its
 * own, seeded with the key, the unit, and its place, because no process sees all bytes of a file that several of them
 * have continued.
 */
#include "skipped_items.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "work/work_units.h"

#define BUFFER ((size_t)64 << 10)
#define ENDING ".skipped"
#define SAVED 1 /* kind of the only increment */

struct item_head {
    uint32_t path_bytes, message_bytes;
    uint32_t status, reason;
    uint32_t line, flags;
    uint64_t offset, bytes;
    uint64_t hash;
};
enum { IS_FILE = 1, ASKED = 2 };

struct skipped_items {
    char *path;
    uint64_t seed;
    int fd;
    struct bytes_buffer buffer;
    struct skipped_size stored; /* bytes: those in the file */
    int failed;                 /* errno */
};

static const char lacking[] = "the list of what is left out"; /* in messages about memory */

static enum tokmap_status write_failed(const struct skipped_items *items, int system, struct tokmap_error *error)
{
    return error_set_system(error, system, items->path, TOKMAP_NO_OFFSET,
                            "the list of what is left out of a unit cannot be written");
}

/* Returns the seed of the hashes of a unit's items. */
static uint64_t seed_of(uint64_t key, uint64_t unit)
{
    return hash64_seeded(&unit, sizeof unit, key);
}

/* Returns the hash of an item, whose head is followed by its texts. `at`: its place in the file. */
static uint64_t item_hash(uint64_t seed, uint64_t at, const struct item_head *head, const uint8_t *texts)
{
    const uint64_t first = hash64_seeded(head, offsetof(struct item_head, hash), seed + at);
    return hash64_seeded(texts, (size_t)head->path_bytes + head->message_bytes, first);
}

/* ---- write ---- */

enum tokmap_status skipped_items_open(struct skipped_items **items, const char *folder, uint64_t key, uint64_t unit,
                                      struct tokmap_error *error)
{
    struct skipped_items *made = *items = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, lacking, BUFFER);
    made->seed = seed_of(key, unit);
    made->fd = -1;
    made->path = unit_path(folder, unit, ENDING);
    if (!made->path)
        return error_set_memory(error, lacking, BUFFER);
    const int system = os_open(made->path, OS_WRITE_OPEN, &made->fd);
    return system ? write_failed(made, system, error) : TOKMAP_OK;
}

static void buffer_write(struct skipped_items *items)
{
    if (!items->failed && items->buffer.count)
        items->failed = os_pwrite(items->fd, items->buffer.bytes, items->buffer.count, items->stored.bytes);
    items->stored.bytes += items->buffer.count;
    items->buffer.count = 0;
}

void skipped_items_add(struct skipped_items *items, const struct corpus_issue *issue, const struct tokmap_error *why)
{
    struct item_head head = {.path_bytes = (uint32_t)strlen(why->path),
                             .message_bytes = (uint32_t)strlen(why->message),
                             .status = (uint32_t)why->status,
                             .reason = (uint32_t)issue->left_out,
                             .line = why->line,
                             .flags = (issue->is_file ? IS_FILE : 0) | (issue->asked ? ASKED : 0),
                             .offset = why->offset,
                             .bytes = issue->bytes};
    struct bytes_buffer *buffer = &items->buffer;
    const size_t at = buffer->count;
    if (items->failed)
        return;
    if (!bytes_append(buffer, &head, sizeof head) || !bytes_append(buffer, why->path, head.path_bytes) ||
        !bytes_append(buffer, why->message, head.message_bytes)) {
        items->failed = ENOMEM;
        return;
    }
    head.hash = item_hash(items->seed, items->stored.bytes + at, &head, buffer->bytes + at + sizeof head);
    memcpy(buffer->bytes + at, &head, sizeof head);
    items->stored.items++;
    if (buffer->count >= BUFFER)
        buffer_write(items);
}

void skipped_items_save(struct skipped_items *items, struct state_sink *sink)
{
    buffer_write(items);
    sink->failed = items->failed ? items->failed : os_sync(items->fd);
    state_put(sink, SAVED, &items->stored, sizeof items->stored);
}

enum tokmap_status skipped_items_load(struct skipped_items *items, uint32_t kind, const uint8_t *bytes, size_t count,
                                      struct tokmap_error *error)
{
    struct skipped_size stored;
    uint64_t size;
    const bool known = kind == SAVED && count == sizeof stored;
    if (known)
        memcpy(&stored, bytes, sizeof stored);
    if (!known || os_file_bytes(items->fd, &size) || stored.bytes > size)
        return error_set(error, TOKMAP_ERROR_CORRUPT, items->path, TOKMAP_NO_OFFSET,
                         "this list is shorter than it was when the unit was interrupted; remove the unit's folder, "
                         "which has the same name and ends in .work, and run its task again");
    items->stored = stored;
    return TOKMAP_OK;
}

enum tokmap_status skipped_items_end(struct skipped_items *items, bool sync, struct skipped_size *size,
                                     struct tokmap_error *error)
{
    buffer_write(items);
    *size = items->stored;
    int system = items->failed;
    if (!system) /* what a killed process has written after its last checkpoint */
        system = os_truncate(items->fd, items->stored.bytes);
    if (!system && sync)
        system = os_sync(items->fd);
    if (!system && sync)
        system = os_sync_folder(items->path);
    return !system            ? TOKMAP_OK
           : system == ENOMEM ? error_set_memory(error, lacking, BUFFER)
                              : write_failed(items, system, error);
}

void skipped_items_free(struct skipped_items *items)
{
    if (!items)
        return;
    os_close(items->fd);
    bytes_free(&items->buffer);
    free(items->path);
    free(items);
}

/* ---- read ---- */

struct reading {
    char *path;
    int fd;
    uint64_t seed, bytes; /* bytes: of the file */
    uint64_t at;          /* bytes that were read */
};

static enum tokmap_status damaged(const struct reading *reading, struct tokmap_error *error)
{
    return error_set(
        error, TOKMAP_ERROR_CORRUPT, reading->path, TOKMAP_NO_OFFSET,
        "the list of what was left out of a unit is damaged, missing, or of other work; remove its record, "
        "the file packed- with its number, and, with a shuffle, cuts-000000, and run its task again");
}

static enum tokmap_status read_failed(const struct reading *reading, int system, struct tokmap_error *error)
{
    return system == ENOENT ? damaged(reading, error)
                            : error_set_system(error, system, reading->path, TOKMAP_NO_OFFSET,
                                               "the list of what was left out of a unit cannot be read");
}

static enum tokmap_status reading_open(struct reading *reading, struct tokmap_error *error)
{
    struct os_stat found = {0};
    int system = os_open(reading->path, OS_READ_NOW, &reading->fd);
    if (system)
        reading->fd = -1;
    else
        system = os_fstat(reading->fd, &found);
    if (system)
        return read_failed(reading, system, error);
    return found.kind == OS_KIND_FILE && found.bytes == reading->bytes ? TOKMAP_OK : damaged(reading, error);
}

/* Reads the next bytes. */
static enum tokmap_status bytes_read(struct reading *reading, void *into, size_t count, struct tokmap_error *error)
{
    size_t got = 0;
    const int system = os_pread(reading->fd, into, count, reading->at, &got);
    if (system)
        return read_failed(reading, system, error);
    reading->at += got;
    return got == count ? TOKMAP_OK : damaged(reading, error);
}

/* Reads the next item, and checks it. */
static enum tokmap_status item_read(struct reading *reading, struct corpus_issue *issue, struct tokmap_error *why,
                                    struct tokmap_error *error)
{
    struct item_head head;
    uint8_t texts[sizeof why->path + sizeof why->message];
    const uint64_t place = reading->at;
    enum tokmap_status status = bytes_read(reading, &head, sizeof head, error);
    if (status)
        return status;
    if (head.path_bytes >= sizeof why->path || head.message_bytes >= sizeof why->message)
        return damaged(reading, error);
    status = bytes_read(reading, texts, head.path_bytes + head.message_bytes, error);
    if (status)
        return status;
    if (head.hash != item_hash(reading->seed, place, &head, texts) || head.reason >= CORPUS_REASONS ||
        memchr(texts, '\0', head.path_bytes + head.message_bytes))
        return damaged(reading, error);
    *issue = (struct corpus_issue){.left_out = (enum corpus_reason)head.reason,
                                   .is_file = head.flags & IS_FILE,
                                   .asked = head.flags & ASKED,
                                   .bytes = head.bytes};
    *why = (struct tokmap_error){.status = (enum tokmap_status)head.status, .line = head.line, .offset = head.offset};
    memcpy(why->path, texts, head.path_bytes);
    memcpy(why->message, texts + head.path_bytes, head.message_bytes);
    return TOKMAP_OK;
}

enum tokmap_status skipped_items_read(const char *folder, uint64_t key, uint64_t unit, const struct skipped_size *size,
                                      const struct skipped_taker *taker, struct tokmap_error *error)
{
    struct reading reading = {
        .path = unit_path(folder, unit, ENDING), .fd = -1, .seed = seed_of(key, unit), .bytes = size->bytes};
    enum tokmap_status status = reading.path ? reading_open(&reading, error) : error_set_memory(error, lacking, BUFFER);
    for (uint64_t i = 0; !status && i < size->items; i++) {
        struct corpus_issue issue;
        struct tokmap_error why;
        status = item_read(&reading, &issue, &why, error);
        if (!status)
            status = taker->item(taker->user, &issue, &why, error);
    }
    if (!status && reading.at != reading.bytes)
        status = damaged(&reading, error);
    os_close(reading.fd);
    free(reading.path);
    return status;
}
