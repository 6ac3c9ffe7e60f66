/* SPDX-License-Identifier: MIT */
/*
 * bpe_entries.h - the caches of a state: which entries they keep, and where. bpe_encode.c explains what they are for.
 *
 * The first cache has short pieces. Its usual lookup, in a piece's own bucket, is in the loops of the CPU
 * variants; here is the rest. An entry belongs in the bucket that the hash of its key selects. When that is full, one
 * of its two entries moves to the neighboring bucket (number ^ 1). So the two neighbors together have room for any four
 * entries of theirs, and a further one is lost.
 *
 * The cache begins with seeds: the short tokens of the vocabulary. A text uses only a part of a large vocabulary, so
 * seeds move, and are lost, before entries that the text has brought. If the text needs a seed that was lost, the entry
 * that it gets then stays like others. A seed is known by its id, which is stored twice: lookups take as many ids as
 * the value says, and so they need no mask for a flag.
 *
 * Example: bucket 6 has the seeds "x" and "y", bucket 7 the seed "z" and the entry "cat". The text brings "dog", for
 * bucket 6: it takes the place of "x", which is lost, because bucket 7 is full. Then "cow" takes that of "y". Then
 * "hen", also for bucket 6: "dog" moves to bucket 7, where it takes the place of "z".
 */
#ifndef TOKMAP_BPE_BPE_ENTRIES_H
#define TOKMAP_BPE_BPE_ENTRIES_H

#include "bpe_state.h"

/* Fills the first cache with the model's seeds, with two threads if there are many. */
void bpe_entries_seed(struct bpe_state *state);

/* Adds an entry to bucket `at`, which is its own. The key is not in the cache. */
void bpe_entry_add(struct bpe_state *state, uint32_t at, struct bpe_key key, const uint64_t value[2]);

/* Returns the value of a key that is in its own bucket, or NULL. */
uint64_t *bpe_entry_at_home(struct bpe_state *state, uint32_t at, struct bpe_key key);

/* Returns whether an entry of this bucket may be in the neighboring one. None moves there before its own is full; so
 * most misses need not read that line. */
bool bpe_entry_may_be_beside(const struct bpe_state *state, uint32_t at);

/* Returns the value of a key, or NULL. An entry in the neighboring bucket is swapped with a seed of its own bucket.
 * Without one, it is swapped about one time in four, and always if it has no ids: bpe_encode.c looks for it in its own
 * bucket when it has them. */
uint64_t *bpe_entry_find(struct bpe_state *state, uint32_t at, struct bpe_key key);

static inline bool bpe_same_key(struct bpe_key a, struct bpe_key b)
{
    return a.low == b.low && a.high == b.high;
}

/* ---- the second cache: pieces that are longer than a key, or that have too many ids for the first ---- */

/* Bytes of a piece that is kept: web pages have lists without spaces, the same on each page. */
#define BPE_LONG_MOST 2048

/* Gives the cache its place in the memory of the caches, which is all zeros. */
void bpe_longs_place(struct bpe_state *state);
/* Returns the line that holds a piece, its own or one of its neighbors, and its ids in the tokens' width; or NULL. The
 * line is valid until a piece is added. */
const struct bpe_long *bpe_long_find(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, size_t count,
                                     const void **ids);
/* Adds a piece that the cache does not hold, unless it is too long. May move all lines, or empty the cache. */
void bpe_long_add(struct bpe_state *state, uint64_t hash, const uint8_t *bytes, size_t count, const uint32_t *ids,
                  size_t id_count);

#endif
