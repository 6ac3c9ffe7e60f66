/*
 * bpe_model.h - a byte-level BPE vocabulary, ready to encode: what the merges of bytes are, and what they give.
 *
 * Loaders fill a struct bpe_source and leave the rest to bpe_model_build; from then on the model is immutable and shared
 * by threads. The same model serves both ways to say merges:
 *   - ranks (tiktoken): two neighbours merge if their bytes together are a token, the lowest id first;
 *   - merges (Hugging Face): a list of pairs of ids, the first in the list first.
 * Either way the leftmost of equals is first. Ids are below 2^21, merges fewer than 2^22.
 */
#ifndef TOKMAP_BPE_BPE_MODEL_H
#define TOKMAP_BPE_BPE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pretokenize/scanner.h"
#include "tokmap/tokmap.h"

#define BPE_IDS (1u << 21)
#define BPE_MERGES ((1u << 22) - 1) /* ranks are below it */
#define BPE_NONE UINT32_MAX

struct bpe_merge {
    uint32_t left, right, result;
};

/* What a loader knows. All of it stays the loader's and may go after bpe_model_build. */
struct bpe_source {
    const char *path;            /* for errors */
    uint32_t vocabulary;         /* ids are below it */
    const uint8_t *bytes;        /* text of all tokens, one after the other in the order of ids */
    const uint32_t *offsets;     /* vocabulary + 1: where each begins; an id without a token (or one that no text becomes,
                                    such as a special token) is empty */
    const struct bpe_merge *merges; /* in their order; NULL: by ranks */
    uint32_t merge_count;
    bool fits;                   /* the loader has seen that the texts of a merge's parts together are that of its result */
    bool lacks_bytes;            /* some bytes may have no token: their byte_ids are BPE_NONE, and no text given to the
                                    model may hold them */
    bool whole;                  /* a piece that is a token is that token, whatever merges say (ranks: always set) */
    struct split_rules rules;
};

/* A piece of at most 15 bytes and its ids, as the caches hold them. */
struct bpe_key {
    uint64_t low, high; /* the bytes, then 0, the last byte the length */
};
struct bpe_entry {
    struct bpe_key key;
    uint64_t value[2];
};

struct bpe_model;
struct bpe_scratch;
/* The ids of `count` bytes (at most 2^31), by merges alone, into ids (room for count). Returns how many; 0 if memory is
 * lacking. */
typedef size_t bpe_merge_function(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes,
                                  size_t count, uint32_t *ids);

struct bpe_model {
    bpe_merge_function *merge; /* of what the caches do not have */
    uint32_t vocabulary;
    uint8_t *bytes;
    uint32_t *offsets;
    uint32_t byte_ids[256];
    bool wide; /* ids do not fit 16 bits: values hold four of 32 bits, else seven of 16 */

    /* Pairs that merge: left << 43 | right << 22 | rank, by hash, each in the first free place from the cache line on that
     * its hash names; and, for bytes, the rank alone by the two bytes. */
    uint64_t *pairs;
    uint32_t pair_bits;
    uint64_t *pair_filter; /* a bit for each of 4 << pair_bits hashes: small enough to stay near, it answers for most pairs
                              that are not there */
    uint32_t *byte_pairs;
    uint32_t *results; /* the id that each rank gives; NULL: the rank is the id */

    /* Tokens that their bytes do not merge to, though a piece that equals one is it: ids, by hash; few or none. */
    uint32_t *unreached;
    uint32_t unreached_bits, unreached_count;

    /* Whether a token may go over the border of two characters of three bytes: bits, by hash, and by the two bytes at
     * the border. Where none can, a piece is cut, and the parts are looked up one by one. */
    uint64_t *joins;
    uint64_t edge_joins[64];

    struct bpe_entry *seeds; /* what caches begin with: tokens by their real merges */
    uint32_t seed_count;

    struct scanner scanner;
};

#define BPE_JOIN_BITS 20

/* Statuses: OK, ERROR_FORMAT (a byte without a token, merges that do not fit their tokens), ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status bpe_model_build(struct bpe_model **model, const struct bpe_source *source,
                                   struct tokmap_error *error);
void bpe_model_free(struct bpe_model *model);

/* ---- merging ---- */

/* Room that merging may need for pieces of more than BPE_SHORT bytes; grows as needed, which only odd vocabularies make
 * much. Zeroed at first. */
#define BPE_SHORT 64
struct bpe_scratch {
    void *memory;
    size_t bytes;
};

bpe_merge_function bpe_merge;
/* The same for more than BPE_SHORT bytes, straight into tokens of 16 or 32 bits (room for count), and of any length:
 * what it needs besides does not grow with the piece. *largest: raised to the largest of the ids. */
size_t bpe_merge_long(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                      void *tokens, bool wide, uint32_t *largest);
/* The id that `count` bytes are as a whole though merges do not give it; BPE_NONE if there is none. */
uint32_t bpe_unreached(const struct bpe_model *model, const uint8_t *bytes, size_t count);

/* ---- what model and caches share ---- */

static inline uint64_t bpe_mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline struct bpe_key bpe_key_of(const uint8_t *bytes, uint32_t count)
{
    struct bpe_key key = {0, 0};
    __builtin_memcpy(&key, bytes, count);
    key.high |= (uint64_t)count << 56;
    return key;
}

/* ---- pairs ---- */

#define BPE_PAIRS_LINE 8 /* entries of a cache line */

static inline uint64_t bpe_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 21 | right;
}

/* A bit of the filter; without the lowest five bits, a line. */
static inline uint64_t bpe_pair_hash(const struct bpe_model *model, uint64_t key)
{
    return key * 0x9E3779B97F4A7C15u >> (62 - model->pair_bits);
}

static inline uint64_t bpe_pair_place(uint64_t hash)
{
    return hash >> 5 << 3;
}

/* Asks for where a pair will be put, if it is not long until then. */
static inline void bpe_pair_expect(const struct bpe_model *model, uint32_t left, uint32_t right)
{
    const uint64_t hash = bpe_pair_hash(model, bpe_pair_key(left, right));
    __builtin_prefetch(&model->pairs[bpe_pair_place(hash)], 1);
    __builtin_prefetch(&model->pair_filter[hash / 64], 1);
}

/* Adds a pair; of two merges of the same pair the last counts. False: it was there. */
bool bpe_pair_add(struct bpe_model *model, uint32_t left, uint32_t right, uint32_t rank);

/* The rank of a pair that may be from place `at` on; BPE_NONE: it is not there. */
static inline uint32_t bpe_pair_rank_from(const struct bpe_model *model, uint64_t key, uint64_t at)
{
    for (;; at = (at + 1) & (((uint64_t)1 << model->pair_bits) - 1)) {
        const uint64_t found = model->pairs[at];
        if (found >> 22 == key)
            return (uint32_t)found & BPE_MERGES;
        if (found == UINT64_MAX)
            return BPE_NONE;
    }
}

/* The rank of a pair; BPE_NONE: they do not merge. */
static inline uint32_t bpe_pair_rank(const struct bpe_model *model, uint32_t left, uint32_t right)
{
    const uint64_t key = bpe_pair_key(left, right), hash = bpe_pair_hash(model, key);
    if (!(model->pair_filter[hash / 64] >> (hash % 64) & 1))
        return BPE_NONE;
    return bpe_pair_rank_from(model, key, bpe_pair_place(hash));
}

static inline uint32_t bpe_result(const struct bpe_model *model, uint32_t rank)
{
    return model->results ? model->results[rank] : rank;
}

/* How many ids fit a value. */
static inline uint32_t bpe_inline_ids(bool wide)
{
    return wide ? 4 : 7;
}

/* 16-bit ids: the count in the last 16 bits; 32-bit ids: in the highest 4 bits of the first. count: 1 to what fits. */
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

/* Where in model->joins two characters of three bytes are (of a second one of four, the first three bytes). */
static inline uint32_t bpe_join_hash(uint64_t six_bytes)
{
    return (uint32_t)((six_bytes & 0xFFFFFFFFFFFFu) * 0x9E3779B97F4A7C15u >> (64 - BPE_JOIN_BITS));
}

static inline bool bpe_may_join(const struct bpe_model *model, uint64_t six_bytes)
{
    const uint32_t at = bpe_join_hash(six_bytes);
    const uint32_t last = six_bytes >> 16 & 63, first = six_bytes >> 24 & 63;
    return (model->joins[at / 64] >> (at % 64) & 1) | (model->edge_joins[last] >> first & 1);
}

#endif
