/* SPDX-License-Identifier: MIT */
/* sp_model.c - texts that are looked up whole, and freeing; see sp_model.h. */
#include "sp_model.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "unicode/byte_alphabet.h"

/* Compares a token of `wholes` with a text. These tokens are never bytes or control pieces, so they decode to their
 * text. */
static int compare_whole(const struct sp_model *model, uint32_t id, const uint8_t *bytes, size_t count)
{
    const size_t own = model->head.offsets[id + 1] - model->head.offsets[id];
    const int order = memcmp(model->head.bytes + model->head.offsets[id], bytes, min64(own, count));
    return order ? order : own < count ? -1 : own > count;
}

uint32_t sp_whole(const struct sp_model *model, const uint8_t *bytes, size_t count)
{
    uint32_t low = 0, high = model->whole_count;
    if (count > model->whole_longest)
        return BPE_NONE;
    const int byte = model->whole_bytes ? byte_named(bytes, (uint32_t)count) : -1;
    if (byte >= 0)
        return model->head.byte_ids[byte];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = compare_whole(model, model->wholes[middle], bytes, count);
        if (!order)
            return model->wholes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return BPE_NONE;
}

void sp_model_free(struct sp_model *model)
{
    if (!model)
        return;
    os_memory_free(model->atoms, SP_CODES * sizeof *model->atoms);
    free(model->ids);
    free(model->priorities);
    free(model->defined_bytes);
    free(model->defined_offsets);
    free(model->defined_ids);
    free(model->wholes);
    bpe_model_clear(&model->head);
    free(model);
}
