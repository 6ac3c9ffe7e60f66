/* SPDX-License-Identifier: MIT */
/*
 * bpe_state.h - the state of one thread that turns text into ids: its caches, and what waits in it. bpe_encode.h has
 * the functions, and bpe_encode.c explains the method.
 */
#ifndef TOKMAP_BPE_BPE_STATE_H
#define TOKMAP_BPE_BPE_STATE_H

#include "bpe_cut.h"
#include "bpe_merge.h"
#include "bpe_positions.h"
#include "bpe_windows.h"
#include "platform/table_key.h"

struct bpe_state;

/* ---- the caches ---- */

/* A bucket of the first cache: one cache line with two entries. Keys come first, so that both are compared at once. */
struct bpe_bucket {
    struct bpe_key keys[2];
    uint64_t values[2][2];
};
#define BPE_BUCKET_SHIFT 6 /* a bucket has 2^6 bytes */
_Static_assert(sizeof(struct bpe_bucket) == 1 << BPE_BUCKET_SHIFT, "a bucket is a cache line");

#define BPE_LONGS_FIRST (UINT32_C(1) << 15) /* lines of 64 bytes that the second cache begins with: 2 MiB */
#define BPE_LONGS (UINT32_C(3) << 16)       /* as it grows to at most: 12 MiB */
#define BPE_LONG_WAYS 4                     /* lines that a piece may have */
#define BPE_LONG_REST 52                    /* bytes of a line that hold ids and text */

/* A line of the second cache: a piece that is longer than a key, or has more ids than fit a value of the first
 * cache. */
struct bpe_long {
    uint32_t tag;        /* bpe_long_tag() of the piece's hash; 0: the line is empty */
    uint32_t largest;    /* of the ids */
    uint16_t bytes, ids; /* numbers */
    /* The ids in the tokens' width, then the bytes. If they do not fit: where in the store both are (32 bits, in units
     * of 4 bytes). */
    uint8_t rest[BPE_LONG_REST];
};

/* Counts of events since bpe_state_new(). */
struct bpe_counts {
    uint64_t pieces;         /* pieces encoded */
    uint64_t missed;         /* of them, not found by the first lookup */
    uint64_t merged;         /* of these, not found in any cache */
    uint64_t long_found;     /* found in the second cache */
    uint64_t stores_emptied; /* times that the second cache was full and lost everything */
};

/* The caches are one piece of memory: buckets, lines, a store for ids and bytes of longer pieces that do not fit a
 * line, and as many buckets as a batch has pieces. All of it is reached from `buckets` by a number. */
#define BPE_BUCKET_BITS 18 /* 16 MiB */
#define BPE_COPIES ((UINT32_C(1) << BPE_BUCKET_BITS) + BPE_LONGS + (UINT32_C(1) << 15) - BPE_BATCH)

/* ---- the state ---- */

/* Pieces whose keys are made, and cache lines prefetched, before the first is looked up. Lines and keys of 128 pieces
 * take 12 KiB, which a first-level cache of 32 KiB keeps: with 256 pieces a Zen 3 processor is a fifth slower. With 64
 * the last lines have not arrived when their turn comes. */
#define BPE_BATCH 128
#define BPE_STRANGE 160 /* of 256 pieces in no cache; natural text is far below it, even at its start */
/* In strange text, lines are prefetched again so many pieces before their turn. A Zen 4 processor forgets prefetches
 * while as many as it can track are on their way, so few lines of a batch arrive if most come from memory. */
#define BPE_AGAIN 16
#define BPE_SLACK 32            /* tokens that a bpe_pieces_function may write after its result */
#define BPE_PENDING 64          /* pending pieces are merged when there are as many; one batch may add BPE_BATCH more */
#define BPE_PENDING_HEADS 64    /* lists of pending pieces, by hash */
#define BPE_PENDING_WINDOWS 128 /* windows of pending pieces that are longer than a lane */
/* Room for their ids. A piece of w windows has at most w times the bytes of one. */
#define BPE_PENDING_IDS ((BPE_PENDING + BPE_BATCH + BPE_PENDING_WINDOWS) * BPE_WINDOW_IDS)
#define BPE_DOOR_BITS 16 /* 2^16 tags of 2 bytes */

/* A piece that waits to be merged together with others. Room for as many ids as it has bytes was left in the output. */
struct bpe_pending {
    struct bpe_piece piece; /* first, so that a pointer to it is a pointer to the whole */
    struct bpe_key key;     /* as in the cache; for more than 15 bytes the low half is the hash */
    uint64_t at;            /* place in the output where its ids begin */
    uint32_t bucket;
    bool has_entry;            /* the first cache has its key, and the second one may have its ids */
    bool beside;               /* its entry may be in the neighbor of its bucket, which has been prefetched */
    bool merges;               /* it has to be merged, and fits a lane */
    uint32_t windows;          /* number of windows; 0: it fits a lane */
    struct bpe_pending *same;  /* an earlier one with the same bytes, whose ids it shares; or NULL */
    struct bpe_pending *older; /* the one before it in its list of heads[]; or NULL */
};

/* Writes the ids of `count` (1 to BPE_BATCH) pieces of the chunk at `text`; piece i is text[positions[i],
 * positions[i + 1]). Returns the number of ids, and may write over BPE_SLACK more tokens. If state->merge_many is
 * set, pieces may be appended to state->pending; the result includes the room that is left for their ids. */
typedef size_t bpe_pieces_function(struct bpe_state *state, const uint8_t *text, const uint16_t *positions,
                                   uint32_t count, void *tokens);
/* Returns the hash that selects a bucket. Each CPU variant may have its own. seed: of the state, so that no text can be
 * made whose pieces all need the same bucket. */
typedef uint32_t bpe_hash_function(struct table_key seed, struct bpe_key key);

struct bpe_state {
    const struct bpe_model *model;
    void *memory;               /* in which the state is, at a multiple of its alignment */
    struct table_key seed;      /* of the hashes of both caches */
    struct bpe_bucket *buckets; /* the first cache; bucket BPE_COPIES + i is a copy (bpe_encode_x86.h) of piece i */
    uint32_t bucket_mask;
    uint32_t victim;        /* counts up; its low bits say which entry is replaced next */
    struct bpe_long *longs; /* the second cache */
    uint32_t long_fours;    /* its lines, divided by BPE_LONG_WAYS */
    uint32_t longs_used;    /* lines that hold a piece */
    uint32_t *store;        /* ids and bytes of long pieces that do not fit a line */
    uint64_t store_used;    /* in units of 4 bytes */
    uint64_t largest;       /* the largest id written since the owner last set it to 0 */
    struct bpe_counts counts;
    struct bpe_scratch scratch;
    uint32_t *merged; /* room for the ids of the piece being merged; never NULL */
    uint64_t merged_room;
    bool lacks_memory; /* a piece could not be merged */

    const uint8_t *text_end; /* nothing from here on may be read */
    bpe_pieces_function *pieces;
    bpe_positions_function *find_positions;
    bpe_hash_function *hash;
    bpe_cut_function *cut;
    bpe_merge_many_function *merge_many;  /* NULL: pieces that no cache holds are merged at once */
    _Alignas(64) struct scan_chunk chunk; /* so that its rows begin at multiples of 64 bytes */
    uint64_t cuts[SCAN_WORDS + 1];        /* those of chunk.starts that are cuts inside a piece */
    uint16_t positions[SCAN_BYTES + 64];
    /* The batch's keys (of more than 15 bytes: the low half is the hash), and where the pieces' buckets begin, in bytes
     * from `buckets`. Each 64 bytes that are stored to them are one cache line. */
    _Alignas(64) struct bpe_key keys[BPE_BATCH];
    _Alignas(64) uint32_t batch_places[BPE_BATCH + BPE_AGAIN];
    uint8_t batch_longs[BPE_BATCH]; /* the numbers of its pieces of more than 15 bytes */
    uint32_t batch_long_count;
    struct bpe_pending pending[BPE_PENDING + BPE_BATCH];
    /* The windows of long pending pieces, and after them the other pending pieces without those that are the `same`. */
    struct bpe_piece *to_merge[BPE_PENDING_WINDOWS + BPE_PENDING + BPE_BATCH];
    uint32_t pending_ids[BPE_PENDING_IDS];
    struct bpe_pending *heads[BPE_PENDING_HEADS]; /* the last piece of each list of those to merge */
    uint32_t pending_count, pending_ids_count, windows_count;
    /* Numbers of the last pieces whose entries were, and were not, in the neighbor of their bucket, of those that could
     * be there. */
    uint32_t beside_found, beside_new;
    uint64_t pieces_since;     /* pieces looked up since strange_count() was last called */
    uint64_t strangers_before; /* pieces merged, and pending, then */
    uint64_t strange; /* of 256 pieces, how many no cache held, on average of the last calls of strange_count() */
    uint32_t spill[SCAN_BYTES + 2 * BPE_SLACK]; /* receives a batch where the caller's room has no slack after it */
    struct bpe_piece windows[BPE_PENDING_WINDOWS];
    uint32_t window_ids[BPE_PENDING_WINDOWS * BPE_WINDOW_IDS];
    uint16_t doors[1 << BPE_DOOR_BITS]; /* tags of the hashes of pieces that were not kept */
};

/* ---- where a piece belongs ---- */

static inline uint32_t bpe_bucket_of(const struct bpe_state *state, struct bpe_key key)
{
    return state->hash(state->seed, key) & state->bucket_mask;
}

/* Returns the hash of a piece of more than 15 bytes, for the second cache. */
static inline uint64_t bpe_long_hash(struct table_key seed, const uint8_t *bytes, size_t count)
{
    uint64_t hash = count, a, b;
    for (size_t at = 0; at + 16 < count; at += 16) {
        __builtin_memcpy(&a, bytes + at, 8);
        __builtin_memcpy(&b, bytes + at + 8, 8);
        hash = table_mix(seed, a ^ hash, b ^ hash);
    }
    __builtin_memcpy(&a, bytes + count - 16, 8);
    __builtin_memcpy(&b, bytes + count - 8, 8);
    return table_mix(seed, a ^ hash, b ^ hash);
}

/* Returns the hash of a piece of at most 15 bytes, for the second cache. */
static inline uint64_t bpe_short_hash(struct table_key seed, struct bpe_key key)
{
    return table_mix(seed, key.low ^ key.high >> 56, key.high);
}

static inline uint32_t bpe_long_tag(uint64_t hash)
{
    return (uint32_t)(hash >> 32) | 1;
}

/* Returns the line where a piece is looked for first (beside: 0), or one of its neighbors (1 to 3). The tag says which
 * they are, so that lines can move when the cache grows: its high bits select four lines, and two low bits the first of
 * them. */
static inline struct bpe_long *bpe_long_at(const struct bpe_state *state, uint32_t tag, uint32_t beside)
{
    const uint64_t four = (uint64_t)tag * state->long_fours >> 32;
    return &state->longs[BPE_LONG_WAYS * four + ((tag >> 1 ^ beside) % BPE_LONG_WAYS)];
}

#endif
