/*
 * bpe_encode.h - text to ids with a bpe_model: what each thread has of its own.
 *
 * A chunk of text is scanned into a bitmap of starts; positions are made of it, and keys of these, in batches whose cache
 * lines are asked for while the keys are made. Most pieces are then one comparison and one store away. What the cache has
 * not is merged and put there: at once, or (AVX-512) together with the others of its chunk, room having been left for its
 * ids. All memory is bounded: the cache replaces entries, the second one (for what is long) is
 * emptied when it is full.
 */
#ifndef TOKMAP_BPE_BPE_ENCODE_H
#define TOKMAP_BPE_BPE_ENCODE_H

#include "bpe_merge.h"

#define BPE_BATCH 256
#define BPE_SLACK 32
#define BPE_LONG_BITS 18 /* lines of 64 bytes: 16 MiB */

/* Two entries a cache line: keys, then values, so that both keys are compared at once. */
struct bpe_bucket {
    struct bpe_key keys[2];
    uint64_t values[2][2];
};

/* A piece that is longer than a key, or has more ids than fit a value: a cache line too. */
struct bpe_long {
    uint32_t tag;       /* of the hash; 0: empty */
    uint32_t largest;   /* of the ids */
    uint16_t bytes, ids;
    uint8_t rest[52];   /* ids in the tokens' width, then bytes; if they do not fit, where in the store they are (32 bits,
                           in units of 4 bytes) */
};

/* How often what happened, since bpe_state_new. */
struct bpe_counts {
    uint64_t pieces, missed, merged, long_found, stores_emptied;
};

/* A piece whose ids are to be found later. */
struct bpe_pending {
    struct bpe_piece piece;    /* first, so that a pointer to it is one to the whole */
    struct bpe_key key;        /* as it is looked up; of more than 15 bytes the low half is the hash */
    uint32_t chosen;           /* its bucket */
    uint32_t at;               /* where its ids go; there is room for as many as it has bytes */
    struct bpe_pending *same;  /* the one before it that is the same piece; NULL: there is none */
    struct bpe_pending *older; /* the last one before it that is merged and hashes like it */
};
#define BPE_PENDING 64         /* when there are as many they are dealt with; a batch may add as many as it has pieces */
#define BPE_PENDING_HEADS 64

struct bpe_state;
/* The ids of count (at most BPE_BATCH) pieces of the chunk at `text`: positions[i] to positions[i + 1]. Returns how many
 * ids; up to BPE_SLACK more places may be written over. Of pieces that it adds to state->pending, if state->merge_many is
 * set, it leaves room for the ids, and counts that. */
typedef size_t bpe_pieces_function(struct bpe_state *state, const uint8_t *text, const uint16_t *positions,
                                   uint32_t count, void *tokens);
/* Bits to positions; returns how many. */
typedef uint32_t bpe_positions_function(uint16_t *positions, const uint64_t *words, size_t count);
/* Which bucket; each variant may have its own. */
typedef uint32_t bpe_hash_function(struct bpe_key key);

struct bpe_state {
    const struct bpe_model *model;
    struct bpe_bucket *buckets;
    uint32_t bucket_mask;
    uint32_t victim;         /* which entry goes next: counts up */
    struct bpe_long *longs;
    uint32_t *store;         /* ids and bytes of long pieces that do not fit a line */
    uint64_t store_used;     /* in units of 4 bytes */
    uint64_t largest;        /* id written so far */
    struct bpe_counts counts;
    struct bpe_scratch scratch;
    uint32_t *merged;        /* ids of the piece being merged */
    uint64_t merged_room;
    bool lacks_memory;       /* a piece could not be merged */

    const uint8_t *text_end; /* nothing is read from there on */
    bpe_pieces_function *pieces;
    bpe_positions_function *find_positions;
    bpe_hash_function *hash;
    bpe_merge_many_function *merge_many; /* NULL: what is not found is merged at once */
    struct scan_chunk chunk;
    uint64_t cuts[SCAN_WORDS + 1]; /* starts that are borders no token crosses, inside a piece */
    uint16_t positions[SCAN_BYTES + 64];
    struct bpe_key keys[BPE_BATCH];
    uint32_t chosen[BPE_BATCH];           /* buckets */
    struct bpe_pending pending[BPE_PENDING + BPE_BATCH];
    struct bpe_piece *lacking[BPE_SIZES][BPE_PENDING + BPE_BATCH]; /* those of them that are merged */
    uint32_t pending_ids[(BPE_PENDING + BPE_BATCH) * (BPE_LANE_BYTES + 16)];
    struct bpe_pending *heads[BPE_PENDING_HEADS]; /* of those, the last by hash */
    uint32_t pending_count, pending_ids_count;
    uint32_t spill[SCAN_BYTES + 2 * BPE_SLACK];      /* where ids go when the caller's room is nearly used up */
};

/* variant: cpu_variant_best(), but for tests. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status bpe_state_new(struct bpe_state **state, const struct bpe_model *model, enum cpu_variant variant,
                               struct tokmap_error *error);
void bpe_state_free(struct bpe_state *state);

/* Writes the ids of text, taken alone (no document goes on from one call to the next), to tokens: 16 bits each, or 32 if
 * model->wide. room: in tokens, at least count. *written: how many. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status bpe_encode(struct bpe_state *state, const uint8_t *text, uint64_t count, void *tokens, uint64_t room,
                              uint64_t *written, struct tokmap_error *error);

/* The ids of one piece that somebody else cut, at least a byte; largest and errors as above. There is room for count. */
enum tokmap_status bpe_encode_piece(struct bpe_state *state, const uint8_t *piece, uint64_t count, void *tokens,
                                    uint64_t *written, struct tokmap_error *error);

/* The ids of a chunk of at most SCAN_BYTES, whose pieces begin at the bits of state->chunk.starts: all of it, bit 0 set, the
 * bits behind it 0 up to the end of their word. room: in tokens, at least count. Returns how many; state->largest and
 * state->lacks_memory say the rest. */
size_t bpe_encode_starts(struct bpe_state *state, const uint8_t *text, size_t count, void *tokens, uint64_t room);

/* ---- between the files of the encoder ---- */

/* The ids of text[from, to), which are not found where they are first looked for: into tokens, at most to - from. */
size_t bpe_miss(struct bpe_state *state, const uint8_t *text, size_t from, size_t to, void *tokens);

/* The same of piece i of a batch, whose ids begin at `tokens`. What has to be merged may be left for later: then the result
 * says how many ids there is room for. */
size_t bpe_miss_batch(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t i, void *into,
                      const void *tokens);

bpe_pieces_function bpe_pieces_scalar;
bpe_positions_function bpe_positions_scalar;
bpe_hash_function bpe_hash_scalar;
#if defined(__x86_64__)
bpe_pieces_function bpe_pieces_vbmi;
bpe_positions_function bpe_positions_vbmi;
bpe_hash_function bpe_hash_vbmi;
bpe_merge_many_function bpe_merge_many_vbmi;
#endif

static inline uint32_t bpe_bucket_of(const struct bpe_state *state, struct bpe_key key)
{
    return state->hash(key) & state->bucket_mask;
}

/* Of more than 15 bytes. */
static inline uint64_t bpe_long_hash(const uint8_t *bytes, size_t count)
{
    uint64_t hash = count, a, b;
    for (size_t at = 0; at + 16 < count; at += 16) {
        __builtin_memcpy(&a, bytes + at, 8);
        __builtin_memcpy(&b, bytes + at + 8, 8);
        hash = bpe_mix(a ^ hash, b ^ hash);
    }
    __builtin_memcpy(&a, bytes + count - 16, 8);
    __builtin_memcpy(&b, bytes + count - 8, 8);
    return bpe_mix(a ^ hash, b ^ hash);
}

/* In the second cache, of at most 15 bytes. */
static inline uint64_t bpe_short_hash(struct bpe_key key)
{
    return bpe_mix(key.low ^ key.high >> 56, key.high);
}

static inline uint32_t bpe_long_tag(uint64_t hash)
{
    return (uint32_t)(hash >> 32) | 1;
}

static inline struct bpe_long *bpe_long_at(const struct bpe_state *state, uint64_t hash)
{
    return &state->longs[hash & ((1u << BPE_LONG_BITS) - 1)];
}


#endif
