/* SPDX-License-Identifier: MIT */
/* stage_parts.c - see stage_parts.h. */
#include "stage_parts.h"

#include <assert.h>
#include <string.h>

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
