/* SPDX-License-Identifier: MIT */
/*
 * split.h - which set a document belongs to, when an output is split into sets for training, validation, and the like.
 *
 * A hash of the document's text decides: with v = XXH3-64(text, seed), the set whose interval [floor(2^64 c),
 * floor(2^64 d)) holds v, where c and d are the sums of the shares of the sets before it and up to it. The shares are
 * exact decimals whose sum is 1. So equal texts are in one set, no document moves if others are added, and a text's set
 * can be computed without the rest of the corpus.
 *
 * Example: with train=0.75,val=0.25 a text is in `train` if v is below 0xc000000000000000.
 */
#ifndef TOKMAP_ENCODE_SPLIT_H
#define TOKMAP_ENCODE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes_buffer.h"
#include "corpus/corpus_batch.h"

/* Shares of documents, exact decimals such as 0.01 or 1%, and which hashes are below one. */

#define SHARE_TEXT_MOST 24
#define SHARE_ONE 1000000000000000000U /* shares are counted in units of 10^-18 */

/* Reads a share of `bytes` bytes: a decimal number with at most 18 decimals, or a percentage. `into` gets the decimal
 * number as it was given, or the one that a percentage means. *share is at most 2 SHARE_ONE, also if the number is
 * larger. Returns false if it is not such a number, or a percentage above 100. */
bool share_read(const char *text, size_t bytes, char into[SHARE_TEXT_MOST + 1], uint64_t *share);

/* Returns whether hash / 2^64 is below the share, which may be 0 or SHARE_ONE. */
static inline bool share_has(uint64_t share, uint64_t hash)
{
    return (unsigned __int128)hash * SHARE_ONE < (unsigned __int128)share << 64;
}

#define SPLIT_SETS_MOST 16
#define SPLIT_NAME_MOST 32 /* bytes */

struct split_set {
    char name[SPLIT_NAME_MOST + 1];
    char share[SHARE_TEXT_MOST + 1]; /* as it was given */
    uint64_t begin;                  /* of its interval, which ends where the next one begins, the last one at 2^64 */
};

struct split {
    uint64_t seed;
    uint32_t count; /* at least 1 */
    struct split_set sets[SPLIT_SETS_MOST];
};

/* Reads "train=0.99,val=0.01", without the seed. Returns NULL, or what is wrong. */
const char *split_parse(const char *text, struct split *split);

/* Returns the number of the set. The text of a prompt with a completion is both, one after the other; that of ids is
 * the ids as numbers of 4 bytes. *scratch is memory for a prompt. *set is 0 without memory, and the result is false. */
bool split_choose(const struct split *split, const struct corpus_document *document, struct bytes_buffer *scratch,
                  uint32_t *set);

#endif
