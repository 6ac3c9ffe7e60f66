/* SPDX-License-Identifier: MIT */
/*
 * bpe_splits.c - see bpe_splits.h. Most of the time goes to fetching splits and pairs from memory, so several threads
 * share a long list, and the result is that of one thread.
 *
 * Whether the texts of two tokens stay apart depends on nothing but their splits, which do not change once they are
 * known. So it may be found out too early, by any thread: the threads take blocks of the list, and note for each merge
 * whose parts are known already what one thread would find. All other decisions depend on the order of the list. They
 * are made block by block: a block is finished when all those before it are, by whichever thread comes by. Then the
 * splits that it finds are filled in, and the merges that had to wait for their parts are looked at.
 *
 * Example: the merges are "a b", "c d", "ab c", and "ab cd", and a block has two. One thread notes that the parts of
 * "a b" and of "c d" stay apart. Another one looks at "ab c" and "ab cd" meanwhile. If the first block is finished by
 * then, it notes what it finds; else the split of "ab" is not known, and it notes that these merges wait. They are
 * looked at when their block is finished, which is after the first one in any case.
 *
 * Tried and not kept, as times the loading time: prefetching the pair that a merge looks up first (0.92 to 1.00 of the
 * 8 ms that this takes of llama3's 40); taking splits apart without branches (0.99 to 1.04); comparing short texts
 * inline in place of memcmp(), whose lengths cannot be predicted (1.02 to 1.03); copying texts eight characters at once
 * (1.00 to 1.01).
 */
#include "bpe_splits.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "platform/os.h"

#define AHEAD 16 /* merges whose parts are prefetched before they are handled */

/* Returns whether merging the texts of left and right side by side gives left and right. Each alone is known to become
 * itself.
 */
static bool stays_split(const struct bpe_model *listed, const struct bpe_split *splits, uint32_t left, uint32_t right)
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

static uint32_t find_alone(const struct bpe_model *listed, const struct bpe_merge *merges, uint32_t count,
                           bool by_result, struct bpe_split *splits)
{
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
            splits[merge->right].made == BPE_UNKNOWN || !stays_split(listed, splits, merge->left, merge->right))
            continue;
        *split = (struct bpe_split){merge->left, merge->right, (by_result ? merge->result : i) + BPE_BY_RANK};
        found++;
    }
    return found;
}

/* ---- several threads ---- */

#define THREADS_MOST 4u    /* more would wait for memory */
#define BLOCK 512u         /* merges. Fewer make the threads meet more often, more make more merges wait. */
#define SHARED_LEAST 8192u /* merges that make a thread worth its start */

/* State of a merge before all blocks before its own are finished. */
enum outcome {
    WAITS,   /* nothing: a part is not known yet */
    APART,   /* its parts stay apart, so it makes its token, if that is not known by then */
    NO_SPLIT /* its parts merge earlier, or its token is known */
};

struct sharing {
    const struct bpe_model *listed;
    const struct bpe_merge *merges;
    uint32_t count, blocks;
    bool by_result;
    struct bpe_split *splits; /* a thread writes left and right before made, once, and only while it is finishing */
    uint8_t *outcomes;        /* by merge */
    uint8_t *noted;           /* by block: its outcomes are complete */
    uint32_t next;            /* the first block that no thread has taken */
    bool finishing;           /* a thread finishes blocks; only that one reads or writes what follows */
    uint32_t finished;        /* blocks */
    uint32_t found;
};

/* `made` of a token, which another thread may be about to fill in. If it is known, so are all splits in it. */
static uint32_t made_now(const struct sharing *sharing, uint32_t id)
{
    return __atomic_load_n(&sharing->splits[id].made, __ATOMIC_ACQUIRE);
}

static void splits_prefetch(const struct sharing *sharing, uint32_t i)
{
    if (i >= sharing->count)
        return;
    __builtin_prefetch(&sharing->splits[sharing->merges[i].left]);
    __builtin_prefetch(&sharing->splits[sharing->merges[i].right]);
    __builtin_prefetch(&sharing->splits[sharing->merges[i].result]);
}

/* Looks at the merges of a block. Several merges of one token are often side by side: after one that stays apart, the
 * others do not count. */
static void block_note(const struct sharing *sharing, uint32_t from, uint32_t to)
{
    uint32_t last = BPE_NONE;
    for (uint32_t i = from; i < to; i++) {
        const struct bpe_merge *merge = &sharing->merges[i];
        splits_prefetch(sharing, i + AHEAD);
        enum outcome outcome = NO_SPLIT;
        if (merge->result == last || made_now(sharing, merge->result) != BPE_UNKNOWN)
            outcome = NO_SPLIT;
        else if (made_now(sharing, merge->left) == BPE_UNKNOWN || made_now(sharing, merge->right) == BPE_UNKNOWN)
            outcome = WAITS;
        else if (stays_split(sharing->listed, sharing->splits, merge->left, merge->right))
            outcome = APART;
        if (outcome == APART)
            last = merge->result;
        sharing->outcomes[i] = (uint8_t)outcome;
    }
}

/* Fills in the splits of a block; all blocks before it are finished. */
static void block_finish(struct sharing *sharing, uint32_t from, uint32_t to)
{
    struct bpe_split *splits = sharing->splits;
    for (uint32_t i = from; i < to; i++) {
        const struct bpe_merge *merge = &sharing->merges[i];
        if (sharing->outcomes[i] == NO_SPLIT || splits[merge->result].made != BPE_UNKNOWN)
            continue;
        if (sharing->outcomes[i] == WAITS &&
            (splits[merge->left].made == BPE_UNKNOWN || splits[merge->right].made == BPE_UNKNOWN ||
             !stays_split(sharing->listed, splits, merge->left, merge->right)))
            continue;
        splits[merge->result].left = merge->left;
        splits[merge->result].right = merge->right;
        __atomic_store_n(&splits[merge->result].made, (sharing->by_result ? merge->result : i) + BPE_BY_RANK,
                         __ATOMIC_RELEASE);
        sharing->found++;
    }
}

/* Finishes the blocks whose turn it is, unless another thread does. */
static void blocks_finish(struct sharing *sharing)
{
    if (__atomic_exchange_n(&sharing->finishing, true, __ATOMIC_ACQUIRE))
        return;
    while (sharing->finished < sharing->blocks &&
           __atomic_load_n(&sharing->noted[sharing->finished], __ATOMIC_ACQUIRE)) {
        const uint32_t from = sharing->finished++ * BLOCK;
        block_finish(sharing, from, (uint32_t)min64(sharing->count, (uint64_t)from + BLOCK));
    }
    __atomic_store_n(&sharing->finishing, false, __ATOMIC_RELEASE);
}

static void sharing_run(void *user, uint32_t number)
{
    struct sharing *sharing = user;
    uint32_t block;
    while ((block = __atomic_fetch_add(&sharing->next, 1, __ATOMIC_RELAXED)) < sharing->blocks) {
        block_note(sharing, block * BLOCK, (uint32_t)min64(sharing->count, (uint64_t)(block + 1) * BLOCK));
        __atomic_store_n(&sharing->noted[block], 1, __ATOMIC_RELEASE);
        blocks_finish(sharing);
    }
}

uint32_t bpe_splits_find(const struct bpe_model *listed, const struct bpe_merge *merges, uint32_t count, bool by_result,
                         uint32_t threads, struct bpe_split *splits)
{
    assert(listed->pairs && listed->pair_filter && threads);
    const uint32_t blocks = (uint32_t)(((uint64_t)count + BLOCK - 1) / BLOCK);
    uint8_t *notes = threads > 1 && count >= SHARED_LEAST ? calloc((size_t)count + blocks, 1) : NULL;
    if (!notes)
        return find_alone(listed, merges, count, by_result, splits);
    struct sharing sharing = {.listed = listed,
                              .merges = merges,
                              .count = count,
                              .blocks = blocks,
                              .by_result = by_result,
                              .splits = splits,
                              .outcomes = notes,
                              .noted = notes + count};
    os_threads_share("tokmap-splits", (uint32_t)min64(threads, THREADS_MOST), sharing_run, &sharing);
    blocks_finish(&sharing); /* the last ones may have been noted while another thread was finishing */
    assert(sharing.finished == blocks);
    free(notes);
    return sharing.found;
}

uint32_t *bpe_by_length(const uint32_t *offsets, uint32_t vocabulary, uint32_t least,
                        bool (*wanted)(const void *user, uint32_t id), const void *user, uint32_t *count)
{
    uint32_t longest = 0;
    for (uint32_t id = 0; id < vocabulary; id++)
        longest = (uint32_t)max64(longest, offsets[id + 1] - offsets[id]);
    uint32_t *places = calloc((size_t)longest + 2, sizeof *places);
    uint32_t *order = os_memory_large(((size_t)vocabulary + 1) * sizeof *order);
    if (places && order) {
        for (uint32_t id = 0; id < vocabulary; id++)
            if (offsets[id + 1] - offsets[id] >= least && wanted(user, id))
                places[offsets[id + 1] - offsets[id] + 1]++;
        for (uint32_t bytes = 1; bytes <= longest + 1; bytes++)
            places[bytes] += places[bytes - 1];
        *count = places[longest + 1];
        for (uint32_t id = 0; id < vocabulary; id++)
            if (offsets[id + 1] - offsets[id] >= least && wanted(user, id))
                order[places[offsets[id + 1] - offsets[id]]++] = id;
    } else {
        free(order);
        order = NULL;
    }
    free(places);
    return order;
}
