/* bpe_model.c - the table of pairs, tokens that merging does not reach, and freeing; see bpe_model.h. */
#include "bpe_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"

static uint64_t pairs_bytes(const struct bpe_model *model)
{
    return ((uint64_t)1 << model->pair_bits) * sizeof *model->pairs;
}

bool bpe_pairs_new(struct bpe_model *model, uint64_t slots)
{
    void *table = NULL;
    assert(!model->pairs && !model->pair_filter);
    model->pair_bits = 4;
    while ((uint64_t)1 << model->pair_bits < slots)
        model->pair_bits++;
    model->pair_filter = calloc(((size_t)4 << model->pair_bits) / 64, sizeof *model->pair_filter);
    if (!model->pair_filter || os_memory_new(pairs_bytes(model), true, &table)) {
        bpe_pairs_free(model);
        return false;
    }
    model->pairs = table;
    memset(model->pairs, 0xFF, pairs_bytes(model));
    return true;
}

void bpe_pairs_free(struct bpe_model *model)
{
    if (model->pairs)
        os_memory_free(model->pairs, pairs_bytes(model));
    free(model->pair_filter);
    model->pairs = model->pair_filter = NULL;
}

bool bpe_pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank)
{
    assert(left < BPE_IDS && right < BPE_IDS && rank < BPE_MERGES);
    const uint64_t key = bpe_pair_key(left, right), mask = ((uint64_t)1 << model->pair_bits) - 1;
    const uint64_t hash = bpe_pair_hash(model, key);
    uint64_t at = bpe_pair_place(hash);
    model->pair_filter[hash / 64] |= (uint64_t)1 << (hash % 64);
    while (model->pairs[at] != UINT64_MAX && model->pairs[at] >> 22 != key)
        at = (at + 1) & mask;
    const bool added = model->pairs[at] == UINT64_MAX;
    model->pairs[at] = key << 22 | rank;
    return added;
}

_Static_assert(NO_TEXT == BPE_NONE, "a text that is not there has no id");

uint32_t bpe_unreached(const struct bpe_model *model, const uint8_t *bytes, size_t count)
{
    return !model->unreached_count ? BPE_NONE
                                   : text_places_find(&model->unreached, model->bytes, model->offsets, bytes, count);
}

void bpe_model_clear(struct bpe_model *model)
{
    bpe_pairs_free(model);
    free(model->bytes);
    free(model->offsets);
    free(model->byte_pairs);
    free(model->results);
    text_places_free(&model->unreached);
    free(model->joins);
    free(model->seeds);
    model->bytes = NULL;
    model->offsets = model->byte_pairs = model->results = NULL;
    model->joins = NULL;
    model->seeds = NULL;
}

void bpe_model_free(struct bpe_model *model)
{
    if (!model)
        return;
    bpe_model_clear(model);
    free(model);
}
