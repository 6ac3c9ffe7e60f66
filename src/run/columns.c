/* SPDX-License-Identifier: MIT */
#include "columns.h"

#include <assert.h>

#include "common/bytes.h"

uint64_t columns_divisor(const struct columns *columns)
{
    if (columns->world == 1)
        return 1;
    return columns->layout == TOKMAP_CONTEXT_CONTIGUOUS ? columns->world : 2 * columns->world;
}

uint64_t columns_chunks_most(const struct columns *columns, uint64_t extents_most)
{
    if (columns->world == 1 || columns->layout == TOKMAP_CONTEXT_CONTIGUOUS)
        return 1;
    return columns->layout == TOKMAP_CONTEXT_ZIGZAG ? 2 : 2 * (extents_most + 1); /* padding is a segment, too */
}

/* Writes the two chunks of a segment that begins at a column of its row. */
static uint64_t zigzag(const struct columns *columns, uint64_t first, uint64_t length, struct chunk *chunks)
{
    const uint64_t count = length / (2 * columns->world);
    assert(length % (2 * columns->world) == 0);
    if (!count)
        return 0;
    chunks[0] = (struct chunk){first + columns->rank * count, count};
    chunks[1] = (struct chunk){first + (2 * columns->world - 1 - columns->rank) * count, count};
    return 2;
}

uint64_t columns_of_row(const struct columns *columns, uint64_t seq_len, const struct tokmap_extent *extents,
                        uint64_t count, struct chunk *chunks)
{
    uint64_t made = 0, first = 0;
    if (columns->world == 1 || columns->layout == TOKMAP_CONTEXT_CONTIGUOUS) {
        const uint64_t each = seq_len / columns->world;
        chunks[0] = (struct chunk){columns->rank * each, each};
        return 1;
    }
    if (columns->layout == TOKMAP_CONTEXT_ZIGZAG)
        return zigzag(columns, 0, seq_len, chunks);
    for (uint64_t i = 0, length; i < count && first < seq_len; first += length) {
        length = extents[i].tokens;
        for (i++; i < count && extent_is_padding(&extents[i]); i++)
            length += extents[i].tokens;
        length = min64(length, seq_len - first);
        made += zigzag(columns, first, length, chunks + made);
    }
    return made + zigzag(columns, first, seq_len - first, chunks + made);
}

uint64_t columns_cut_next(struct columns_cut *cut, uint64_t first, uint64_t tokens, struct tokmap_extent *into)
{
    uint64_t made = 0, end = first + tokens;
    assert(cut->at <= first);
    while (cut->extent < cut->count && cut->at + cut->extents[cut->extent].tokens <= first)
        cut->at += cut->extents[cut->extent++].tokens;
    for (uint64_t i = cut->extent, at = cut->at; i < cut->count && at < end; at += cut->extents[i++].tokens) {
        const struct tokmap_extent *whole = &cut->extents[i];
        const uint64_t skip = first > at ? first - at : 0;
        struct tokmap_extent *part = &into[made++];
        *part = (struct tokmap_extent){whole->first_token, min64(whole->tokens, end - at) - skip};
        if (!extent_is_padding(whole))
            part->first_token = (whole->first_token + skip) % cut->dataset_tokens;
    }
    return made;
}
