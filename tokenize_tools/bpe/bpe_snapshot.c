/*
 * bpe_snapshot.c - puts and gets models.
 *
 * What is checked here is what encoding and decoding rely on without looking: every id and rank is an index of a table,
 * a search in the table of pairs soon ends at an empty slot, a seed has no more ids than bytes, and the token that a
 * merge makes is as long as its two parts, from which the places of tokens in a text are computed. That the ids are the
 * right ones is what the snapshot's hash is for.
 */
#include "bpe_snapshot.h"

#include "common/bytes.h"

#define PAIR_BITS_MOST 24 /* a table of twice BPE_MERGES slots */

static uint64_t slots_of(const struct bpe_model *model)
{
    return (uint64_t)1 << model->pair_bits;
}

uint32_t bpe_model_ranks(const struct bpe_model *model)
{
    uint32_t ranks = 0;
    for (uint64_t at = 0; at < slots_of(model); at++) {
        const uint32_t rank = (uint32_t)model->pairs[at] & BPE_MERGES;
        if (model->pairs[at] != UINT64_MAX && rank >= ranks)
            ranks = rank + 1;
    }
    return ranks;
}

/* Puts the ids of the table of unreached tokens. A reader makes another table, with a key of its own. */
static void unreached_put(const struct bpe_model *model, struct snapshot_writer *writer)
{
    uint32_t *ids = snapshot_put_room(writer, model->unreached_count * sizeof *ids), count = 0;
    for (uint64_t at = 0; ids && model->unreached_count && at < (uint64_t)1 << model->unreached.bits; at++)
        if (model->unreached.places[at] && count < model->unreached_count)
            ids[count++] = (uint32_t)model->unreached.places[at] - 1;
    /* Equal texts are added once. The rest of the list repeats an id, which changes nothing. */
    for (; ids && count && count < model->unreached_count; count++)
        ids[count] = ids[0];
}

void bpe_model_put(const struct bpe_model *model, struct snapshot_writer *writer)
{
    const uint32_t text = model->offsets[model->vocabulary], results = model->results ? bpe_model_ranks(model) : 0;
    snapshot_put(writer, model->vocabulary);
    snapshot_put(writer, text);
    snapshot_put(writer, model->pair_bits);
    snapshot_put(writer, model->pair_factor);
    snapshot_put(writer, model->pair_passed);
    snapshot_put(writer, model->pair_limit);
    snapshot_put(writer, model->pair_count);
    snapshot_put(writer, model->results != NULL);
    snapshot_put(writer, results);
    snapshot_put(writer, model->seed_count);
    snapshot_put(writer, model->unreached_count);
    snapshot_put_text(writer, model->byte_ids, sizeof model->byte_ids);
    snapshot_put_text(writer, model->edge_joins, sizeof model->edge_joins);
    snapshot_put_array(writer, model->bytes, (uint64_t)text + 16);
    snapshot_put_array(writer, model->offsets, ((uint64_t)model->vocabulary + 1) * sizeof *model->offsets);
    snapshot_put_array(writer, model->pairs, slots_of(model) * sizeof *model->pairs);
    snapshot_put_array(writer, model->pair_filter, slots_of(model) / 2);
    snapshot_put_array(writer, model->byte_pairs, 65536 * sizeof *model->byte_pairs);
    snapshot_put_array(writer, model->results, results * sizeof *model->results);
    snapshot_put_array(writer, model->joins, ((uint64_t)1 << BPE_JOIN_BITS) / 8);
    snapshot_put_array(writer, model->seeds, model->seed_count * sizeof *model->seeds);
    unreached_put(model, writer);
}

/* ---- checks ---- */

static bool bytes_fit(const struct bpe_model *model, bool lengths)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint32_t id = model->byte_ids[byte];
        if (id != BPE_NONE && (id >= model->vocabulary || (lengths && bpe_token_bytes(model, id) != 1)))
            return false;
    }
    return true;
}

/* What the checks of pairs need. */
struct limits {
    uint32_t symbols; /* of both parts and of the result */
    uint32_t ranks;
    const uint32_t *results; /* or NULL: the rank is the result */
};

static bool results_fit(const struct limits *limits)
{
    uint32_t largest = 0;
    for (uint32_t rank = 0; limits->results && rank < limits->ranks; rank++)
        largest = limits->results[rank] > largest ? limits->results[rank] : largest;
    return !limits->results || !limits->ranks || largest < limits->symbols;
}

#define PAIRS_RUN 1024u /* of so many slots, from a multiple of it on, one is empty */

/* Returns whether the numbers of pairs fit, and searches end soon: the table is at most 2/3 full, as it is made, and no
 * run of used slots is as long as 2 * PAIRS_RUN. */
static bool pairs_fit(const struct bpe_model *model, const struct limits *limits)
{
    const uint32_t ranks = limits->ranks, symbols = limits->symbols;
    const uint64_t slots = slots_of(model), run = min64(slots, PAIRS_RUN);
    uint64_t used = 0, wrong = 0;
    for (uint64_t from = 0; from < slots; from += run) {
        uint64_t here = 0;
        for (uint64_t at = from; at < from + run; at++) {
            const uint64_t pair = model->pairs[at];
            const uint64_t is = pair != UINT64_MAX;
            here += is;
            wrong |= is & ((uint64_t)(pair >> 43 >= symbols) | ((pair >> 22 & (BPE_IDS - 1)) >= symbols) |
                           ((pair & BPE_MERGES) >= ranks));
        }
        wrong |= here == run;
        used += here;
    }
    return !wrong && 3 * used <= 2 * slots;
}

/* Returns whether each merge makes a token as long as its parts. All numbers fit. */
static bool lengths_fit(const struct bpe_model *model)
{
    uint32_t wrong = 0;
    for (uint64_t at = 0; at < slots_of(model); at++) {
        const uint64_t pair = model->pairs[at];
        if (pair == UINT64_MAX)
            continue;
        const uint32_t made = bpe_result(model, (uint32_t)pair & BPE_MERGES);
        const uint32_t parts = bpe_token_bytes(model, (uint32_t)(pair >> 43)) +
                               bpe_token_bytes(model, (uint32_t)(pair >> 22) & (BPE_IDS - 1));
        wrong |= parts ^ bpe_token_bytes(model, made);
    }
    for (uint32_t i = 0; i < 65536; i++)
        wrong |=
            model->byte_pairs[i] != BPE_NONE && bpe_token_bytes(model, bpe_result(model, model->byte_pairs[i])) != 2;
    return !wrong;
}

static bool byte_pairs_fit(const struct bpe_model *model, uint32_t ranks)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < 65536; i++)
        wrong |= (model->byte_pairs[i] != BPE_NONE) & (model->byte_pairs[i] >= ranks);
    return !wrong;
}

/* A seed has 1 to 15 bytes, and as many ids at most. */
static bool seeds_fit(const struct bpe_model *model)
{
    const uint32_t most = bpe_inline_ids(model->wide), vocabulary = model->vocabulary;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < model->seed_count; i++) {
        const struct bpe_entry *seed = &model->seeds[i];
        const uint32_t bytes = (uint32_t)(seed->key.high >> 56);
        const uint32_t ids = (uint32_t)(model->wide ? seed->value[0] >> 28 & 15 : seed->value[1] >> 48);
        wrong |= (bytes - 1 > 14) | (ids - 1 >= most) | (ids > bytes);
        for (uint32_t k = 0; k < ids && !wrong; k++) {
            const uint64_t half = seed->value[model->wide ? k / 2 : k / 4];
            const uint32_t id = model->wide ? (uint32_t)(half >> (32 * (k % 2))) & (k ? UINT32_MAX : (1u << 28) - 1)
                                            : (uint32_t)(half >> (16 * (k % 4))) & 0xFFFF;
            wrong |= id >= vocabulary;
        }
    }
    return !wrong;
}

/* ---- getting ---- */

static void unreached_get(struct bpe_model *model, struct snapshot_reader *reader, uint32_t count)
{
    const uint32_t *ids = snapshot_get_array(reader, count, sizeof *ids);
    for (uint32_t i = 0; !reader->failed && i < count; i++)
        (void)snapshot_require(reader, ids[i] < model->vocabulary);
    if (!reader->failed)
        (void)snapshot_require(reader, bpe_unreached_new(model, ids, count));
}

/* Checks the tables, all of which are there. */
static void model_check(const struct bpe_model *model, struct snapshot_reader *reader, uint32_t text,
                        const struct limits *limits, bool lengths)
{
    if (!snapshot_require(reader, snapshot_offsets_rise(model->offsets, model->vocabulary, text)) ||
        !snapshot_require(reader, bytes_fit(model, lengths) && results_fit(limits)))
        return;
    if (snapshot_require(reader, pairs_fit(model, limits) && byte_pairs_fit(model, limits->ranks)))
        (void)snapshot_require(reader, seeds_fit(model) && (!lengths || lengths_fit(model)));
}

void bpe_model_get(struct bpe_model *model, struct snapshot_reader *reader, uint32_t symbols, uint32_t *ranks)
{
    model->borrowed = true;
    model->vocabulary = (uint32_t)snapshot_get(reader, BPE_IDS);
    model->wide = model->vocabulary > 65536;
    const uint32_t text = (uint32_t)snapshot_get(reader, UINT32_MAX - 16);
    model->pair_bits = (uint32_t)snapshot_get(reader, PAIR_BITS_MOST);
    model->pair_factor = snapshot_get(reader, UINT64_MAX);
    model->pair_passed = snapshot_get(reader, UINT64_MAX);
    model->pair_limit = snapshot_get(reader, UINT64_MAX);
    model->pair_count = (uint32_t)snapshot_get(reader, BPE_MERGES);
    const bool has_results = snapshot_get_flag(reader);
    const uint32_t results = (uint32_t)snapshot_get(reader, BPE_MERGES);
    model->seed_count = (uint32_t)snapshot_get(reader, BPE_SEEDS);
    const uint32_t unreached = (uint32_t)snapshot_get(reader, BPE_IDS);
    snapshot_get_exactly(reader, model->byte_ids, sizeof model->byte_ids);
    snapshot_get_exactly(reader, model->edge_joins, sizeof model->edge_joins);
    if (!snapshot_require(reader, model->vocabulary && model->pair_bits >= 4 && (model->pair_factor & 1) == 1))
        return;
    model->bytes = snapshot_get_array(reader, (uint64_t)text + 16, 1);
    model->offsets = snapshot_get_array(reader, (uint64_t)model->vocabulary + 1, sizeof *model->offsets);
    model->pairs = snapshot_get_array(reader, slots_of(model), sizeof *model->pairs);
    model->pair_filter = snapshot_get_array(reader, slots_of(model) / 16, sizeof *model->pair_filter);
    model->byte_pairs = snapshot_get_array(reader, 65536, sizeof *model->byte_pairs);
    uint32_t *table = snapshot_get_array(reader, results, sizeof *table);
    model->results = has_results ? table : NULL;
    model->joins = snapshot_get_array(reader, ((uint64_t)1 << BPE_JOIN_BITS) / 64, sizeof *model->joins);
    model->seeds = snapshot_get_array(reader, model->seed_count, sizeof *model->seeds);
    if (reader->failed)
        return;
    const struct limits limits = {.symbols = symbols ? symbols : model->vocabulary,
                                  .ranks = has_results ? results
                                           : symbols   ? symbols
                                                       : model->vocabulary,
                                  .results = model->results};
    *ranks = limits.ranks;
    model_check(model, reader, text, &limits, !symbols);
    unreached_get(model, reader, reader->failed ? 0 : unreached);
}
