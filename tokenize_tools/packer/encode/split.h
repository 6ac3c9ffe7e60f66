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
#include <stdint.h>

#include "common/bytes_buffer.h"
#include "corpus/corpus_batch.h"
#include "share.h"

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
