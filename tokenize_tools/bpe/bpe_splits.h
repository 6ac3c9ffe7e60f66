/*
 * bpe_splits.h - which merge makes a token of its own text, told from a list of merges without merging.
 *
 * A vocabulary's merges may name several pairs for a token, and tokens that text never becomes. What a token's text comes
 * to can be found by merging it, but nearly always a look at the list is enough:
 *   Let the texts of L and R alone become L and R, each by merges of rising rank, and let the list have L R as a pair. The
 *   text of both together becomes L R unless something merges over the border before. What stands at the border is a row
 *   of tokens on either side, the last parts of L and the first parts of R as they grew, and each is there from the merge
 *   that makes it to the merge that takes it. Going back from L and R by taking apart whichever of the two was made
 *   later passes all pairs that ever stand side by side there; such a pair merges if its rank is below that of the merge
 *   by which one of the two is taken: of equal ranks the left one comes first.
 * Merges are taken by rank, each with parts that are known by then; so ranks rise. What this does not find is left to
 * whoever merges: tokens out of order, and those that merges do not reach.
 */
#ifndef TOKMAP_BPE_BPE_SPLITS_H
#define TOKMAP_BPE_BPE_SPLITS_H

#include "bpe_model.h"

/* How a token is made. */
#define BPE_UNKNOWN 0u
#define BPE_ATOM 1u    /* merging begins with it */
#define BPE_BY_RANK 2u /* and more: its text alone becomes it, by the merge of the rank that is this less */

struct bpe_split {
    uint32_t left, right;
    uint32_t made;
};

/* listed: a model of which only the pairs are there: all merges of the list, no pair twice, their ranks being the places
 * in the list or (by_result) what they make, which must then rise along the list. splits: by id; atoms say so, all
 * others are unknown; those that are found are filled in. Returns how many. */
uint32_t bpe_splits_find(const struct bpe_model *listed, const struct bpe_merge *merges, uint32_t count, bool by_result,
                         struct bpe_split *splits);

#endif
