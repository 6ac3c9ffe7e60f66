/* SPDX-License-Identifier: MIT */
/*
 * bpe_merge_parts.h - merging a row of parts that is too long for the quadratic method; shared by merges of bytes
 * (bpe_merge.c) and of characters (sp_merge.c).
 *
 * Two methods with the same result. Both always merge the pair of lowest priority, and of equals the leftmost.
 *   Rounds: find the lowest priority, merge all pairs that have it from left to right, and repeat. A round stops early
 *   as soon as a merge makes a new pair that has to come before the rest. Text in which one pair repeats, such as a run
 *   of one letter, takes few rounds. The worst case is quadratic, so rounds are used for up to MERGE_ROUNDS parts.
 *   Heap: parts in a linked list, and a heap of (priority, position). A merge changes the pairs beside it; their old
 *   heap entries stay and are skipped when they come up. n parts cost n log n.
 *
 * What differs between bytes and characters is passed as functions, which are inlined.
 *
 * Window memory: a long piece is merged in windows (bpe_merge.c). Where all of a window merges, as in runs of one
 * letter or of a few letters in turn, this is slow; but there the next windows soon have the same bytes as earlier
 * ones. The results of the last WINDOW_MEMORY windows are kept, so any text that repeats with a period of at most that
 * many bytes is merged once.
 */
#ifndef TOKMAP_BPE_BPE_MERGE_PARTS_H
#define TOKMAP_BPE_BPE_MERGE_PARTS_H

#include <stdlib.h>
#include <string.h>

#include "bpe_merge.h"

#define MERGE_NONE INT32_MAX /* the priority of two parts that do not merge */
#define MERGE_ROUNDS 1024    /* the most parts that are merged in rounds */
#define MERGE_INLINE static inline __attribute__((always_inline))

/* A part of the piece: its id or symbol, and the offset of its first byte. */
struct merge_part {
    uint32_t symbol, start;
};

/* Returns the rank of two neighbors; BPE_NONE: they do not merge. */
typedef uint32_t merge_rank_function(const struct bpe_model *model, uint32_t left, uint32_t right);
/* Ranks with the same priority merge from left to right. Priorities are below MERGE_NONE and grow with ranks. */
typedef uint32_t merge_priority_function(const struct bpe_model *model, uint32_t rank);
/* Returns the part that two neighbors become whose pair has this priority. */
typedef uint32_t merge_result_function(const struct bpe_model *model, uint32_t priority, uint32_t left, uint32_t right);

/* Compares four at once, which every processor can. */
static inline int32_t lowest_of(const int32_t *priorities, size_t count)
{
    typedef int32_t four __attribute__((vector_size(16)));
    int32_t lowest = MERGE_NONE;
    size_t i = 0;
    if (count >= 8) {
        four low, other;
        memcpy(&low, priorities, sizeof low);
        for (i = 4; i + 4 <= count; i += 4) {
            memcpy(&other, priorities + i, sizeof other);
            const four less = other < low;
            low = (other & less) | (low & ~less);
        }
        for (int k = 0; k < 4; k++)
            lowest = low[k] < lowest ? low[k] : lowest;
    }
    for (; i < count; i++)
        lowest = priorities[i] < lowest ? priorities[i] : lowest;
    return lowest;
}

/* ---- rounds ---- */

MERGE_INLINE int32_t merge_pair_priority(const struct bpe_model *model, uint32_t left, uint32_t right,
                                         merge_rank_function *rank_of, merge_priority_function *priority_of)
{
    const uint32_t rank = rank_of(model, left, right);
    return rank == BPE_NONE ? MERGE_NONE : (int32_t)priority_of(model, rank);
}

/* Merges pairs of one priority, at least one. Returns the number of parts that are left. */
MERGE_INLINE size_t merge_round(const struct bpe_model *model, struct merge_part *parts, int32_t *priorities,
                                size_t count, int32_t priority, merge_rank_function *rank_of,
                                merge_priority_function *priority_of, merge_result_function *result_of)
{
    size_t from = 0, to;
    bool sooner = false; /* a new pair has to be merged before the rest of this round */
    while (priorities[from] != priority)
        from++;
    for (to = from; from < count && !sooner; to++) {
        if (priorities[from] != priority) {
            parts[to] = parts[from];
            priorities[to] = priorities[from++];
            continue;
        }
        const uint32_t result = result_of(model, (uint32_t)priority, parts[from].symbol, parts[from + 1].symbol);
        parts[to] = (struct merge_part){result, parts[from].start};
        from += 2;
        priorities[to] =
            from < count ? merge_pair_priority(model, result, parts[from].symbol, rank_of, priority_of) : MERGE_NONE;
        if (to)
            priorities[to - 1] = merge_pair_priority(model, parts[to - 1].symbol, result, rank_of, priority_of);
        sooner = priorities[to] <= priority || (to && priorities[to - 1] <= priority);
    }
    memmove(parts + to, parts + from, (count - from) * sizeof *parts);
    memmove(priorities + to, priorities + from, (count - from) * sizeof *priorities);
    return to + (count - from);
}

/* priorities[i] is that of the pair that parts[i] begins; the last one is MERGE_NONE. Returns the number of parts
 * that are left. */
MERGE_INLINE size_t merge_rounds(const struct bpe_model *model, struct merge_part *parts, int32_t *priorities,
                                 size_t count, merge_rank_function *rank_of, merge_priority_function *priority_of,
                                 merge_result_function *result_of)
{
    for (int32_t priority; (priority = lowest_of(priorities, count)) != MERGE_NONE;)
        count = merge_round(model, parts, priorities, count, priority, rank_of, priority_of, result_of);
    return count;
}

/* ---- the heap ---- */

struct merge_node {
    uint32_t symbol, next, previous; /* symbol BPE_NONE: merged into the part before */
    uint32_t rank;                   /* with the next part, or BPE_NONE */
};

/* The memory that merge_heap() needs, for each part. */
#define MERGE_HEAP_BYTES (sizeof(struct merge_node) + 2 * sizeof(uint64_t))

/* Entries have the priority in the high half and the position in the low half: the lowest entry merges next. */
struct merge_queue {
    uint64_t *entries;
    size_t count;
};

static inline void heap_up(uint64_t *heap, size_t at)
{
    const uint64_t moving = heap[at];
    for (; at && heap[(at - 1) / 2] > moving; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moving;
}

static inline void heap_down(uint64_t *heap, size_t count, size_t at)
{
    const uint64_t moving = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= moving)
            break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

/* Finds the rank of the pair that a node begins, and queues the pair if it merges. */
MERGE_INLINE void merge_queue_pair(const struct bpe_model *model, struct merge_queue *queue, struct merge_node *nodes,
                                   uint32_t at, uint32_t end, merge_rank_function *rank_of,
                                   merge_priority_function *priority_of)
{
    struct merge_node *node = &nodes[at];
    node->rank = node->next < end ? rank_of(model, node->symbol, nodes[node->next].symbol) : BPE_NONE;
    if (node->rank != BPE_NONE) {
        queue->entries[queue->count] = (uint64_t)priority_of(model, node->rank) << 32 | at;
        heap_up(queue->entries, queue->count++);
    }
}

/* memory: MERGE_HEAP_BYTES for each of `count` parts. Returns the number of parts that are left. */
MERGE_INLINE size_t merge_heap(const struct bpe_model *model, void *memory, struct merge_part *parts, size_t count,
                               merge_rank_function *rank_of, merge_priority_function *priority_of)
{
    struct merge_node *nodes = memory;
    struct merge_queue queue = {(uint64_t *)(void *)(nodes + count), 0};
    const uint32_t end = (uint32_t)count;
    for (uint32_t i = 0; i < end; i++) {
        const uint32_t rank = i + 1 < end ? rank_of(model, parts[i].symbol, parts[i + 1].symbol) : BPE_NONE;
        nodes[i] = (struct merge_node){parts[i].symbol, i + 1, i - 1, rank};
        if (rank != BPE_NONE)
            queue.entries[queue.count++] = (uint64_t)priority_of(model, rank) << 32 | i;
    }
    for (size_t i = queue.count / 2; i--;)
        heap_down(queue.entries, queue.count, i);
    /* A merge takes one entry out and puts at most two in, so with those of the start there are never more than 2 *
     * count. */
    while (queue.count) {
        const uint32_t priority = (uint32_t)(queue.entries[0] >> 32), at = (uint32_t)queue.entries[0];
        queue.entries[0] = queue.entries[--queue.count];
        if (queue.count)
            heap_down(queue.entries, queue.count, 0);
        struct merge_node *node = &nodes[at];
        if (node->symbol == BPE_NONE || node->rank == BPE_NONE || priority_of(model, node->rank) != priority)
            continue; /* out of date */
        struct merge_node *gone = &nodes[node->next];
        node->symbol = bpe_result(model, node->rank);
        node->next = gone->next;
        gone->symbol = BPE_NONE;
        if (node->next < end)
            nodes[node->next].previous = at;
        merge_queue_pair(model, &queue, nodes, at, end, rank_of, priority_of);
        if (at)
            merge_queue_pair(model, &queue, nodes, node->previous, end, rank_of, priority_of);
    }
    size_t left = 0;
    for (uint32_t i = 0; i < end; i = nodes[i].next)
        parts[left++] = (struct merge_part){nodes[i].symbol, parts[i].start};
    return left;
}

/* ---- windows ---- */

#define WINDOW_MEMORY 16
#define WINDOW_PARTS 256 /* results with more parts are not kept */

struct window_memory {
    const uint8_t *bytes[WINDOW_MEMORY]; /* NULL: not used yet */
    size_t bytes_counts[WINDOW_MEMORY], parts_counts[WINDOW_MEMORY];
    uint32_t next;
    struct merge_part results[WINDOW_MEMORY][WINDOW_PARTS];
};

static inline void window_memory_init(struct window_memory *memory)
{
    memset(memory->bytes, 0, sizeof memory->bytes);
    memory->next = 0;
}

/* Copies the result of a window with the same bytes to `parts` and returns its length; 0: none is kept. */
static inline size_t window_recall(const struct window_memory *memory, const uint8_t *bytes, size_t count,
                                   struct merge_part *parts)
{
    for (uint32_t i = 0; i < WINDOW_MEMORY && memory->bytes[i]; i++)
        if (memory->bytes_counts[i] == count && !memcmp(memory->bytes[i], bytes, count)) {
            memcpy(parts, memory->results[i], memory->parts_counts[i] * sizeof *parts);
            return memory->parts_counts[i];
        }
    return 0;
}

/* Keeps a result. `bytes` is not copied: it must stay valid and unchanged as long as the memory is used. */
static inline void window_keep(struct window_memory *memory, const uint8_t *bytes, size_t count,
                               const struct merge_part *parts, size_t parts_count)
{
    const uint32_t at = memory->next;
    if (parts_count > WINDOW_PARTS)
        return;
    memory->bytes[at] = bytes;
    memory->bytes_counts[at] = count;
    memory->parts_counts[at] = parts_count;
    memcpy(memory->results[at], parts, parts_count * sizeof *parts);
    memory->next = (at + 1) % WINDOW_MEMORY;
}

/* Makes room for windows of `parts` parts: heap memory, then the parts. Returns false if memory ran out. */
static inline bool window_grow(struct bpe_scratch *scratch, size_t parts)
{
    const size_t wanted = parts * (MERGE_HEAP_BYTES + sizeof(struct merge_part));
    if (scratch->bytes >= wanted)
        return true;
    free(scratch->memory);
    scratch->memory = malloc(wanted);
    scratch->bytes = scratch->memory ? wanted : 0;
    return scratch->memory != NULL;
}

/* Returns the parts after the heap memory. */
static inline struct merge_part *window_parts(const struct bpe_scratch *scratch, size_t parts)
{
    return (struct merge_part *)(void *)((uint8_t *)scratch->memory + parts * MERGE_HEAP_BYTES);
}

#define WINDOWS_A_LOOK 1024 /* between two looks at whether to stop */

/* Returns how many of a window's parts end before its last quarter, so that what comes after the window hardly ever
 * changes them. end: that of the window, in the unit of `start`. */
static inline size_t parts_to_accept(const struct merge_part *parts, size_t count, size_t end)
{
    const size_t most = end - end / 4;
    while (count && end > most)
        end = parts[--count].start;
    return count;
}

/* For merge_rounds() and merge_heap(), where the rank of a pair is its priority. */
static inline uint32_t rank_itself(const struct bpe_model *model, uint32_t rank)
{
    return rank;
}

static inline uint32_t result_of_rank(const struct bpe_model *model, uint32_t rank, uint32_t left, uint32_t right)
{
    return bpe_result(model, rank);
}

#endif
