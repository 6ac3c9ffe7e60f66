/* SPDX-License-Identifier: MIT */
/*
 * excluded.c - see excluded.h. Example: of a row of 8 tokens, tokens 3 to 5 are excluded. Target j is token j + 1:
 *
 *     row         11  12  13 PAD PAD PAD  24  25
 *     target       0   1   2   3   4   5   6         bits 2 to 5 are set: target 2 is
 *                                                        excluded, and so is the input of target 5
 */
#include "excluded.h"

#include <assert.h>

#include "common/bits.h"
#include "common/bytes.h"
#include "dataset/row_extents.h"
#include "run/exclusion.h"

void excluded_take_out(const struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint64_t extents,
                       const struct excluded_part *part)
{
    const uint32_t width = loader->needs.width;
    const uint64_t part_end = part->first + part->tokens;
    struct exclusion_walk walk;
    uint64_t first, count, all = 0, data = 0;
    assert(!loader->fill->out); /* see check_masks() in loader_open.c */
    exclusion_walk_begin(&walk, loader->exclusions, &slot->places[i], loader->fill->extents, extents);
    while (exclusion_walk_next(&walk, &first, &count)) {
        const uint64_t end = first + count, from = max64(first, part->first), to = min64(end, part_end);
        const uint64_t column_end = min64(end, part->first + part->columns);
        const uint64_t target = max64(from, 1) - 1; /* of token `from`; it may be before the part */
        const uint64_t target_end = min64(end, part->first + part->targets);
        all += count;
        if (from < to)
            gather_padding(loader->pad_id, width, to - from, part->row + (from - part->first) * width);
        slot->excluded += from < column_end ? column_end - from : 0;
        if (part->bits && max64(target, part->first) < target_end)
            bits_set(part->bits, max64(target, part->first) - part->first, target_end - part->first);
        if (part->bits && part->first_label && first <= part->first && part->first <= end)
            bits_set(part->bits, part->tokens - 1, part->tokens);
    }
    for (uint64_t k = 0; k < extents && all && part->begins; k++)
        data += extent_is_padding(&loader->fill->extents[k]) ? 0 : loader->fill->extents[k].tokens;
    slot->excluded_rows += all && part->begins && all == data;
}
