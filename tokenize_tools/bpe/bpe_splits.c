/* bpe_splits.c - see bpe_splits.h. */
#include "bpe_splits.h"

#include <assert.h>

#define AHEAD 16 /* merges whose parts are prefetched before they are handled */

/* Returns whether merging the texts of left and right side by side gives left and right. Each alone is known to become
 * itself.
 */
static bool stay_apart(const struct bpe_model *listed, const struct bpe_split *splits, uint32_t left, uint32_t right)
{
    for (;;) {
        const struct bpe_split *before = &splits[left], *behind = &splits[right];
        if (before->made == BPE_ATOM && behind->made == BPE_ATOM)
            return true;
        uint32_t limit = before->made;
        if (before->made > behind->made) {
            left = before->right;
        } else {
            limit = behind->made + 1;
            right = behind->left;
        }
        const uint32_t rank = bpe_pair_rank(listed, left, right);
        if (rank != BPE_NONE && rank + BPE_BY_RANK < limit)
            return false;
    }
}

uint32_t bpe_splits_find(const struct bpe_model *listed, const struct bpe_merge *merges, uint32_t count, bool by_result,
                         struct bpe_split *splits)
{
    assert(listed->pairs && listed->pair_filter);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct bpe_merge *merge = &merges[i];
        if (count - i > AHEAD) {
            __builtin_prefetch(&splits[merge[AHEAD].left]);
            __builtin_prefetch(&splits[merge[AHEAD].right]);
            __builtin_prefetch(&splits[merge[AHEAD].result], 1);
        }
        struct bpe_split *split = &splits[merge->result];
        if (split->made != BPE_UNKNOWN || splits[merge->left].made == BPE_UNKNOWN ||
            splits[merge->right].made == BPE_UNKNOWN || !stay_apart(listed, splits, merge->left, merge->right))
            continue;
        *split = (struct bpe_split){merge->left, merge->right, (by_result ? merge->result : i) + BPE_BY_RANK};
        found++;
    }
    return found;
}
