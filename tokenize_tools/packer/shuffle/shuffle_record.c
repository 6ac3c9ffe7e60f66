/* SPDX-License-Identifier: MIT */
/* shuffle_record.c - see shuffle_record.h. */
#include "shuffle_record.h"

#include "common/bytes.h"
#include "common/hash.h"
#include "order/permutation.h"

#define PAYLOAD_MOST ((uint64_t)1 << 62)

struct shuffle_place shuffle_place_of(uint64_t seed, uint64_t input, uint64_t position)
{
    char name[8];
    store64(name, input);
    const struct order_key key = order_key(KEY_DOCUMENT, seed, name, sizeof name, position);
    return (struct shuffle_place){key.high, key.low, input, position};
}

void shuffle_record_seal(uint8_t *record)
{
    const uint32_t bytes = load32(record + 8);
    store64(record, hash64(record + 8, bytes - 8));
}

bool shuffle_record_sound(const uint8_t *record, const struct shuffle_head *head)
{
    return head->hash == hash64(record + 8, head->bytes - 8);
}

bool shuffle_payload_bytes(uint64_t tokens, uint32_t width, bool mask, uint64_t *bytes)
{
    if (tokens > PAYLOAD_MOST / 8)
        return false;
    *bytes = tokens * width + (mask ? div_ceil(tokens, 8) : 0);
    return true;
}

bool shuffle_payload_cut(const uint8_t *payload, uint64_t bytes, uint64_t tokens, uint32_t width, bool mask,
                         uint32_t columns, struct shuffle_payload *cut)
{
    uint64_t used;
    if (!shuffle_payload_bytes(tokens, width, mask, &used) || used > bytes || (bytes - used) / 8 < columns)
        return false;
    cut->tokens = payload;
    cut->mask = payload + tokens * width;
    cut->lengths = payload + used;
    used += (uint64_t)8 * columns;
    cut->values = payload + used;
    for (uint32_t c = 0; c < columns; c++) {
        const uint64_t length = load64(cut->lengths + (uint64_t)8 * c);
        if (length > bytes - used)
            return false;
        used += length;
    }
    return used == bytes;
}
