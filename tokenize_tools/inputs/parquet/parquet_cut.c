/* SPDX-License-Identifier: MIT */
/* parquet_cut.c - see parquet_cut.h. */
#include "parquet_cut.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"

/* Returns the pages of the first column in a row group. */
static const struct parquet_chunk *first_chunk(const struct parquet_footer *footer, uint64_t group)
{
    assert(group < footer->group_count && footer->column_count);
    return &footer->chunks[group * footer->column_count];
}

struct parquet_part parquet_cut_part(const struct parquet_footer *footer, uint64_t first, uint64_t end)
{
    struct parquet_part part = {.first = first, .end = end};
    part.begin = first ? first_chunk(footer, first)->offset : 0;
    part.bytes = (end < footer->group_count ? first_chunk(footer, end)->offset : footer->file_bytes) - part.begin;
    return part;
}

static enum tokmap_status part_add(struct parquet_cut *cut, uint64_t *capacity, const struct parquet_part *part,
                                   struct tokmap_error *error)
{
    if (!list_room(&cut->parts, cut->count, capacity, sizeof *cut->parts))
        return error_set_memory(error, "the parts of a Parquet file", sizeof *cut->parts);
    cut->parts[cut->count++] = *part;
    return TOKMAP_OK;
}

enum tokmap_status parquet_cut_make(struct parquet_cut *cut, const struct parquet_footer *footer, uint64_t part_bytes,
                                    struct tokmap_error *error)
{
    uint64_t capacity = 0, first = 0, before = UINT64_MAX, filled = 0;
    enum tokmap_status status = TOKMAP_OK;
    assert(part_bytes);
    *cut = (struct parquet_cut){.hash = parquet_cut_hash(footer)};
    if (!cut->hash)
        return error_set_memory(error, "the parts of a Parquet file", 0);
    for (uint64_t group = 0; group < footer->group_count && !status; group++) {
        const struct parquet_chunk *chunk = first_chunk(footer, group);
        if (!chunk->values)
            continue;
        if (chunk->offset < filled) { /* not in this order */
            cut->count = 0;
            return TOKMAP_OK;
        }
        filled = chunk->offset + chunk->bytes;
        const uint64_t multiple = chunk->offset / part_bytes;
        if (before != UINT64_MAX && multiple != before) {
            const struct parquet_part part = parquet_cut_part(footer, first, group);
            status = part_add(cut, &capacity, &part, error);
            first = group;
        }
        before = multiple;
    }
    if (status || !cut->count)
        return status;
    const struct parquet_part last = parquet_cut_part(footer, first, footer->group_count);
    return part_add(cut, &capacity, &last, error);
}

void parquet_cut_free(struct parquet_cut *cut)
{
    free(cut->parts);
    *cut = (struct parquet_cut){.count = 0};
}

uint64_t parquet_cut_hash(const struct parquet_footer *footer)
{
    struct hash_state *state = hash_state_new();
    const uint64_t file[] = {footer->file_bytes, footer->data_end, footer->group_count};
    if (!state)
        return 0;
    hash_state_add(state, file, sizeof file);
    for (uint64_t group = 0; group < footer->group_count; group++) {
        const struct parquet_chunk *chunk = first_chunk(footer, group);
        const uint64_t numbers[] = {footer->groups[group].rows, chunk->offset, chunk->bytes, chunk->values};
        hash_state_add(state, numbers, sizeof numbers);
    }
    const uint64_t hash = hash_state_64(state);
    hash_state_free(state);
    return max64(hash, 1);
}
