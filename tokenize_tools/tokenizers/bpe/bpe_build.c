/* SPDX-License-Identifier: MIT */
/*
 * bpe_build.c - builds a model: the pairs that merge, the tokens that merging does not reach, the borders of characters
 * that no token crosses, and the entries that caches begin with.
 *
 * The idea: at most one pair makes each token T. Inside the bytes of T, until only two parts are left, merging does not
 * depend on what is around them: it is what merging T's own bytes does. So only the two parts that remain when T's
 * bytes are merged without T can ever merge to T, whatever the text.
 *
 * By ranks, the rule says that any two neighbors merge whose bytes together are a token. The obvious way is to look up
 * the joined bytes at each step. Instead the table here maps a pair of ids to a rank, which needs no bytes and no long
 * keys. Tokens are taken by length, the shortest first; then all the pairs that can come up inside a token are in the
 * table already. Example: for the tokens "th" (256), "he" (257), and "the" (258), the bytes of "the" merge to "th" "e"
 * without 258, since 256 is lower than 257. So th + e is the pair of 258, and t + he, which has the same bytes, never
 * comes up. If the bytes leave three parts or more, merging never reaches T: it is kept in the table of unreached
 * tokens.
 *
 * A list of merges may name several pairs for a token, and pairs that never come up. By the same argument the table
 * needs at most one pair for each token. Nearly all are found without merging (bpe_splits.h); the rest are merged as
 * above. Where the ids that these pairs make grow along the list, as in nearly all vocabularies, the id serves as the
 * rank, so that a merge needs no further lookup.
 */
#include "bpe_build.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_merge.h"
#include "bpe_splits.h"
#include "common/bytes.h"
#include "common/cpu.h"
#include "common/error.h"
#include "platform/os.h"

/* Adds the rank of a pair to the table by bytes, if both are single bytes. */
static void byte_pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank)
{
    const uint32_t *offsets = model->offsets;
    if (bpe_token_bytes(model, left) == 1 && bpe_token_bytes(model, right) == 1)
        model->byte_pairs[(uint32_t)model->bytes[offsets[left]] << 8 | model->bytes[offsets[right]]] = rank;
}

static void pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank)
{
    (void)bpe_pair_add(model, left, right, rank);
    byte_pair_add(model, left, right, rank);
}

/* Returns whether a token has a byte from 0xE0 on that follows one from 0x80 on. Eight bytes are looked at together:
 * bit 7 of a byte of `high` says that the byte is from 0x80 on. 8 bytes after the token may be read. */
static bool may_join(const uint8_t *token, uint32_t count)
{
    const uint64_t tops = 0x8080808080808080u;
    uint64_t before = 0;
    for (uint32_t at = 0; at < count; at += 8) {
        const uint64_t word = load64(token + at),
                       valid = count - at < 8 ? ~(uint64_t)0 >> (64 - 8 * (count - at)) : ~(uint64_t)0;
        const uint64_t high = word & valid & tops;
        if (high & word << 1 & word << 2 & (high << 8 | before))
            return true;
        before = high >> 56;
    }
    return false;
}

/* Notes where a token crosses a border of two characters, the first of three bytes and the second of three or four. If
 * the token has only some bytes of a character, all characters that begin or end with these bytes are meant. */
static void add_joins(struct bpe_model *model, const uint8_t *token, uint32_t count)
{
    for (uint32_t at = 1; at < count; at++) {
        if (token[at] < 0xE0 || token[at - 1] < 0x80)
            continue;
        uint32_t left = 0; /* continuation bytes of the character before that the token has */
        while (left < at && left < 4 && (token[at - left - 1] & 0xC0) == 0x80)
            left++;
        const bool whole_left = left < at && token[at - left - 1] >= 0xE0;
        if (left + whole_left > 3 || (left < at && !whole_left))
            continue; /* the character before does not have three bytes */
        const uint32_t right = min64(count - at, 3);
        if (left + whole_left < 3 || right == 1) {
            model->edge_joins[token[at] / 8 % 4][token[at - 1] & 63] |= (uint8_t)(1u << (token[at] % 8));
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

static bool lacks_one(const struct bpe_model *model, const uint8_t *text, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (model->byte_ids[text[i]] == BPE_NONE)
            return true;
    return false;
}

static void joins_find(struct bpe_model *model, bool lacks_bytes)
{
    for (uint32_t id = 0; id < model->vocabulary; id++) {
        const uint8_t *text = model->bytes + model->offsets[id];
        const uint32_t bytes = bpe_token_bytes(model, id);
        if (may_join(text, bytes) && (!lacks_bytes || !lacks_one(model, text, bytes)))
            add_joins(model, text, bytes);
    }
}

/* Parts that need nothing but texts and rules: the tables of the scanner, and the joins. A thread of its own makes them
 * for a large vocabulary, beside the search for pairs. */
struct aside {
    struct bpe_model *model;
    const struct bpe_source *source;
};

#define ASIDE_LEAST 20000 /* tokens */

static void aside_run(void *user)
{
    const struct aside *aside = user;
    scanner_init(&aside->model->scanner, &aside->source->rules, cpu_variant_best());
    joins_find(aside->model, aside->source->lacks_bytes);
}

static enum tokmap_status allocate(struct bpe_model *model, const struct bpe_source *source, struct tokmap_error *error)
{
    const uint64_t count = source->vocabulary, text = source->offsets[count];
    model->bytes = source->own_bytes ? source->own_bytes : os_memory_large(text + 16);
    model->offsets = source->own_offsets ? source->own_offsets : os_memory_large((count + 1) * sizeof *model->offsets);
    model->byte_pairs = malloc(65536 * sizeof *model->byte_pairs);
    model->joins = calloc(((uint64_t)1 << BPE_JOIN_BITS) / 64, sizeof *model->joins);
    model->seeds = os_memory_large((min64(count, BPE_SEEDS) + 1) * sizeof *model->seeds);
    if (!model->bytes || !model->offsets || !model->byte_pairs || !model->joins || !model->seeds)
        return error_set_memory(error, "a vocabulary", text + count * 64);
    memset(model->byte_pairs, 0xFF, 65536 * sizeof *model->byte_pairs);
    if (!source->own_bytes)
        memcpy(model->bytes, source->bytes, text);
    if (!source->own_offsets)
        memcpy(model->offsets, source->offsets, (count + 1) * sizeof *model->offsets);
    memset(model->bytes + text, 0, 16);
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
                             "check that the file is complete",
                             byte);
    return TOKMAP_OK;
}

/* Returns whether the split of a token is not known. user: the splits, or NULL if none is known. */
static bool is_unsplit(const void *user, uint32_t id)
{
    const struct bpe_split *splits = user;
    return !splits || splits[id].made < BPE_BY_RANK;
}

/* ---- ranks ----
 *
 * A merge is found by its place in the list, but the table can do with ids as ranks if the ids that its merges make
 * grow with their places. That depends only on the pairs in the table, not on the whole list: a list that names several
 * pairs for a token has at most one of them in the table. So the table begins with ids if those of the splits grow. If
 * a pair that is added later does not fit between them, the places are put back, and stay. */

struct ranking {
    const struct bpe_source *source;
    struct bpe_split *splits; /* of the pairs in the table, too */
    uint32_t *results;        /* room for the results of all merges; NULL: the table has places already */
    uint64_t steps;           /* that ranking_fits() may still take, so that no list makes it slow */
};

#define STEPS_A_TOKEN 64 /* tokens that are merged in a random order need about 20 */

/* Returns whether the ids of the splits grow with the places of their merges. */
static bool splits_grow(const struct bpe_split *splits, uint32_t vocabulary)
{
    uint32_t last = 0;
    for (uint32_t id = 0; id < vocabulary; id++) {
        if (splits[id].made < BPE_BY_RANK)
            continue;
        if (splits[id].made <= last)
            return false;
        last = splits[id].made;
    }
    return true;
}

/* Returns whether a merge and its id come between the same two others. False, too, if finding that out takes too many
 * steps. */
static bool ranking_fits(struct ranking *ranking, uint32_t vocabulary, uint32_t place, uint32_t id)
{
    const struct bpe_split *splits = ranking->splits;
    uint32_t below = id, above = id + 1;
    while (below && splits[below - 1].made < BPE_BY_RANK)
        below--;
    while (above < vocabulary && splits[above].made < BPE_BY_RANK)
        above++;
    const bool few = above - below <= ranking->steps;
    ranking->steps -= few ? above - below : ranking->steps;
    return few && splits[id].made < BPE_BY_RANK && (!below || splits[below - 1].made < place + BPE_BY_RANK) &&
           (above == vocabulary || splits[above].made > place + BPE_BY_RANK);
}

/* From now on, the ranks in the table are places. */
static void places_use(struct ranking *ranking, struct bpe_model *model)
{
    for (uint32_t i = 0; i < ranking->source->merge_count; i++)
        ranking->results[i] = ranking->source->merges[i].result;
    model->results = ranking->results;
    ranking->results = NULL;
}

/* Replaces the ids in the table by places. */
static void places_restore(struct ranking *ranking, struct bpe_model *model)
{
    const struct bpe_split *splits = ranking->splits;
    for (uint64_t at = 0; at < (uint64_t)1 << model->pair_bits; at++)
        if (model->pairs[at] != UINT64_MAX)
            model->pairs[at] =
                (model->pairs[at] & ~(uint64_t)BPE_MERGES) | (splits[model->pairs[at] & BPE_MERGES].made - BPE_BY_RANK);
    for (uint32_t i = 0; i < 65536; i++)
        if (model->byte_pairs[i] != BPE_NONE)
            model->byte_pairs[i] = splits[model->byte_pairs[i]].made - BPE_BY_RANK;
    places_use(ranking, model);
}

/* Returns the rank in the table of a merge that will be added, by its place. */
static uint32_t ranking_rank(struct ranking *ranking, struct bpe_model *model, uint32_t place)
{
    const uint32_t id = ranking->source->merges[place].result;
    if (ranking->results && !ranking_fits(ranking, model->vocabulary, place, id))
        places_restore(ranking, model);
    if (!ranking->results)
        return place;
    ranking->splits[id].made = place + BPE_BY_RANK;
    return id;
}

/* ---- merging each token's own bytes ---- */

#define TOGETHER 64        /* tokens that are merged together; they have the same length, so none is part of another */
#define SHARED_LEAST 2048u /* tokens of one length from which on several threads share them */
#define SHARERS 4u         /* such threads at most: more would wait for memory */
#define PARTS_KEPT 8u      /* as many ids of a token's parts as finish_token() may need */

/* Memory for merging TOGETHER tokens. */
struct lanes {
    struct bpe_piece pieces[TOGETHER];
    uint32_t ids[TOGETHER * (BPE_LANE_BYTES + 16)];
};

/* A token, and the parts that its bytes merge to: their number, and the first ids. */
struct parts {
    uint32_t token, count, ids[PARTS_KEPT];
};
_Static_assert(PARTS_KEPT > 7, "a seed has at most 7 ids");

struct merging {
    struct bpe_model *model;
    const struct bpe_source *source;
    const struct bpe_model *listed; /* the pairs of the list; NULL: merges are by ranks */
    struct tokmap_error *error;
    struct bpe_scratch scratch;
    uint32_t *order;               /* tokens by length; those that merging does not reach are collected at its front */
    uint32_t *ids;                 /* room for the longest token */
    bpe_merge_many_function *many; /* for tokens of up to BPE_LANE_BYTES bytes; NULL: merge one after the other */
    struct lanes *lanes;           /* SHARERS of them */
    struct parts *parts;           /* of the tokens that several threads merge, which have one length; or NULL */
    uint32_t sharers;              /* threads that may be used */
    struct ranking *ranking;       /* map from a merge's place in the list to its rank in the table; NULL: none */
};

/* Returns the merge that makes a token of the parts that all other merges leave: its rank in the list, or the token's
 * id; or BPE_NONE. */
static uint32_t last_rank(const struct merging *merging, uint32_t id, const uint32_t *parts, size_t count)
{
    return count != 2 ? BPE_NONE : merging->listed ? bpe_pair_rank(merging->listed, parts[0], parts[1]) : id;
}

/* Adds the pair of a token's last merge; rank: of that merge, or BPE_NONE. */
static void finish_pair(struct merging *merging, const uint32_t *parts, uint32_t rank)
{
    struct bpe_model *model = merging->model;
    if (rank != BPE_NONE)
        pair_add(model, parts[0], parts[1], merging->ranking ? ranking_rank(merging->ranking, model, rank) : rank);
}

/* Adds the seed of a token, or the token to those that merging does not reach. */
static void finish_seed(struct merging *merging, uint32_t id, const uint32_t *parts, size_t count, uint32_t rank)
{
    struct bpe_model *model = merging->model;
    uint32_t made;
    if (rank != BPE_NONE) {
        made = merging->ranking ? merging->source->merges[rank].result : rank;
        parts = &made;
        count = 1;
    }
    if (merging->source->whole && (count != 1 || parts[0] != id))
        merging->order[model->unreached_count++] = id;
    else
        bpe_seed_add(model, model->bytes + model->offsets[id], bpe_token_bytes(model, id), parts, count);
}

/* Takes the parts that a token's bytes merge to without its own merge, and finds that merge. */
static void finish_token(struct merging *merging, uint32_t id, const uint32_t *parts, size_t count)
{
    const uint32_t rank = last_rank(merging, id, parts, count);
    finish_pair(merging, parts, rank);
    finish_seed(merging, id, parts, count, rank);
}

/* Merges the bytes of `count` (at most TOGETHER) tokens of the same length. Only reads the model. */
static void tokens_merge(const struct merging *merging, struct lanes *lanes, const uint32_t *order, uint32_t count)
{
    const struct bpe_model *model = merging->model;
    struct bpe_piece *pieces[TOGETHER];
    const uint32_t bytes = bpe_token_bytes(model, order[0]);
    for (uint32_t i = 0; i < count; i++) {
        pieces[i] = &lanes->pieces[i];
        *pieces[i] = (struct bpe_piece){.bytes = model->bytes + model->offsets[order[i]],
                                        .count = bytes,
                                        .ids = lanes->ids + i * (BPE_LANE_BYTES + 16)};
    }
    merging->many(model, pieces, count, bpe_size_class(bytes));
}

/* Merges `count` (at most TOGETHER) tokens of the same length. */
static void merge_together(struct merging *merging, const uint32_t *order, uint32_t count)
{
    struct lanes *lanes = merging->lanes;
    tokens_merge(merging, lanes, order, count);
    for (uint32_t i = 0; i < count; i++)
        if (lanes->pieces[i].ids_count == 2)
            bpe_pair_prefetch(merging->model, lanes->pieces[i].ids[0], lanes->pieces[i].ids[1]);
    for (uint32_t i = 0; i < count; i++)
        finish_token(merging, order[i], lanes->pieces[i].ids, lanes->pieces[i].ids_count);
}

/* Many tokens of the same length, which several threads merge. */
struct sharing {
    struct merging *merging;
    const uint32_t *order;
    uint32_t count;
    uint32_t next;   /* the first one that no thread has taken */
    uint32_t merged; /* number of those that have been merged */
    uint32_t tasks;  /* number of the two tasks after that that have been taken */
    struct parts *parts;
};

/* Merges the next few tokens that no thread has taken. Returns false if there are none. */
static bool sharing_merge(struct sharing *sharing, struct lanes *lanes)
{
    const uint32_t first = __atomic_fetch_add(&sharing->next, TOGETHER, __ATOMIC_RELAXED);
    if (first >= sharing->count)
        return false;
    const uint32_t few = (uint32_t)min64(sharing->count - first, TOGETHER);
    tokens_merge(sharing->merging, lanes, sharing->order + first, few);
    for (uint32_t i = 0; i < few; i++) {
        const struct bpe_piece *piece = &lanes->pieces[i];
        struct parts *parts = &sharing->parts[first + i];
        parts->token = sharing->order[first + i];
        parts->count = piece->ids_count;
        memcpy(parts->ids, piece->ids, min64(piece->ids_count, PARTS_KEPT) * sizeof *parts->ids);
    }
    if (__atomic_add_fetch(&sharing->merged, few, __ATOMIC_ACQ_REL) == sharing->count)
        os_word_wake(&sharing->merged);
    return true;
}

/* Adds the pairs of all tokens; with a list of merges, their seeds, too. */
static void sharing_pairs(const struct sharing *sharing)
{
    struct merging *merging = sharing->merging;
    for (uint32_t i = 0; i < sharing->count; i++) {
        const struct parts *parts = &sharing->parts[i], *ahead = parts + min64(TOGETHER, sharing->count - 1 - i);
        if (ahead->count == 2)
            bpe_pair_prefetch(merging->model, ahead->ids[0], ahead->ids[1]);
        if (merging->listed)
            finish_token(merging, parts->token, parts->ids, parts->count);
        else
            finish_pair(merging, parts->ids, last_rank(merging, parts->token, parts->ids, parts->count));
    }
}

/* Adds the seeds of all tokens. Without a list of merges, this does not need the table of pairs. */
static void sharing_seeds(const struct sharing *sharing)
{
    struct merging *merging = sharing->merging;
    for (uint32_t i = 0; i < sharing->count && !merging->listed; i++) {
        const struct parts *parts = &sharing->parts[i];
        finish_seed(merging, parts->token, parts->ids, parts->count,
                    last_rank(merging, parts->token, parts->ids, parts->count));
    }
}

static void sharing_run(void *user, uint32_t number)
{
    struct sharing *sharing = user;
    uint32_t merged, task;
    while (sharing_merge(sharing, &sharing->merging->lanes[number]))
        continue;
    while ((merged = __atomic_load_n(&sharing->merged, __ATOMIC_ACQUIRE)) != sharing->count)
        os_word_wait(&sharing->merged, merged);
    while ((task = __atomic_fetch_add(&sharing->tasks, 1, __ATOMIC_RELAXED)) < 2) {
        if (task == 0)
            sharing_pairs(sharing);
        else
            sharing_seeds(sharing);
    }
}

/* Merges `count` tokens of the same length by several threads. First all are merged, which only reads the table of
 * pairs. Then one thread adds their pairs in order, and another one their seeds, so that the result does not depend on
 * the threads. */
static void merge_shared(struct merging *merging, const uint32_t *order, uint32_t count)
{
    struct sharing sharing = {.merging = merging, .order = order, .count = count, .parts = merging->parts};
    os_threads_share("tokmap-merges", merging->sharers, sharing_run, &sharing);
}

/* Returns the number of tokens from `order` on that have the same length; at most `count`, which is at least 1. */
static uint32_t same_length(const struct bpe_model *model, const uint32_t *order, uint32_t count)
{
    uint32_t few = 1;
    while (few < count && bpe_token_bytes(model, order[few]) == bpe_token_bytes(model, *order))
        few++;
    return few;
}

/* Allocates merging->parts, if some length has enough tokens for several threads. Without memory, one merges all. */
static void parts_new(struct merging *merging, uint32_t count)
{
    const struct bpe_model *model = merging->model;
    uint32_t most = 0;
    for (uint32_t i = 0, few; i < count; i += few) {
        few = same_length(model, merging->order + i, count - i);
        if (bpe_token_bytes(model, merging->order[i]) <= BPE_LANE_BYTES)
            most = (uint32_t)max64(most, few);
    }
    if (merging->many && merging->sharers > 1 && most >= SHARED_LEAST)
        merging->parts = os_memory_large(most * sizeof *merging->parts);
}

static enum tokmap_status merge_one(struct merging *merging, uint32_t id)
{
    struct bpe_model *model = merging->model;
    const uint8_t *text = model->bytes + model->offsets[id];
    const uint32_t bytes = bpe_token_bytes(model, id);
    if (merging->source->lacks_bytes && lacks_one(model, text, bytes))
        return TOKMAP_OK;
    const size_t parts = bpe_merge(model, &merging->scratch, text, bytes, merging->ids);
    if (!parts)
        return error_set_memory(merging->error, "a vocabulary", bytes);
    finish_token(merging, id, merging->ids, parts);
    return TOKMAP_OK;
}

/* Finds the pairs, seeds, and unreached tokens among the first `count` of merging->order. */
static enum tokmap_status merge_order(struct merging *merging, uint32_t count)
{
    const struct bpe_model *model = merging->model;
    const uint32_t longest = count ? bpe_token_bytes(model, merging->order[count - 1]) : 1;
    enum tokmap_status status = TOKMAP_OK;
    merging->ids = malloc((size_t)longest * sizeof *merging->ids);
    merging->lanes = malloc(SHARERS * sizeof *merging->lanes);
    merging->sharers = (uint32_t)min64(os_processors(), SHARERS);
    if (!merging->ids || !merging->lanes)
        status = error_set_memory(merging->error, "a vocabulary", longest);
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2) && model->vocabulary < BPE_IDS && !merging->source->lacks_bytes)
        merging->many = cpu_has(CPU_VBMI) ? bpe_merge_many_vbmi : bpe_merge_many_avx2;
#endif
    if (!status)
        parts_new(merging, count);
    for (uint32_t i = 0, few; i < count && !status; i += few) {
        const uint32_t *order = merging->order + i, bytes = bpe_token_bytes(model, *order);
        const bool lanes = merging->many && bytes <= BPE_LANE_BYTES;
        few = same_length(model, order, count - i);
        if (lanes && few >= SHARED_LEAST && merging->parts) {
            merge_shared(merging, order, few);
            continue;
        }
        for (uint32_t k = 0; k < few && lanes; k += TOGETHER)
            merge_together(merging, order + k, (uint32_t)min64(few - k, TOGETHER));
        for (uint32_t k = 0; k < few && !status && !lanes; k++)
            status = merge_one(merging, order[k]);
    }
    free(merging->ids);
    free(merging->lanes);
    free(merging->parts);
    free(merging->scratch.memory);
    return status;
}

/* Merges all tokens whose split is not known. splits: NULL if no split is known. ranking: NULL if the table has the
 * ranks of the list. */
static enum tokmap_status merge_tokens(struct bpe_model *model, const struct bpe_source *source,
                                       const struct bpe_model *listed, const struct bpe_split *splits,
                                       struct ranking *ranking, struct tokmap_error *error)
{
    uint32_t count = 0;
    struct merging *merging = calloc(1, sizeof *merging);
    enum tokmap_status status = TOKMAP_OK;
    if (merging)
        *merging =
            (struct merging){.model = model,
                             .source = source,
                             .listed = listed,
                             .error = error,
                             .ranking = ranking,
                             .order = bpe_by_length(model->offsets, model->vocabulary, 2, is_unsplit, splits, &count)};
    if (!merging || !merging->order)
        status = error_set_memory(error, "a vocabulary", model->vocabulary);
    if (!status)
        status = merge_order(merging, count);
    if (!status && !bpe_unreached_new(model, merging->order, model->unreached_count))
        status = error_set_memory(error, "a vocabulary", model->unreached_count);
    if (merging)
        free(merging->order);
    free(merging);
    return status;
}

/* ---- a list of merges ---- */

/* Returns whether the ids that merges make grow along the list. Then these ids serve as ranks. */
static bool results_rise(const struct bpe_source *source)
{
    for (uint32_t i = 1; i < source->merge_count; i++)
        if (source->merges[i].result <= source->merges[i - 1].result)
            return false;
    return true;
}

static bool merge_fits(const struct bpe_model *model, const struct bpe_source *source, const struct bpe_merge *merge)
{
    if (merge->left >= model->vocabulary || merge->right >= model->vocabulary || merge->result >= model->vocabulary)
        return false;
    const uint32_t left = bpe_token_bytes(model, merge->left), right = bpe_token_bytes(model, merge->right);
    const uint8_t *result = model->bytes + model->offsets[merge->result];
    return left && right && left + right == bpe_token_bytes(model, merge->result) &&
           !memcmp(result, model->bytes + model->offsets[merge->left], left) &&
           !memcmp(result + left, model->bytes + model->offsets[merge->right], right);
}

/* Fills a table with all pairs of the list; by_result: their ranks are the ids that they make, not their places.
 * *twice: the list has a pair twice. */
static enum tokmap_status list_merges(struct bpe_model *listed, const struct bpe_model *model,
                                      const struct bpe_source *source, bool by_result, bool *twice,
                                      struct tokmap_error *error)
{
    for (uint32_t i = 0; i < source->merge_count && !source->merges_checked; i++)
        if (!merge_fits(model, source, &source->merges[i]))
            return error_set(error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "merge %" PRIu32
                             " (from 0) joins two texts that together are not the text of its result; the "
                             "file is damaged",
                             i);
    return bpe_pairs_new_list(listed, 2 * (uint64_t)source->merge_count + 1, source->merges, source->merge_count,
                              by_result, twice)
               ? TOKMAP_OK
               : error_set_memory(error, "a vocabulary", (uint64_t)source->merge_count * 16);
}

/* Returns the rank in the table of the merge that makes a token, whose split is known. */
static uint32_t split_rank(const struct bpe_model *model, const struct bpe_split *splits, uint32_t id)
{
    return model->results ? splits[id].made - BPE_BY_RANK : id;
}

/* Makes the table of the `known` pairs that make their tokens. Returns false if memory ran out. */
static bool keep_pairs(struct bpe_model *model, const struct bpe_source *source, const struct bpe_split *splits,
                       uint32_t known)
{
    struct bpe_merge *kept = os_memory_large(((size_t)known + 1) * sizeof *kept);
    uint32_t count = 0;
    bool twice;
    for (uint32_t id = 0; kept && id < model->vocabulary; id++)
        if (splits[id].made >= BPE_BY_RANK)
            kept[count++] = (struct bpe_merge){splits[id].left, splits[id].right, split_rank(model, splits, id)};
    assert(!kept || count == known);
    const bool good = kept && bpe_pairs_new_list(model, 2 * min64(source->merge_count, model->vocabulary) + 1, kept,
                                                 count, true, &twice);
    free(kept);
    return good;
}

/* The seeds of the tokens whose split was found, and the ranks of pairs of single bytes, which need nothing but texts
 * and splits: a thread of its own adds them for a large vocabulary, while the table of pairs is made. */
struct seeding {
    struct bpe_model *model;
    const struct bpe_split *splits;
};

#define SEEDING_LEAST 20000 /* tokens */

static void seeds_add(void *user)
{
    const struct seeding *seeding = user;
    struct bpe_model *model = seeding->model;
    for (uint32_t id = 0; id < model->vocabulary; id++) {
        const struct bpe_split *split = &seeding->splits[id];
        const uint8_t *text = model->bytes + model->offsets[id];
        if (split->made < BPE_BY_RANK)
            continue;
        bpe_seed_add(model, text, bpe_token_bytes(model, id), &id, 1);
        if (bpe_token_bytes(model, id) == 2 && split->left == model->byte_ids[text[0]] &&
            split->right == model->byte_ids[text[1]])
            model->byte_pairs[(uint32_t)text[0] << 8 | text[1]] = split_rank(model, seeding->splits, id);
    }
}

/* Makes the table of the pairs of all tokens whose split was found; known: how many. Takes over the table of `listed`
 * if every pair of the list is the one that makes its token, and the new table has ids as ranks. Then the ids grow
 * along the whole list, so the ranks of `listed` are ids, too. */
static enum tokmap_status add_splits(struct bpe_model *model, const struct bpe_source *source,
                                     const struct bpe_split *splits, uint32_t known, struct bpe_model *listed,
                                     struct tokmap_error *error)
{
    if (known != source->merge_count || model->results)
        return keep_pairs(model, source, splits, known)
                   ? TOKMAP_OK
                   : error_set_memory(error, "a vocabulary", (uint64_t)model->vocabulary * 16);
    model->pairs = listed->pairs;
    model->pair_bits = listed->pair_bits;
    model->pair_factor = listed->pair_factor;
    model->pair_passed = listed->pair_passed;
    model->pair_limit = listed->pair_limit;
    model->pair_count = listed->pair_count;
    model->pair_filter = listed->pair_filter;
    listed->pairs = listed->pair_filter = NULL;
    return TOKMAP_OK;
}

/* Makes the table of pairs, and what else the splits and the list give. rise: the ranks in the list are ids. */
static enum tokmap_status add_pairs(struct bpe_model *model, const struct bpe_source *source, struct bpe_model *listed,
                                    struct bpe_split *splits, uint32_t known, bool rise, struct tokmap_error *error)
{
    struct ranking ranking = {.source = source, .splits = splits, .steps = STEPS_A_TOKEN * (uint64_t)model->vocabulary};
    struct seeding seeding = {.model = model, .splits = splits};
    if (!rise && !(ranking.results = os_memory_large(((size_t)source->merge_count + 1) * sizeof *ranking.results)))
        return error_set_memory(error, "a vocabulary", (uint64_t)source->merge_count * 4);
    if (!rise && !splits_grow(splits, model->vocabulary))
        places_use(&ranking, model);
    struct os_thread *thread =
        os_thread_beside(model->vocabulary >= SEEDING_LEAST, "tokmap-seeds", seeds_add, &seeding);
    enum tokmap_status status = add_splits(model, source, splits, known, listed, error);
    os_thread_join(thread);
    if (!status)
        status = merge_tokens(model, source, listed->pairs ? listed : model, splits, rise ? NULL : &ranking, error);
    free(ranking.results);
    return status;
}

static enum tokmap_status pairs_of_list(struct bpe_model *model, const struct bpe_source *source,
                                        struct tokmap_error *error)
{
    struct bpe_model listed = {.pairs = NULL};
    struct bpe_split *splits = os_memory_large_zeros((size_t)model->vocabulary + 1, sizeof *splits);
    const bool rise = results_rise(source);
    bool twice = false;
    uint32_t known = 0;
    enum tokmap_status status = TOKMAP_OK;
    if (!splits)
        status = error_set_memory(error, "a vocabulary", (uint64_t)model->vocabulary * sizeof *splits);
    if (!status)
        status = list_merges(&listed, model, source, rise, &twice, error);
    for (uint32_t byte = 0; byte < 256 && !status; byte++)
        if (model->byte_ids[byte] != BPE_NONE)
            splits[model->byte_ids[byte]].made = BPE_ATOM;
    if (!status && !twice)
        known = bpe_splits_find(&listed, source->merges, source->merge_count, rise, os_processors(), splits);
    if (!status)
        status = add_pairs(model, source, &listed, splits, known, rise, error);
    bpe_pairs_free(&listed);
    free(splits);
    return status;
}

/* Fills pairs, seeds, and unreached tokens. */
static enum tokmap_status find_pairs(struct bpe_model *model, const struct bpe_source *source,
                                     struct tokmap_error *error)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint8_t text[16] = {(uint8_t)byte};
        if (model->byte_ids[byte] != BPE_NONE)
            bpe_seed_add(model, text, 1, &model->byte_ids[byte], 1);
    }
    if (source->merges)
        return pairs_of_list(model, source, error);
    return bpe_pairs_new(model, 2 * (uint64_t)model->vocabulary)
               ? merge_tokens(model, source, NULL, NULL, NULL, error)
               : error_set_memory(error, "a vocabulary", model->vocabulary);
}

enum tokmap_status bpe_model_build(struct bpe_model **out, const struct bpe_source *source, struct tokmap_error *error)
{
    *out = NULL;
    assert(source->offsets && source->offsets[0] == 0);
    assert(source->merges || source->whole);
    assert(!source->own_bytes || source->own_bytes == source->bytes);
    assert(!source->own_offsets || source->own_offsets == source->offsets);
    const bool fits = source->vocabulary <= BPE_IDS && source->merge_count <= BPE_MERGES;
    struct bpe_model *model = fits ? calloc(1, sizeof *model) : NULL;
    if (!model) {
        free(source->own_bytes);
        free(source->own_offsets);
        return fits ? error_set_memory(error, "a vocabulary", sizeof *model)
                    : error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                                "the vocabulary has %" PRIu32 " ids and %" PRIu32
                                " merges, but at most %u ids and %u merges are supported",
                                source->vocabulary, source->merge_count, BPE_IDS, BPE_MERGES);
    }
    model->merge = bpe_merge;
    model->vocabulary = source->vocabulary;
    model->wide = source->vocabulary > 65536;
    enum tokmap_status status = allocate(model, source, error);
    if (!status)
        status = find_bytes(model, source, error);
    if (!status) {
        struct aside aside = {.model = model, .source = source};
        struct os_thread *thread =
            os_thread_beside(model->vocabulary >= ASIDE_LEAST, "tokmap-joins", aside_run, &aside);
        status = find_pairs(model, source, error);
        os_thread_join(thread);
    }
    if (status) {
        bpe_model_free(model);
        return status;
    }
    *out = model;
    return TOKMAP_OK;
}
