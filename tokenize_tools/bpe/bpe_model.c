/* bpe_model.c - the table of pairs, tokens that merging does not reach, and freeing; see bpe_model.h. */
#include "bpe_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "platform/table_key.h"

/* Additions to a table usually pass over 2 to 5 slots each, because searches begin with a cache line's first slot. */
#define PASSED_USUAL 16
#define PASSED_LEAST 4096

static uint64_t pairs_bytes(const struct bpe_model *model)
{
    return ((uint64_t)1 << model->pair_bits) * sizeof *model->pairs;
}

/* Makes an empty table of 2^pair_bits slots, with a new key. Returns false if memory ran out. */
static bool pairs_make(struct bpe_model *model)
{
    void *table = NULL;
    model->pair_filter = calloc(((size_t)4 << model->pair_bits) / 64, sizeof *model->pair_filter);
    if (!model->pair_filter || os_memory_new(pairs_bytes(model), true, &table)) {
        bpe_pairs_free(model);
        return false;
    }
    model->pairs = table;
    memset(model->pairs, 0xFF, pairs_bytes(model));
    model->pair_factor = table_key_new().low | 1;
    model->pair_passed = model->pair_count = 0;
    return true;
}

bool bpe_pairs_new(struct bpe_model *model, uint64_t slots)
{
    assert(!model->pairs && !model->pair_filter);
    model->pair_bits = 4;
    while ((uint64_t)1 << model->pair_bits < slots)
        model->pair_bits++;
    model->pair_limit = PASSED_LEAST;
    return pairs_make(model);
}

void bpe_pairs_free(struct bpe_model *model)
{
    if (model->pairs)
        os_memory_free(model->pairs, pairs_bytes(model));
    free(model->pair_filter);
    model->pairs = model->pair_filter = NULL;
}

/* Puts a pair into its slot. Returns false if the pair was there already. */
static bool pair_put(struct bpe_model *model, uint64_t key, uint32_t rank)
{
    const uint64_t mask = ((uint64_t)1 << model->pair_bits) - 1, hash = bpe_pair_hash(model, key);
    const uint64_t home = bpe_pair_place(hash);
    uint64_t at = home;
    model->pair_filter[hash / 64] |= (uint64_t)1 << (hash % 64);
    while (model->pairs[at] != UINT64_MAX && model->pairs[at] >> 22 != key)
        at = (at + 1) & mask;
    const bool added = model->pairs[at] == UINT64_MAX;
    model->pairs[at] = key << 22 | rank;
    model->pair_passed += (at - home) & mask;
    model->pair_count += added;
    return added;
}

/* Draws another key if additions pass over more slots than is usual. A product is a quick hash, not a strong one: for
 * regular pairs some keys are bad. The next limit is twice the work so far, so that drawing keys costs no more than
 * adding pairs does. Where there is no memory for a second table, the key stays. */
static void pairs_spread(struct bpe_model *model)
{
    struct bpe_model spread = {.pair_bits = model->pair_bits};
    model->pair_limit = PASSED_LEAST + PASSED_USUAL * (uint64_t)model->pair_count;
    if (model->pair_passed <= model->pair_limit)
        return;
    if (pairs_make(&spread)) {
        for (uint64_t at = 0; at < (uint64_t)1 << model->pair_bits; at++)
            if (model->pairs[at] != UINT64_MAX)
                (void)pair_put(&spread, model->pairs[at] >> 22, (uint32_t)model->pairs[at] & BPE_MERGES);
        bpe_pairs_free(model);
        model->pairs = spread.pairs;
        model->pair_filter = spread.pair_filter;
        model->pair_factor = spread.pair_factor;
        model->pair_passed = spread.pair_passed;
    }
    model->pair_limit = max64(model->pair_limit, 2 * model->pair_passed);
}

bool bpe_pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank)
{
    assert(left < BPE_IDS && right < BPE_IDS && rank < BPE_MERGES);
    const bool added = pair_put(model, bpe_pair_key(left, right), rank);
    if (model->pair_passed > model->pair_limit)
        pairs_spread(model);
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
