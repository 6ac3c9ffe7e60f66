/* SPDX-License-Identifier: MIT */
/*
 * bpe_model.h - a byte-level BPE vocabulary in the form that encoding needs: token texts, the table of pairs that
 * merge, and what the caches begin with.
 *
 * bpe_build.h fills a model. From then on it is immutable, and any number of threads may use it at once. One model
 * serves both ways in which vocabularies define merges:
 *   - by ranks (tiktoken): two neighbors merge if their bytes together are a token; the token with the lowest id
 *     merges first;
 *   - by a list (Hugging Face): a list of pairs of ids; the pair that comes first in the list merges first.
 * Either way, of several places where the same pair could merge, the leftmost comes first.
 *
 * A model of SentencePiece (sentencepiece/sp_model.h) begins with this struct, so that it can use the same pair table
 * and the same caches. There the pair table holds symbols instead of ids.
 */
#ifndef TOKMAP_BPE_BPE_MODEL_H
#define TOKMAP_BPE_BPE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "pretokenize/scanner.h"
#include "text_places.h"
#include "tokmap/tokmap.h"

#define BPE_IDS (1u << 21)          /* ids are below it */
#define BPE_MERGES ((1u << 22) - 1) /* ranks are below it */
#define BPE_NONE UINT32_MAX         /* no id, no rank */
#define BPE_SEEDS (1u << 20)        /* entries of the first cache (bpe_encode.c), so more seeds would be useless */

/* One entry of a list of merges: the ids `left` and `right`, side by side, become the id `result`. */
struct bpe_merge {
    uint32_t left, right, result;
};

/* A piece of at most 15 bytes as the caches compare it: its bytes, then zeros; the last byte is the length. */
struct bpe_key {
    uint64_t low, high;
};

/* A key and its ids (bpe_value_make). */
struct bpe_entry {
    struct bpe_key key;
    uint64_t value[2];
};

#define BPE_UNREACHED_BITS 8192

struct bpe_model;
struct bpe_scratch;

/* Writes the ids that merging alone gives for `count` bytes (1 to 2^31) to `ids`, which has room for `count`.
 * Returns the number of ids, or 0 if memory ran out. */
typedef size_t bpe_merge_function(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes,
                                  size_t count, uint32_t *ids);

struct bpe_model {
    bpe_merge_function *merge; /* merges pieces that the caches do not hold: bpe_merge, or sp_merge */
    uint32_t vocabulary;       /* ids are below it */
    uint8_t *bytes;            /* the texts of all tokens in the order of ids, and 16 zero bytes after the last */
    uint32_t *offsets;         /* vocabulary + 1: where each text begins */
    uint32_t byte_ids[256];    /* the token of each single byte, or BPE_NONE */
    bool wide;                 /* ids do not fit 16 bits: a cache value holds 4 ids of 32 bits, else 7 of 16 bits */

    /* The pairs that merge, as a hash table of 2^pair_bits slots. A slot is left << 43 | right << 22 | rank, or
     * UINT64_MAX if it is empty. A pair is in a slot of the cache line that its hash selects, or, if that was full when
     * it was added, of the next line that was not. Where a line is full, and pairs have passed on to the next one, its
     * last slot is lower than the one before, else higher: a search that ends in a full line is as quick as in any
     * other. Ids are a file's to choose, so the hash is a product with a secret number. */
    uint64_t *pairs;
    uint32_t pair_bits;
    uint64_t pair_factor; /* odd */
    uint64_t pair_passed; /* slots that additions have passed over since the key was drawn */
    uint64_t pair_limit;  /* if pair_passed exceeds it, another key may be drawn */
    uint32_t pair_count;
    uint64_t *pair_filter; /* 4 << pair_bits bits, by hash: a pair whose bit is 0 is not in the table. Small enough to
                              stay in the cache, so most lookups of pairs that do not merge never reach the table. */
    uint32_t *byte_pairs;  /* the ranks of pairs of single bytes: [left << 8 | right] */
    uint32_t *results;     /* the id that the merge of each rank makes; NULL: the rank is that id */

    /* Tokens that merging their own bytes does not give, although a piece with exactly these bytes becomes the
     * token; few or none. */
    struct text_places unreached;
    uint32_t unreached_count;
    uint64_t unreached_filter[BPE_UNREACHED_BITS / 64]; /* by bpe_unreached_bit() of those of at most 15 bytes */

    /* Pairs of characters of three bytes that are side by side in some token: a filter of 2^BPE_JOIN_BITS bits by the
     * hash of their six bytes; and, for tokens that hold only a part of one of the two characters, a bit for the first
     * byte of the right one, which is at least 0xE0 (row: its bits 3 and 4; bit: its lowest three), and the last byte
     * of the left one (column, modulo 64). Where neither bit is set, no merge can cross, so the piece is cut there and
     * its parts are looked up on their own. */
    uint64_t *joins;
    uint8_t edge_joins[4][64];

    /* First contents of caches: short tokens, each with the ids that merging its bytes gives. */
    struct bpe_entry *seeds;
    uint32_t seed_count;

    struct scanner scanner;
};

/* Frees a model and all that it holds; NULL is ignored. No thread may use it any more. */
void bpe_model_free(struct bpe_model *model);

/* Frees what a model holds, but not the struct itself, which may be part of a larger one. All its pointers become
 * NULL. */
void bpe_model_clear(struct bpe_model *model);

/* Makes the table of `count` tokens that merging does not reach. Returns false if memory ran out. */
bool bpe_unreached_new(struct bpe_model *model, const uint32_t *ids, uint32_t count);

/* Returns the id that `count` bytes are as a whole although merging does not give it, or BPE_NONE. */
uint32_t bpe_unreached(const struct bpe_model *model, const uint8_t *bytes, size_t count);

static inline uint32_t bpe_token_bytes(const struct bpe_model *model, uint32_t id)
{
    return model->offsets[id + 1] - model->offsets[id];
}

/* ---- keys and values, which model and caches share ---- */

/* count: at most 15. */
static inline struct bpe_key bpe_key_of(const uint8_t *bytes, uint32_t count)
{
    struct bpe_key key = {0, 0};
    __builtin_memcpy(&key, bytes, count);
    key.high |= (uint64_t)count << 56;
    return key;
}

/* Does the same if 16 bytes may be read. Whole words are loaded and masked: bytes that are copied one by one, and read
 * back as words, make the processor wait. */
static inline struct bpe_key bpe_key_in(const uint8_t *bytes, uint32_t count)
{
    struct bpe_key key = {load64(bytes), 0};
    if (count > 8)
        key.high = load64(bytes + 8) & (((uint64_t)1 << 8 * (count - 8)) - 1);
    else if (count < 8)
        key.low &= ((uint64_t)1 << 8 * count) - 1;
    key.high |= (uint64_t)count << 56;
    return key;
}

static inline uint32_t bpe_unreached_bit(struct bpe_key key)
{
    return (uint32_t)((key.low ^ key.high) * 0x9E3779B97F4A7C15u >> 32) % BPE_UNREACHED_BITS;
}

/* Returns false if bpe_unreached() would return BPE_NONE for a piece of at most 15 bytes. May return true although it
 * would. Reads a filter that stays in the nearest cache, not the table. */
static inline bool bpe_may_be_unreached(const struct bpe_model *model, struct bpe_key key)
{
    const uint32_t bit = bpe_unreached_bit(key);
    return model->unreached_filter[bit / 64] >> (bit % 64) & 1;
}

/* Returns how many ids fit a cache value. */
static inline uint32_t bpe_inline_ids(bool wide)
{
    return wide ? 4 : 7;
}

/* Packs 1 to bpe_inline_ids() ids. Ids of 16 bits: the count is in the last 16 bits. Ids of 32 bits: the count is in
 * the highest 4 bits of the first id. */
static inline void bpe_value_make(uint64_t value[2], bool wide, const uint32_t *ids, uint32_t count)
{
    value[0] = value[1] = 0;
    for (uint32_t i = 0; i < count; i++)
        value[wide ? i / 2 : i / 4] |= (uint64_t)ids[i] << (wide ? 32 * (i % 2) : 16 * (i % 4));
    if (wide)
        value[0] |= (uint64_t)count << 28;
    else
        value[1] |= (uint64_t)count << 48;
}

/* Adds a seed of the caches, unless its key or its ids do not fit, or there are BPE_SEEDS of them. 16 bytes may be
 * read. */
static inline void bpe_seed_add(struct bpe_model *model, const uint8_t *bytes, uint32_t count, const uint32_t *ids,
                                size_t id_count)
{
    if (count > 15 || id_count > bpe_inline_ids(model->wide) || model->seed_count == BPE_SEEDS)
        return;
    struct bpe_entry *seed = &model->seeds[model->seed_count++];
    seed->key = bpe_key_in(bytes, count);
    bpe_value_make(seed->value, model->wide, ids, (uint32_t)id_count);
}

/* ---- pairs ---- */

#define BPE_PAIRS_LINE 8 /* slots of a cache line */

/* Allocates an empty table with at least `slots` slots, which must be more than the pairs that will be added.
 * Returns false if memory ran out; then the model has no table. */
bool bpe_pairs_new(struct bpe_model *model, uint64_t slots);

/* Allocates such a table that has the pairs of a list: as if all were added in order, by several threads if there are
 * many. The rank of a pair is the merge's result (by_result), or its place in the list. *twice: the list has a pair
 * twice; the last of them counts. Returns false if memory ran out. */
bool bpe_pairs_new_list(struct bpe_model *model, uint64_t slots, const struct bpe_merge *merges, uint32_t count,
                        bool by_result, bool *twice);

/* Frees the table and its filter. */
void bpe_pairs_free(struct bpe_model *model);

/* Adds a pair. Returns false if the pair was there already; then it has the new rank. If pairs collide too often, all
 * of them get other slots. */
bool bpe_pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank);

static inline uint64_t bpe_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 21 | right;
}

/* Returns the number of a bit of the filter. Without its lowest five bits it is the number of a cache line of the
 * table. */
static inline uint64_t bpe_pair_hash(const struct bpe_model *model, uint64_t key)
{
    return key * model->pair_factor >> (62 - model->pair_bits);
}

/* Returns the first slot of the line that a hash selects. */
static inline uint64_t bpe_pair_place(uint64_t hash)
{
    return hash >> 5 << 3;
}

/* Prefetches what bpe_pair_add() will write. */
static inline void bpe_pair_prefetch(const struct bpe_model *model, uint32_t left, uint32_t right)
{
    const uint64_t hash = bpe_pair_hash(model, bpe_pair_key(left, right));
    __builtin_prefetch(&model->pairs[bpe_pair_place(hash)], 1);
    __builtin_prefetch(&model->pair_filter[hash / 64], 1);
}

/* Returns whether pairs that belong to this line may be in the next one. */
static inline bool bpe_pairs_passed(const uint64_t line[BPE_PAIRS_LINE])
{
    return line[BPE_PAIRS_LINE - 1] < line[BPE_PAIRS_LINE - 2];
}

/* Returns the rank of the pair with this key, searching from slot `at` on, or BPE_NONE. */
static inline uint32_t bpe_pair_rank_from(const struct bpe_model *model, uint64_t key, uint64_t at)
{
    for (;; at = (at + 1) & (((uint64_t)1 << model->pair_bits) - 1)) {
        const uint64_t found = model->pairs[at];
        if (found == UINT64_MAX) /* comes first, because it has the key of the pair of BPE_IDS - 1 with itself */
            return BPE_NONE;
        if (found >> 22 == key)
            return (uint32_t)found & BPE_MERGES;
    }
}

/* Returns the rank of a pair, or BPE_NONE if it does not merge. */
static inline uint32_t bpe_pair_rank(const struct bpe_model *model, uint32_t left, uint32_t right)
{
    const uint64_t key = bpe_pair_key(left, right), hash = bpe_pair_hash(model, key);
    if (!(model->pair_filter[hash / 64] >> (hash % 64) & 1))
        return BPE_NONE;
    return bpe_pair_rank_from(model, key, bpe_pair_place(hash));
}

/* Returns the id that the merge of this rank makes. */
static inline uint32_t bpe_result(const struct bpe_model *model, uint32_t rank)
{
    return model->results ? model->results[rank] : rank;
}

/* ---- joins of characters of three bytes ---- */

#define BPE_JOIN_BITS 20
#define BPE_JOIN_FACTOR 0x9E3779B97F4A7C15u

/* Returns the bit of model->joins for two characters of three bytes (if the second has four, its first three). */
static inline uint32_t bpe_join_hash(uint64_t six_bytes)
{
    return (uint32_t)((six_bytes & 0xFFFFFFFFFFFFu) * BPE_JOIN_FACTOR >> (64 - BPE_JOIN_BITS));
}

/* Returns whether a merge may cross the border in the middle of the six bytes. May be true although none does. */
static inline bool bpe_may_join(const struct bpe_model *model, uint64_t six_bytes)
{
    const uint32_t at = bpe_join_hash(six_bytes);
    const uint32_t last = six_bytes >> 16 & 63, first = six_bytes >> 24 & 31;
    return (model->joins[at / 64] >> (at % 64) & 1) | (model->edge_joins[first / 8][last] >> (first % 8) & 1);
}

#endif
