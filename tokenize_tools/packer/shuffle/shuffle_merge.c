/* SPDX-License-Identifier: MIT */
/*
 * shuffle_merge.c - see shuffle_merge.h.
 *
 * Each chunk has a cursor with a buffer. A binary heap has the cursors, that with the first place on top. Only the head
 * of a record must be in a buffer to find its place; the whole record is needed once it is on top, and if it does not
 * end in the buffer, it is completed in memory that all cursors share. So the buffers may be smaller than a record.
 *
 * Example: 100 chunks share 96 MiB, so a buffer has 983,040 bytes, and a chunk of 96 MiB is read in 103 steps, each of
 * which is asked for when the one before it is read. Fewer chunks have buffers of 1 MiB: while a larger one is filled,
 * the thread of the shard writer would finish what it has, and wait.
 */
#include "shuffle_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define BUFFER_LEAST ((uint64_t)4096)
#define BUFFER_MOST ((uint64_t)1 << 20)
#define PLACES 4096 /* in an increment that is saved */

struct cursor {
    struct shuffle_place place; /* of its next record */
    struct shuffle_head head;
    uint8_t *buffer;
    uint64_t at, filled; /* in the buffer: the next record, and the end of what was read */
    uint64_t offset;     /* in the file, of the byte after those in the buffer */
    uint64_t end;        /* of the chunk in the file */
    const struct shuffle_chunk *chunk;
};

struct shuffle_merge {
    const struct shuffle_chunks *chunks;
    uint64_t next; /* of the records in memory, if there is no chunk */
    struct cursor *cursors;
    uint64_t cursor_count;
    uint64_t *heap; /* numbers of cursors */
    uint64_t heap_count;
    uint64_t buffer_bytes;
    uint8_t *whole; /* a record that does not end in its buffer */
    struct shuffle_place last;
    bool any; /* `last` is that of a record */
};

enum tokmap_status shuffle_file_damaged(const char *folder, uint64_t offset, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, folder, TOKMAP_NO_OFFSET,
                     "byte %" PRIu64
                     " of a temporary file with documents to shuffle, which was written to this folder, is not what "
                     "was written: the storage or the memory of this machine is not reliable; check it, and pack again",
                     offset);
}

enum tokmap_status shuffle_file_read(const char *folder, int fd, void *into, uint64_t bytes, uint64_t offset,
                                     struct tokmap_error *error)
{
    size_t got = 0;
    const int system = os_pread(fd, into, (size_t)bytes, offset, &got);
    if (system)
        return error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                                "documents to shuffle, in a temporary file in this folder, cannot be read");
    return got == bytes ? TOKMAP_OK : shuffle_file_damaged(folder, offset + got, error);
}

/* ---- cursors ---- */

/* Returns the status of a record that is not what was written. */
static enum tokmap_status damaged(const struct shuffle_merge *merge, const struct cursor *cursor, uint64_t offset,
                                  struct tokmap_error *error)
{
    const struct shuffle_chunks *chunks = merge->chunks;
    return chunks->damaged ? chunks->damaged(chunks->self, cursor->chunk->file, offset, error)
                           : shuffle_file_damaged(chunks->folder, offset, error);
}

static enum tokmap_status cursor_read(const struct shuffle_merge *merge, const struct cursor *cursor, void *into,
                                      uint64_t bytes, struct tokmap_error *error)
{
    const struct shuffle_chunks *chunks = merge->chunks;
    const uint64_t ahead = cursor->end - cursor->offset - bytes;
    int fd = cursor->chunk->fd;
    enum tokmap_status status =
        chunks->reopen ? chunks->reopen(chunks->self, cursor->chunk->file, &fd, error) : TOKMAP_OK;
    if (!status)
        status = shuffle_file_read(chunks->folder, fd, into, bytes, cursor->offset, error);
    if (!status && ahead)
        os_read_ahead(fd, cursor->offset + bytes, min64(merge->buffer_bytes, ahead));
    return status == TOKMAP_ERROR_CORRUPT ? damaged(merge, cursor, cursor->offset, error) : status;
}

/* Fills the buffer from the next record on. */
static enum tokmap_status cursor_fill(const struct shuffle_merge *merge, struct cursor *cursor,
                                      struct tokmap_error *error)
{
    const uint64_t kept = cursor->filled - cursor->at;
    const uint64_t more = min64(merge->buffer_bytes - kept, cursor->end - cursor->offset);
    memmove(cursor->buffer, cursor->buffer + cursor->at, (size_t)kept);
    cursor->at = 0;
    cursor->filled = kept;
    const enum tokmap_status status = cursor_read(merge, cursor, cursor->buffer + kept, more, error);
    if (status)
        return status;
    cursor->filled += more;
    cursor->offset += more;
    return TOKMAP_OK;
}

/* Finds the place of the next record. Statuses: OK, END (the chunk has no more), those of reading. */
static enum tokmap_status cursor_look(const struct shuffle_merge *merge, struct cursor *cursor,
                                      struct tokmap_error *error)
{
    const uint64_t left = cursor->filled - cursor->at + (cursor->end - cursor->offset);
    struct shuffle_head *head = &cursor->head;
    if (!left)
        return TOKMAP_END;
    if (cursor->filled - cursor->at < sizeof *head && left >= sizeof *head) {
        const enum tokmap_status status = cursor_fill(merge, cursor, error);
        if (status)
            return status;
    }
    if (left >= sizeof *head)
        memcpy(head, cursor->buffer + cursor->at, sizeof *head);
    if (left < sizeof *head || head->bytes < sizeof *head || head->bytes % 8 || head->bytes > left ||
        head->bytes > SHUFFLE_RECORD_MOST)
        return damaged(merge, cursor, cursor->end - left, error);
    cursor->place = shuffle_place_of(merge->chunks->seed, head->input, head->position);
    return TOKMAP_OK;
}

/* Takes the record that cursor_look() has found. */
static enum tokmap_status cursor_take(const struct shuffle_merge *merge, struct cursor *cursor, const uint8_t **record,
                                      struct tokmap_error *error)
{
    const uint64_t bytes = cursor->head.bytes, have = min64(cursor->filled - cursor->at, bytes);
    const uint64_t begin = cursor->offset - (cursor->filled - cursor->at);
    *record = cursor->buffer + cursor->at;
    cursor->at += have;
    if (have < bytes) {
        memcpy(merge->whole, *record, (size_t)have);
        *record = merge->whole;
        const enum tokmap_status status = cursor_read(merge, cursor, merge->whole + have, bytes - have, error);
        if (status)
            return status;
        cursor->offset += bytes - have;
    }
    return shuffle_record_sound(*record, &cursor->head) ? TOKMAP_OK : damaged(merge, cursor, begin, error);
}

/* ---- the heap ---- */

static bool heap_precedes(const struct shuffle_merge *merge, uint64_t a, uint64_t b)
{
    return shuffle_precedes(&merge->cursors[merge->heap[a]].place, &merge->cursors[merge->heap[b]].place);
}

/* Moves element i down until both elements below it follow it. */
static void heap_sink(struct shuffle_merge *merge, uint64_t i)
{
    for (;;) {
        uint64_t first = i;
        for (uint64_t below = 2 * i + 1; below <= 2 * i + 2 && below < merge->heap_count; below++)
            if (heap_precedes(merge, below, first))
                first = below;
        if (first == i)
            return;
        const uint64_t moved = merge->heap[i];
        merge->heap[i] = merge->heap[first];
        merge->heap[first] = moved;
        i = first;
    }
}

/* Looks for the next record of the cursor on top, and puts it in its place. */
static enum tokmap_status heap_advance(struct shuffle_merge *merge, struct tokmap_error *error)
{
    const enum tokmap_status status = cursor_look(merge, &merge->cursors[merge->heap[0]], error);
    if (status && status != TOKMAP_END)
        return status;
    if (status == TOKMAP_END)
        merge->heap[0] = merge->heap[--merge->heap_count];
    heap_sink(merge, 0);
    return TOKMAP_OK;
}

/* ---- the merge ---- */

static enum tokmap_status cursors_open(struct shuffle_merge *merge, struct tokmap_error *error)
{
    const struct shuffle_chunks *chunks = merge->chunks;
    const uint64_t count = chunks->chunk_count;
    const uint64_t each = max64(chunks->chunk_bytes / count, BUFFER_LEAST);
    merge->buffer_bytes = round_down(min64(each, BUFFER_MOST), BUFFER_LEAST);
    merge->cursors = calloc(count, sizeof *merge->cursors);
    merge->heap = malloc(count * sizeof *merge->heap);
    /* A killed process that had more memory than this one may have written longer records than this one would. */
    merge->whole = malloc((size_t)SHUFFLE_RECORD_MOST);
    if (!merge->cursors || !merge->heap || !merge->whole)
        return error_set_memory(error, "the chunks", count * sizeof *merge->cursors);
    enum tokmap_status status = TOKMAP_OK;
    for (; merge->cursor_count < count && !status; merge->cursor_count++) {
        const struct shuffle_chunk *chunk = &chunks->chunks[merge->cursor_count];
        struct cursor *cursor = &merge->cursors[merge->cursor_count];
        *cursor = (struct cursor){.chunk = chunk, .offset = chunk->begin, .end = chunk->end};
        cursor->buffer = malloc((size_t)merge->buffer_bytes);
        if (!cursor->buffer)
            return error_set_memory(error, "the chunks", count * merge->buffer_bytes);
        status = cursor_look(merge, cursor, error);
        if (!status)
            merge->heap[merge->heap_count++] = merge->cursor_count;
        else if (status == TOKMAP_END) /* a killed process has merged all of the chunk */
            status = TOKMAP_OK;
    }
    for (uint64_t i = merge->heap_count / 2; i-- && !status;)
        heap_sink(merge, i);
    return status;
}

enum tokmap_status shuffle_merge_open(struct shuffle_merge **merge, const struct shuffle_chunks *chunks,
                                      struct tokmap_error *error)
{
    struct shuffle_merge *made = *merge = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the merge of the chunks", sizeof *made);
    made->chunks = chunks;
    const enum tokmap_status status = chunks->chunk_count ? cursors_open(made, error) : TOKMAP_OK;
    if (status) {
        shuffle_merge_close(made);
        *merge = NULL;
    }
    return status;
}

void shuffle_merge_close(struct shuffle_merge *merge)
{
    if (!merge)
        return;
    for (uint64_t i = 0; i < merge->cursor_count; i++)
        free(merge->cursors[i].buffer);
    free(merge->cursors);
    free(merge->heap);
    free(merge->whole);
    free(merge);
}

enum tokmap_status shuffle_merge_next(struct shuffle_merge *merge, struct shuffle_head *head, const uint8_t **record,
                                      struct tokmap_error *error)
{
    if (!merge->chunks->chunk_count) {
        *record = shuffle_chunks_record(merge->chunks, merge->next);
        if (!*record)
            return TOKMAP_END;
        memcpy(head, *record, sizeof *head);
        merge->next++;
        return TOKMAP_OK;
    }
    /* The record of the last call was in the buffer of the cursor on top, which only now moves on. */
    enum tokmap_status status = merge->any && merge->heap_count ? heap_advance(merge, error) : TOKMAP_OK;
    if (status || !merge->heap_count)
        return status ? status : TOKMAP_END;
    struct cursor *first = &merge->cursors[merge->heap[0]];
    const uint64_t begin = first->offset - (first->filled - first->at);
    if (merge->any && !shuffle_precedes(&merge->last, &first->place))
        return damaged(merge, first, begin, error);
    status = cursor_take(merge, first, record, error);
    *head = first->head;
    merge->last = first->place;
    merge->any = true;
    return status;
}

const struct shuffle_chunk *shuffle_merge_from(const struct shuffle_merge *merge)
{
    return merge->cursors[merge->heap[0]].chunk;
}

/* ---- for another process that continues ---- */

void shuffle_merge_save(const struct shuffle_merge *merge, uint32_t kind, struct state_sink *sink)
{
    uint64_t increment[PLACES + 1];
    for (uint64_t i = 0; i < merge->cursor_count; i += PLACES) {
        const uint64_t count = min64(PLACES, merge->cursor_count - i);
        increment[0] = i;
        for (uint64_t k = 0; k < count; k++) {
            const struct cursor *cursor = &merge->cursors[i + k];
            increment[k + 1] = cursor->offset - (cursor->filled - cursor->at);
        }
        state_put(sink, kind, increment, (size_t)(8 * (count + 1)));
    }
}

int shuffle_places_load(struct bytes_buffer *places, const uint8_t *bytes, size_t count)
{
    const uint64_t known = places->count / 8, first = count < 16 || count % 8 ? UINT64_MAX : load64(bytes);
    if (first > known)
        return EINVAL;
    const uint64_t again = min64(known - first, count / 8 - 1);
    if (again)
        memcpy(places->bytes + 8 * first, bytes + 8, 8 * again);
    return bytes_append(places, bytes + 8 * (again + 1), count - 8 * (again + 1)) ? 0 : ENOMEM;
}

bool shuffle_places_restore(const struct bytes_buffer *places, struct shuffle_chunks *chunks)
{
    if (places->count != 8 * chunks->chunk_count)
        return false;
    for (uint64_t i = 0; i < chunks->chunk_count; i++) {
        const uint64_t at = load64(places->bytes + 8 * i);
        if (at < chunks->chunks[i].begin || at > chunks->chunks[i].end)
            return false;
        chunks->chunks[i].begin = at;
    }
    return true;
}
