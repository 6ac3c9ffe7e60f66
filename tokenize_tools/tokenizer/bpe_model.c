/*
 * bpe_model.c - builds a model: the pairs that merge, the tokens that merges do not reach, borders of characters that no
 * token crosses, and what caches begin with.
 *
 * With ranks, any two neighbours whose bytes are a token merge. Inside the bytes of a token T, up to the moment when two
 * parts are left, what happens does not depend on what is around: it is what happens to T's bytes alone. So there is at
 * most one pair that gives T: the two parts that remain when T's bytes are merged without T. Shorter tokens are all that
 * can occur there, so taking tokens by length finds all pairs, one a token, and the same merges tell which tokens are
 * out of their reach.
 *
 * A list of merges names pairs too that never come up: a token that can be put together in several ways has a merge for
 * each. By the same argument, for any merges in any order, only the two parts that T's own bytes come to ever merge to T.
 * So the table has at most one pair a token here as well; and where ids grow along the list, which is how vocabularies
 * are made, the id itself is the rank.
 */
#include "bpe_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"

static uint64_t pairs_bytes(const struct bpe_model *model)
{
    return ((uint64_t)1 << model->pair_bits) * sizeof *model->pairs;
}

static bool pairs_new(struct bpe_model *model, uint64_t count)
{
    void *table = NULL;
    model->pair_bits = 4;
    while ((uint64_t)1 << model->pair_bits < 2 * count)
        model->pair_bits++;
    model->pair_filter = calloc(((size_t)4 << model->pair_bits) / 64, sizeof *model->pair_filter);
    if (os_memory_new(pairs_bytes(model), true, &table) || !model->pair_filter) {
        os_memory_free(table, pairs_bytes(model));
        return false;
    }
    model->pairs = table;
    memset(model->pairs, 0xFF, pairs_bytes(model));
    return true;
}

void bpe_pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank)
{
    const uint64_t key = bpe_pair_key(left, right), mask = ((uint64_t)1 << model->pair_bits) - 1;
    const uint64_t hash = bpe_pair_hash(model, key);
    uint64_t at = bpe_pair_place(hash);
    model->pair_filter[hash / 64] |= (uint64_t)1 << (hash % 64);
    while (model->pairs[at] != UINT64_MAX && model->pairs[at] >> 22 != key)
        at = (at + 1) & mask;
    model->pairs[at] = key << 22 | rank;
}

static void pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank)
{
    const uint32_t *offsets = model->offsets;
    bpe_pair_add(model, left, right, rank);
    if (offsets[left + 1] - offsets[left] == 1 && offsets[right + 1] - offsets[right] == 1)
        model->byte_pairs[(uint32_t)model->bytes[offsets[left]] << 8 | model->bytes[offsets[right]]] = rank;
}

/* Characters of three bytes (and of four behind them) whose border a token crosses. A character of which the token has
 * only some bytes stands for all that begin or end so. */
static void add_joins(struct bpe_model *model, const uint8_t *token, uint32_t count)
{
    for (uint32_t at = 1; at < count; at++) {
        if (token[at] < 0xE0 || token[at - 1] < 0x80)
            continue;
        uint32_t left = 0; /* bytes of the character before, as far as they are there */
        while (left < at && left < 4 && (token[at - left - 1] & 0xC0) == 0x80)
            left++;
        const bool whole_left = left < at && token[at - left - 1] >= 0xE0;
        if (left + whole_left > 3 || (left < at && !whole_left))
            continue; /* not a character of three bytes */
        const uint32_t right = min64(count - at, 3);
        if (left + whole_left < 3 || right == 1) {
            model->edge_joins[token[at - 1] & 63] |= (uint64_t)1 << (token[at] & 63);
            continue;
        }
        uint64_t six = 0;
        memcpy(&six, token + at - 3, 3 + right);
        for (uint32_t last = 0x80; last < 0xC0; last++) {
            const uint32_t bit = bpe_join_hash(right == 3 ? six : six | (uint64_t)last << 40);
            model->joins[bit / 64] |= (uint64_t)1 << (bit % 64);
            if (right == 3)
                break;
        }
    }
}

static enum tokmap_status allocate(struct bpe_model *model, const struct bpe_source *source, struct tokmap_error *error)
{
    const uint64_t count = source->vocabulary, text = source->offsets[count];
    model->bytes = malloc(text + 16);
    model->offsets = malloc((count + 1) * sizeof *model->offsets);
    model->byte_pairs = malloc(65536 * sizeof *model->byte_pairs);
    model->joins = calloc(((uint64_t)1 << BPE_JOIN_BITS) / 64, sizeof *model->joins);
    model->seeds = malloc((count + 1) * sizeof *model->seeds);
    if (source->merges)
        model->results = malloc((uint64_t)(source->merge_count + 1) * sizeof *model->results);
    if (!pairs_new(model, source->merges ? min64(source->merge_count, count) : count) || !model->bytes ||
        !model->offsets || !model->byte_pairs || !model->joins || !model->seeds || (source->merges && !model->results))
        return error_set_memory(error, "a vocabulary", text + count * 64);
    memset(model->byte_pairs, 0xFF, 65536 * sizeof *model->byte_pairs);
    memcpy(model->bytes, source->bytes, text);
    memset(model->bytes + text, 0, 16);
    memcpy(model->offsets, source->offsets, (count + 1) * sizeof *model->offsets);
    return TOKMAP_OK;
}

static enum tokmap_status find_bytes(struct bpe_model *model, const struct bpe_source *source,
                                     struct tokmap_error *error)
{
    memset(model->byte_ids, 0xFF, sizeof model->byte_ids);
    for (uint32_t id = 0; id < model->vocabulary; id++)
        if (model->offsets[id + 1] - model->offsets[id] == 1)
            model->byte_ids[model->bytes[model->offsets[id]]] = id;
    for (uint32_t byte = 0; byte < 256 && !source->lacks_bytes; byte++)
        if (model->byte_ids[byte] == BPE_NONE)
            return error_set(error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "the vocabulary has no token for the byte 0x%02x, so not every text can be encoded; "
                             "is the file complete?",
                             byte);
    return TOKMAP_OK;
}

/* The list, as a table of its own. */
static enum tokmap_status list_merges(struct bpe_model *listed, const struct bpe_model *model,
                                      const struct bpe_source *source, struct tokmap_error *error)
{
    const uint32_t *offsets = model->offsets;
    if (!pairs_new(listed, source->merge_count))
        return error_set_memory(error, "a vocabulary", (uint64_t)source->merge_count * 16);
    for (uint32_t i = 0; i < source->merge_count; i++) {
        const struct bpe_merge *merge = &source->merges[i];
        bool fits = merge->left < model->vocabulary && merge->right < model->vocabulary &&
                    merge->result < model->vocabulary;
        if (fits) {
            const uint32_t left = offsets[merge->left + 1] - offsets[merge->left];
            const uint32_t right = offsets[merge->right + 1] - offsets[merge->right];
            const uint8_t *result = model->bytes + offsets[merge->result];
            fits = left && right && left + right == offsets[merge->result + 1] - offsets[merge->result] &&
                   !memcmp(result, model->bytes + offsets[merge->left], left) &&
                   !memcmp(result + left, model->bytes + offsets[merge->right], right);
        }
        if (!fits)
            return error_set(error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "merge %" PRIu32 " (from 0) names ids whose text is not that of its result; the file is "
                             "damaged",
                             i);
        bpe_pair_add(listed, merge->left, merge->right, i);
        model->results[i] = merge->result;
    }
    return TOKMAP_OK;
}

/* Ids by the length of their tokens, the shortest first; those of two bytes and more. */
static uint32_t *by_length(const struct bpe_model *model, uint32_t *count)
{
    uint32_t longest = 1;
    for (uint32_t id = 0; id < model->vocabulary; id++)
        longest = (uint32_t)max64(longest, model->offsets[id + 1] - model->offsets[id]);
    uint32_t *places = calloc((size_t)longest + 2, sizeof *places);
    uint32_t *order = malloc(((size_t)model->vocabulary + 1) * sizeof *order);
    if (places && order) {
        for (uint32_t id = 0; id < model->vocabulary; id++)
            places[model->offsets[id + 1] - model->offsets[id] + 1]++;
        const uint32_t skipped = places[1] + places[2];
        places[1] = places[2] = 0;
        for (uint32_t i = 3; i <= longest + 1; i++)
            places[i] += places[i - 1];
        for (uint32_t id = 0; id < model->vocabulary; id++) {
            const uint32_t bytes = model->offsets[id + 1] - model->offsets[id];
            if (bytes > 1)
                order[places[bytes]++] = id;
        }
        *count = model->vocabulary - skipped;
    } else {
        free(order);
        order = NULL;
    }
    free(places);
    return order;
}

static void add_seed(struct bpe_model *model, const uint8_t *bytes, uint32_t count, const uint32_t *ids, size_t id_count)
{
    if (count > 15 || id_count > bpe_inline_ids(model->wide))
        return;
    struct bpe_entry *seed = &model->seeds[model->seed_count++];
    seed->key = bpe_key_of(bytes, count);
    bpe_value_make(seed->value, model->wide, ids, (uint32_t)id_count);
}

static bool lacks_one(const struct bpe_model *model, const uint8_t *text, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (model->byte_ids[text[i]] == BPE_NONE)
            return true;
    return false;
}

/* The two parts that all other merges leave of a token's bytes become the token, if they merge. */
static bool merge_last(struct bpe_model *model, const struct bpe_model *listed, uint32_t id, uint32_t parts[2])
{
    const uint32_t rank = listed ? bpe_pair_rank(listed, parts[0], parts[1]) : id;
    if (rank == BPE_NONE)
        return false;
    pair_add(model, parts[0], parts[1], rank);
    parts[0] = listed ? model->results[rank] : id;
    return true;
}

/* Pairs, seeds and what merges do not reach (collected at the front of `order`). */
static enum tokmap_status merge_tokens(struct bpe_model *model, const struct bpe_source *source,
                                       const struct bpe_model *listed, uint32_t *order, uint32_t count,
                                       struct tokmap_error *error)
{
    struct bpe_scratch scratch = {NULL, 0};
    uint32_t *ids = malloc((size_t)(count ? model->offsets[model->vocabulary] : 0) * sizeof *ids + sizeof *ids);
    enum tokmap_status status = ids ? TOKMAP_OK : error_set_memory(error, "a vocabulary", model->offsets[model->vocabulary]);
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint8_t text = (uint8_t)byte;
        if (model->byte_ids[byte] != BPE_NONE)
            add_seed(model, &text, 1, &model->byte_ids[byte], 1);
    }
    for (uint32_t i = 0; i < count && !status; i++) {
        const uint32_t id = order[i], bytes = model->offsets[id + 1] - model->offsets[id];
        const uint8_t *text = model->bytes + model->offsets[id];
        if (source->lacks_bytes && lacks_one(model, text, bytes))
            continue;
        size_t parts = bpe_merge(model, &scratch, text, bytes, ids);
        if (!parts)
            status = error_set_memory(error, "a vocabulary", bytes);
        if (parts == 2 && merge_last(model, listed, id, ids))
            parts = 1;
        if (source->whole && (parts != 1 || ids[0] != id))
            order[model->unreached_count++] = id;
        else
            add_seed(model, text, bytes, ids, parts);
        add_joins(model, text, bytes);
    }
    free(scratch.memory);
    free(ids);
    return status;
}

/* Ids take the place of ranks, if both grow together. */
static enum tokmap_status drop_ranks(struct bpe_model *model, struct tokmap_error *error)
{
    const uint64_t places = (uint64_t)1 << model->pair_bits;
    uint32_t *ranks = malloc(((size_t)model->vocabulary + 1) * sizeof *ranks); /* by ids */
    if (!ranks)
        return error_set_memory(error, "a vocabulary", model->vocabulary);
    memset(ranks, 0xFF, ((size_t)model->vocabulary + 1) * sizeof *ranks);
    bool grow = true;
    for (uint64_t at = 0; at < places && grow; at++) {
        const uint32_t rank = (uint32_t)model->pairs[at] & BPE_MERGES;
        if (model->pairs[at] == UINT64_MAX)
            continue;
        grow = ranks[model->results[rank]] == BPE_NONE;
        ranks[model->results[rank]] = rank;
    }
    uint32_t last = 0;
    for (uint32_t id = 0; id < model->vocabulary && grow; id++)
        if (ranks[id] != BPE_NONE) {
            grow = ranks[id] >= last;
            last = ranks[id];
        }
    free(ranks);
    if (!grow)
        return TOKMAP_OK;
    for (uint64_t at = 0; at < places; at++)
        if (model->pairs[at] != UINT64_MAX)
            model->pairs[at] = (model->pairs[at] & ~(uint64_t)BPE_MERGES) | model->results[model->pairs[at] & BPE_MERGES];
    for (uint32_t i = 0; i < 65536; i++)
        if (model->byte_pairs[i] != BPE_NONE)
            model->byte_pairs[i] = model->results[model->byte_pairs[i]];
    free(model->results);
    model->results = NULL;
    return TOKMAP_OK;
}

/* What the merges of a source give, by whichever of the two ways. */
static enum tokmap_status find_pairs(struct bpe_model *model, const struct bpe_source *source, uint32_t *order,
                                     uint32_t count, struct tokmap_error *error)
{
    if (!source->merges)
        return merge_tokens(model, source, NULL, order, count, error);
    struct bpe_model listed = {.pairs = NULL};
    enum tokmap_status status = list_merges(&listed, model, source, error);
    if (!status)
        status = merge_tokens(model, source, &listed, order, count, error);
    os_memory_free(listed.pairs, pairs_bytes(&listed));
    free(listed.pair_filter);
    return status ? status : drop_ranks(model, error);
}

static enum tokmap_status keep_unreached(struct bpe_model *model, const uint32_t *ids, struct tokmap_error *error)
{
    if (!model->unreached_count)
        return TOKMAP_OK;
    model->unreached_bits = 1;
    while (1u << model->unreached_bits < 4 * model->unreached_count)
        model->unreached_bits++;
    const uint32_t mask = (1u << model->unreached_bits) - 1;
    model->unreached = malloc(((size_t)mask + 1) * sizeof *model->unreached);
    if (!model->unreached)
        return error_set_memory(error, "a vocabulary", mask);
    memset(model->unreached, 0xFF, ((size_t)mask + 1) * sizeof *model->unreached);
    for (uint32_t i = 0; i < model->unreached_count; i++) {
        const uint32_t from = model->offsets[ids[i]], bytes = model->offsets[ids[i] + 1] - from;
        uint32_t at = (uint32_t)hash64(model->bytes + from, bytes) & mask;
        while (model->unreached[at] != BPE_NONE)
            at = (at + 1) & mask;
        model->unreached[at] = ids[i];
    }
    return TOKMAP_OK;
}

enum tokmap_status bpe_model_build(struct bpe_model **out, const struct bpe_source *source, struct tokmap_error *error)
{
    *out = NULL;
    if (source->vocabulary > BPE_IDS || source->merge_count > BPE_MERGES)
        return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                         "a vocabulary of %" PRIu32 " ids and %" PRIu32 " merges is more than can be encoded with (%u and "
                         "%u)",
                         source->vocabulary, source->merge_count, BPE_IDS, BPE_MERGES);
    struct bpe_model *model = calloc(1, sizeof *model);
    if (!model)
        return error_set_memory(error, "a vocabulary", sizeof *model);
    model->merge = bpe_merge;
    model->vocabulary = source->vocabulary;
    model->wide = source->vocabulary > 65536;
    scanner_init(&model->scanner, &source->rules, scan_variant_best());
    uint32_t *order = NULL, count = 0;
    enum tokmap_status status = allocate(model, source, error);
    if (!status)
        status = find_bytes(model, source, error);
    if (!status && !(order = by_length(model, &count)))
        status = error_set_memory(error, "a vocabulary", model->vocabulary);
    if (!status)
        status = find_pairs(model, source, order, count, error);
    if (!status)
        status = keep_unreached(model, order, error);
    free(order);
    if (status) {
        bpe_model_free(model);
        return status;
    }
    *out = model;
    return TOKMAP_OK;
}

void bpe_model_free(struct bpe_model *model)
{
    if (!model)
        return;
    os_memory_free(model->pairs, pairs_bytes(model));
    free(model->bytes);
    free(model->offsets);
    free(model->byte_pairs);
    free(model->results);
    free(model->unreached);
    free(model->joins);
    free(model->pair_filter);
    free(model->seeds);
    free(model);
}
