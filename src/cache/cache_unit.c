/* SPDX-License-Identifier: MIT */
/*
 * cache_unit.c - the units of a shard: where they are in their files, and what their bytes must be.
 *
 * Example: a shard of 2,500,000 tokens of 2 bytes, with a mask. Units 0 to 4 are its tokens, 1 MiB each and the last
 * one 805,696 bytes; unit 5 is the mask, of 312,500 bytes. If the shard is sealed, unit 0 is frames 0 to 15 of its
 * file, and what follows the last frame, the seek table for other programs, belongs to the last unit. It has no hash:
 * `verify` compares it with the index.
 */

#include "cache_unit.h"

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/index_verify.h"

#define FRAMES_PER_UNIT (CACHE_UNIT / FRAME_BYTES)

_Static_assert(CACHE_UNIT == BLOCK_BYTES, "a unit of tokens has one hash");

/* Returns where unit `unit` of sealed tokens begins. */
static enum tokmap_status sealed_begin(const struct cache_shard *shard, uint64_t unit, uint64_t *from,
                                       struct tokmap_error *error)
{
    struct sealed_frame frame;
    const enum tokmap_status status = sealed_frame_find(&shard->index, unit * FRAMES_PER_UNIT, &frame, error);
    *from = status ? 0 : frame.at;
    return status;
}

enum tokmap_status cache_unit_place(const struct cache_shard *shard, uint64_t unit, uint64_t *from, uint64_t *bytes,
                                    struct tokmap_error *error)
{
    const enum cache_part part = cache_part_of(shard, unit);
    const uint64_t number = part == CACHE_TOKENS ? unit : unit - shard->token_units;
    uint64_t end = 0;
    if (part == CACHE_MASK || !index_is_sealed(&shard->index)) {
        *from = number * CACHE_UNIT;
        *bytes = min64(CACHE_UNIT, shard->bytes[part] - *from);
        return TOKMAP_OK;
    }
    enum tokmap_status status = sealed_begin(shard, unit, from, error);
    if (!status && unit + 1 < shard->token_units)
        status = sealed_begin(shard, unit + 1, &end, error);
    else
        end = shard->bytes[CACHE_TOKENS];
    *bytes = status ? 0 : end - *from;
    return status;
}

void cache_units_of(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end)
{
    const uint64_t base = part == CACHE_MASK ? shard->token_units : 0;
    const uint64_t most = part == CACHE_MASK ? shard->state.count : shard->token_units;
    at = min64(at, shard->bytes[part]);
    count = min64(count, shard->bytes[part] - at);
    if (!count) {
        *first = *end = base;
    } else if (part == CACHE_MASK || !index_is_sealed(&shard->index)) {
        *first = base + at / CACHE_UNIT;
        *end = base + (at + count - 1) / CACHE_UNIT + 1;
    } else {
        uint64_t low = 0, high = most, last; /* the last unit that begins at or before a byte */
        for (uint64_t from; high - low > 1;) {
            const uint64_t middle = low + (high - low) / 2;
            const bool before = !sealed_begin(shard, middle, &from, NULL) && from <= at;
            low = before ? middle : low;
            high = before ? high : middle;
        }
        for (last = low + 1; last < most; last++) {
            uint64_t from;
            if (!sealed_begin(shard, last, &from, NULL) && from >= at + count)
                break;
        }
        *first = low;
        *end = last;
    }
}

void cache_units_in(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end)
{
    const uint64_t base = part == CACHE_MASK ? shard->token_units : 0;
    const uint64_t most = part == CACHE_MASK ? shard->state.count : shard->token_units;
    *first = min64(base + at / CACHE_UNIT, most);
    *end = count ? min64(base + (at + count - 1) / CACHE_UNIT + 1, most) : *first;
}

static bool frames_match(const struct cache_shard *shard, uint64_t unit, const uint8_t *bytes, uint64_t count,
                         struct sealed_reader *reader)
{
    uint8_t tokens[FRAME_BYTES];
    const uint64_t first = unit * FRAMES_PER_UNIT, end = min64(first + FRAMES_PER_UNIT, index_frames(&shard->index));
    uint64_t base = 0;
    for (uint64_t number = first; number < end; number++) {
        struct sealed_frame frame;
        if (sealed_frame_find(&shard->index, number, &frame, NULL))
            return false;
        base = number == first ? frame.at : base;
        if (frame.at - base > count || frame.stored > count - (frame.at - base) ||
            sealed_unpack(reader, shard->path, &frame, bytes + (frame.at - base), tokens, NULL))
            return false;
    }
    return true;
}

bool cache_unit_matches(const struct cache_shard *shard, uint64_t unit, const uint8_t *bytes, uint64_t count,
                        struct sealed_reader **reader)
{
    if (cache_part_of(shard, unit) == CACHE_MASK)
        return !index_need(&shard->index, shard->index.streams.offset, shard->index.streams.bytes, NULL) &&
               hash64(bytes, count) == index_mask_hash(&shard->index, unit - shard->token_units);
    if (!index_is_sealed(&shard->index))
        return !index_blocks_check(&shard->index, unit, unit + 1, NULL) &&
               hash64(bytes, count) == index_block_hash(&shard->index, unit);
    if (!*reader)
        *reader = sealed_reader_new();
    return *reader && frames_match(shard, unit, bytes, count, *reader);
}
