/*
 * merge_parts.h - what the merges of bytes and those of characters have in common (bpe_merge.c, sp_merge.c): the lowest of
 * many ranks, a heap of them, and a memory of windows.
 *
 * What the last windows of a long piece gave: merging a window is slow where all of it merges, which is what runs of one
 * letter do, or of a few letters in turn; but there one window is soon like one before it. Whatever repeats with at most
 * as many bytes as there are windows here is found again.
 */
#ifndef TOKMAP_BPE_MERGE_PARTS_H
#define TOKMAP_BPE_MERGE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MERGE_NONE INT32_MAX /* the rank of two parts that do not merge */

/* Four at once, as every processor can. */
static inline int32_t lowest_of(const int32_t *ranks, size_t count)
{
    typedef int32_t four __attribute__((vector_size(16)));
    int32_t lowest = MERGE_NONE;
    size_t i = 0;
    if (count >= 8) {
        four low, other;
        memcpy(&low, ranks, sizeof low);
        for (i = 4; i + 4 <= count; i += 4) {
            memcpy(&other, ranks + i, sizeof other);
            const four less = other < low;
            low = (other & less) | (low & ~less);
        }
        for (int k = 0; k < 4; k++)
            lowest = low[k] < lowest ? low[k] : lowest;
    }
    for (; i < count; i++)
        lowest = ranks[i] < lowest ? ranks[i] : lowest;
    return lowest;
}

/* ---- a heap ---- */

struct heap {
    uint64_t *entries; /* what comes first in the high half, where in the low one */
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

/* ---- windows ---- */

#define WINDOW_MEMORY 16
#define WINDOW_RESULT 1024 /* bytes of a result that is kept */

struct window_memory {
    const uint8_t *bytes[WINDOW_MEMORY]; /* NULL: none yet */
    size_t counts[WINDOW_MEMORY], sizes[WINDOW_MEMORY];
    uint32_t next;
    uint8_t results[WINDOW_MEMORY][WINDOW_RESULT];
};

static inline void window_memory_init(struct window_memory *memory)
{
    memset(memory->bytes, 0, sizeof memory->bytes);
    memory->next = 0;
}

/* Copies what the same window gave to `result` and returns its size; 0: it is not known. */
static inline size_t window_recall(const struct window_memory *memory, const uint8_t *bytes, size_t count, void *result)
{
    for (uint32_t i = 0; i < WINDOW_MEMORY && memory->bytes[i]; i++)
        if (memory->counts[i] == count && !memcmp(memory->bytes[i], bytes, count)) {
            memcpy(result, memory->results[i], memory->sizes[i]);
            return memory->sizes[i];
        }
    return 0;
}

/* The bytes stay the caller's, and stay. */
static inline void window_keep(struct window_memory *memory, const uint8_t *bytes, size_t count, const void *result,
                               size_t size)
{
    const uint32_t at = memory->next;
    if (size > WINDOW_RESULT)
        return;
    memory->bytes[at] = bytes;
    memory->counts[at] = count;
    memory->sizes[at] = size;
    memcpy(memory->results[at], result, size);
    memory->next = (at + 1) % WINDOW_MEMORY;
}

#endif
