/* SPDX-License-Identifier: MIT */
/*
 * bpe_splits.h - finds which merge of a list makes each token of its own text, without merging the text.
 *
 * A list of merges may name several pairs for a token, and tokens that no text becomes. Which pair is the right one can
 * be found by merging the token's text, but nearly always the list alone is enough:
 *
 *   Let the texts of L and R, each alone, become L and R, by merges of growing rank, and let the list have the pair
 *   (L, R). The text of both together becomes L and R unless something merges across the border earlier. At the border
 *   there is at any time one token on the left, a last part of L as it grows, and one on the right, a first part of R.
 *   Each exists from the merge that makes it to the merge that uses it. Starting from L and R, take apart whichever of
 *   the two was made later, and repeat: this visits all pairs that are ever side by side at the border. Such a pair
 *   merges if its rank is below that of the merge that uses one of the two; of equal ranks, the left place comes first.
 *
 * Example: the merges are "a b" (rank 0), "b c" (1), "c d" (2), and "ab cd" (3). Is "ab" + "cd" the way "abcd" is made?
 * The later of "ab" (0) and "cd" (2) is "cd", made of "c" and "d". So before rank 2 the border had "ab" and "c": no
 * pair. Before rank 0 it had "b" and "c", a pair of rank 1, which is not below 0. So nothing merges across, and the
 * answer is yes. If "b c" came first in the list, it would merge before "ab" is made, and the answer would be no.
 *
 * The list is read in order, and a merge is considered only if the splits of its parts are known by then; so ranks
 * grow. What is not found this way is left to the caller, who merges it: tokens out of order, and tokens that no text
 * becomes.
 *
 * Cost: a few lookups for each merge, which is several times less than merging.
 */
#ifndef TOKMAP_BPE_BPE_SPLITS_H
#define TOKMAP_BPE_BPE_SPLITS_H

#include "bpe_model.h"

/* Ways in which a token is made (bpe_split.made). */
#define BPE_UNKNOWN 0u /* not known */
#define BPE_ATOM 1u    /* merging begins with it: a byte or a character */
#define BPE_BY_RANK                                                                                                    \
    2u /* this and more: merging its text gives the token, by the merge of rank made - BPE_BY_RANK at last */

struct bpe_split {
    uint32_t left, right; /* the two parts, if made >= BPE_BY_RANK */
    uint32_t made;
};

/* Finds the splits of tokens. listed: a model that has only its table of pairs, with all merges of the list and no pair
 * twice; the rank of a merge is its place in the list, or, with by_result, the id that it makes, which then must grow
 * along the list. threads: how many, at least 1, may share a long list; the result does not depend on it. splits: by
 * id; atoms are BPE_ATOM, all others zero; those that are found are filled in. Returns how many. */
uint32_t bpe_splits_find(const struct bpe_model *listed, const struct bpe_merge *merges, uint32_t count, bool by_result,
                         uint32_t threads, struct bpe_split *splits);

/* Returns the tokens of at least `least` bytes that are wanted, the shortest first, and of equal length in the order of
 * ids; NULL: memory ran out. The caller frees them. offsets: where each text begins, vocabulary + 1. */
uint32_t *bpe_by_length(const uint32_t *offsets, uint32_t vocabulary, uint32_t least,
                        bool (*wanted)(const void *user, uint32_t id), const void *user, uint32_t *count);

#endif
