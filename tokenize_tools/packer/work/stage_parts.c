/* SPDX-License-Identifier: MIT */
#include "stage_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"

/* Head of the state of a part. */
struct part_head {
    uint64_t before; /* the token of the parts before it */
    uint64_t stays;
};

struct stage_id stage_part_id(const struct stage_parts *parts, uint64_t part)
{
    struct stage_id id = parts->id;
    id.part = part + 1;
    return id;
}

/* Adds a part to the token. It is never 0, which says that there is none. */
static uint64_t token_next(uint64_t token, uint64_t digest)
{
    const uint64_t both[] = {token, digest};
    const uint64_t next = hash64(both, sizeof both);
    return next ? next : 1;
}

enum tokmap_status stage_parts_find(struct stage_parts *parts, const struct stage_id *file, uint64_t sections,
                                    void *state, uint32_t state_bytes, struct tokmap_error *error)
{
    struct bytes_buffer bytes = {0};
    uint64_t token = 0;
    assert(!file->part && sections && state_bytes <= STAGE_STATE_MOST);
    enum tokmap_status status = TOKMAP_OK;
    *parts = (struct stage_parts){.id = *file};
    parts->id.sections = sections;
    for (uint64_t part = 0; !status; part++) {
        const struct stage_id id = stage_part_id(parts, part);
        struct part_head head;
        uint64_t digest = 0;
        status = stage_section_load(&bytes, &id, sections - 1, sizeof head + STAGE_STATE_MOST, error);
        if (!status && bytes.count != sizeof head + state_bytes)
            status = stage_corrupt(&id, error);
        if (!status)
            status = stage_digest(&id, &digest, error);
        if (status)
            break;
        memcpy(&head, bytes.bytes, sizeof head);
        if (head.before != token)
            break;
        token = token_next(token, digest);
        if (head.stays) {
            memcpy(state, bytes.bytes + sizeof head, state_bytes);
            parts->count = part + 1;
            parts->token = token;
        }
    }
    bytes_free(&bytes);
    return status == TOKMAP_ERROR_NOT_FOUND ? TOKMAP_OK : status;
}

enum tokmap_status stage_part_open(const struct stage_parts *parts, struct stage_writer **writer,
                                   struct tokmap_error *error)
{
    const struct stage_id id = stage_part_id(parts, parts->count);
    return stage_writer_open(writer, &id, error);
}

enum tokmap_status stage_part_commit(struct stage_parts *parts, struct stage_writer *writer, bool stays,
                                     const void *state, uint32_t state_bytes, bool sync, struct tokmap_error *error)
{
    const struct part_head head = {.before = parts->token, .stays = stays};
    const struct stage_id id = stage_part_id(parts, parts->count);
    uint64_t digest = 0;
    assert(state_bytes <= STAGE_STATE_MOST);
    enum tokmap_status status = stage_writer_next(writer, error);
    if (!status)
        status = stage_writer_add(writer, &head, sizeof head, error);
    if (!status)
        status = stage_writer_add(writer, state, state_bytes, error);
    if (!status)
        status = stage_writer_commit(writer, sync, error);
    stage_writer_free(writer);
    if (!status)
        status = stage_digest(&id, &digest, error);
    if (status)
        return status;
    parts->token = token_next(parts->token, digest);
    parts->count++;
    return TOKMAP_OK;
}

enum tokmap_status stage_parts_copy(const struct stage_parts *parts, uint64_t section, struct stage_writer *into,
                                    struct tokmap_error *error)
{
    assert(section + 1 < parts->id.sections);
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t part = 0; part < parts->count && !status; part++) {
        const struct stage_id id = stage_part_id(parts, part);
        status = stage_section_copy(into, &id, section, error);
    }
    return status;
}

void stage_parts_remove(const struct stage_parts *parts)
{
    uint64_t end = parts->count;
    struct stage_id id = stage_part_id(parts, end);
    while (stage_exists(&id))
        id = stage_part_id(parts, ++end);
    while (end-- > 0) {
        id = stage_part_id(parts, end);
        stage_remove(&id);
    }
}

/* A heap has the numbers of the sections that are not at their end; the first one of
 * it has the next record. The record that is returned stays in its section's head until the next call. */

struct source {
    struct stage_reader reader;
    struct stage_record head;
};

struct stage_merge {
    struct source *sources;
    uint64_t *heap;
    uint64_t count, capacity, heap_count;
    uint32_t buffer_bytes;
    bool begun;
};

enum tokmap_status stage_merge_new(struct stage_merge **merge, uint64_t count, uint32_t buffer_bytes,
                                   struct tokmap_error *error)
{
    struct stage_merge *made = *merge = calloc(1, sizeof *made);
    if (made) {
        made->sources = calloc((size_t)max64(count, 1), sizeof *made->sources);
        made->heap = calloc((size_t)max64(count, 1), sizeof *made->heap);
        made->capacity = count;
        made->buffer_bytes = buffer_bytes;
    }
    if (made && made->sources && made->heap)
        return TOKMAP_OK;
    stage_merge_free(made);
    *merge = NULL;
    return error_set_memory(error, "the merging of lists of documents", count * sizeof(struct source));
}

void stage_merge_free(struct stage_merge *merge)
{
    if (!merge)
        return;
    for (uint64_t i = 0; merge->sources && i < merge->count; i++)
        stage_reader_free(&merge->sources[i].reader);
    free(merge->sources);
    free(merge->heap);
    free(merge);
}

/* Reads the next record of a source. *more: there is one. */
static enum tokmap_status source_next(struct source *source, bool *more, struct tokmap_error *error)
{
    const void *next;
    const struct stage_record before = source->head;
    const enum tokmap_status status = stage_reader_next(&source->reader, &next, error);
    *more = !status && next;
    if (*more)
        memcpy(&source->head, next, sizeof source->head);
    return status ? status
           : *more && stage_is_before(&source->head, &before)
               ? error_set(error, TOKMAP_ERROR_CORRUPT, source->reader.path, TOKMAP_NO_OFFSET,
                           "this file of unfinished work is damaged: its documents are not in order; remove it, and "
                           "run all tasks again; without tasks, start over with --no-resume")
               : TOKMAP_OK;
}

/* Moves the source at heap[at] down until it is before those below it. */
static void heap_sink(struct stage_merge *merge, uint64_t at)
{
    uint64_t *heap = merge->heap;
    for (;;) {
        uint64_t first = at;
        for (uint64_t child = 2 * at + 1; child <= 2 * at + 2 && child < merge->heap_count; child++)
            if (stage_is_before(&merge->sources[heap[child]].head, &merge->sources[heap[first]].head))
                first = child;
        if (first == at)
            return;
        const uint64_t moved = heap[at];
        heap[at] = heap[first];
        heap[first] = moved;
        at = first;
    }
}

enum tokmap_status stage_merge_add(struct stage_merge *merge, const struct stage_id *id, uint64_t section,
                                   struct tokmap_error *error)
{
    bool more = false;
    assert(merge->count < merge->capacity && !merge->begun);
    struct source *source = &merge->sources[merge->count++];
    enum tokmap_status status =
        stage_reader_open(&source->reader, id, section, sizeof(struct stage_record), merge->buffer_bytes, error);
    if (!status)
        status = source_next(source, &more, error);
    if (more)
        merge->heap[merge->heap_count++] = merge->count - 1;
    else /* many sections may be empty */
        stage_reader_free(&source->reader);
    return status;
}

enum tokmap_status stage_merge_next(struct stage_merge *merge, const struct stage_record **record,
                                    struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    *record = NULL;
    if (merge->begun && merge->heap_count) {
        struct source *source = &merge->sources[merge->heap[0]];
        bool more;
        status = source_next(source, &more, error);
        if (!more) {
            stage_reader_free(&source->reader);
            merge->heap[0] = merge->heap[--merge->heap_count];
        }
        heap_sink(merge, 0);
    } else if (!merge->begun) {
        for (uint64_t i = merge->heap_count / 2; i-- > 0;)
            heap_sink(merge, i);
        merge->begun = true;
    }
    if (!status && merge->heap_count)
        *record = &merge->sources[merge->heap[0]].head;
    return status;
}
