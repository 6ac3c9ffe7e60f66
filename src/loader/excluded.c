/* SPDX-License-Identifier: MIT */
/*
 * excluded.c - see excluded.h. Example: of a row of 8 tokens, tokens 3 to 5 are excluded. Target j is token j + 1:
 *
 *     row         11  12  13 PAD PAD PAD  24  25
 *     target       0   1   2   3   4   5   6         bits 2 to 5 are set: target 2 is excluded, and so is the input of
 * 5
 */
#include "excluded.h"

#include <assert.h>

#include "common/bits.h"
#include "common/bytes.h"
#include "run/exclusion.h"

void excluded_take_out(const struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint64_t extents)
{
    const uint32_t width = loader->needs.width;
    const uint64_t targets = form_masked_targets(&loader->needs, slot->seq_len);
    uint8_t *row = (uint8_t *)(uintptr_t)slot->rows[i];
    struct exclusion_walk walk;
    uint64_t first, count, all = 0, data = 0;
    assert(!loader->fill.out); /* see check_masks() in loader_open.c */
    exclusion_walk_begin(&walk, loader->exclusions, &slot->places[i], loader->fill.extents, extents);
    while (exclusion_walk_next(&walk, &first, &count)) {
        const uint64_t from = first ? first - 1 : 0, to = min64(first + count, targets);
        gather_padding(loader->pad_id, width, count, row + first * width);
        if (slot->uncounted && from < to)
            bits_set(slot->uncounted + i * slot->shape.row_bits, from, to);
        slot->excluded += min64(first + count, slot->seq_len) - min64(first, slot->seq_len);
        all += count;
    }
    for (uint64_t k = 0; k < extents && all; k++)
        data += loader->fill.extents[k].tokens;
    slot->excluded_rows += all && all == data;
}
