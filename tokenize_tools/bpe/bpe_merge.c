/*
 * bpe_merge.c - the merges of one piece.
 *
 * Short pieces: the parts in a row with the rank of each with its right neighbour; the lowest, leftmost rank merges and
 * the row closes up. Quadratic, but for some ten parts nothing is faster.
 *
 * Long pieces: window after window, so that what is worked on stays near and small. It is exact for any merges:
 *   Let the ids of X end with u, those of Y begin with v, and those of the bytes of u and v together be u and v. Then the
 *   ids of XY are those of X and of Y. For, as long as no merge has gone over the border of X and Y, the tokens that the
 *   sides will be are independent rows of merges, of which the lowest head is always next. What u and v have come to
 *   when a merge over the border is the lowest of all, they come to alone as well, and there it is the lowest of theirs.
 *   The other way round, any two neighbours in the ids of a text are the ids of their bytes together.
 * So a window begins with the last token that is settled. If it gives that token first again, what it gives after it
 * goes on; but its end, which does not see what follows, is left to the next one. If it does not, settled tokens are
 * taken back, one and then twice as many each time, and the window becomes twice as long, at last the whole piece.
 *
 * Windows that are not short: rounds, each with all pairs of the lowest rank from left to right, until one of them makes
 * a pair that is lower. Runs of one letter take few. Very long windows, which only odd vocabularies need: parts in a
 * linked list and a heap of (rank, position), with entries that are out of date left in it until they come up.
 */
#include "bpe_model.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "merge_parts.h"

static size_t merge_short(const struct bpe_model *model, const uint8_t *bytes, size_t count, uint32_t *ids)
{
    uint32_t ranks[BPE_SHORT + 1];
    size_t parts = count;
    for (size_t i = 0; i < count; i++)
        ids[i] = model->byte_ids[bytes[i]];
    for (size_t i = 0; i + 1 < count; i++)
        ranks[i] = model->byte_pairs[(uint32_t)bytes[i] << 8 | bytes[i + 1]];
    while (parts > 1) {
        uint32_t lowest = BPE_NONE;
        size_t at = 0;
        for (size_t i = 0; i + 1 < parts; i++)
            if (ranks[i] < lowest) {
                lowest = ranks[i];
                at = i;
            }
        if (lowest == BPE_NONE)
            break;
        ids[at] = bpe_result(model, lowest);
        parts--;
        for (size_t i = at + 1; i < parts; i++) {
            ids[i] = ids[i + 1];
            ranks[i - 1] = ranks[i]; /* the pair of the part that is gone goes with it */
        }
        if (at)
            ranks[at - 1] = bpe_pair_rank(model, ids[at - 1], ids[at]);
        if (at + 1 < parts)
            ranks[at] = bpe_pair_rank(model, ids[at], ids[at + 1]);
    }
    return parts;
}

/* ---- windows ---- */

#define ROUNDS 1024 /* most bytes of a window that is merged in rounds */

static inline int32_t round_rank(const struct bpe_model *model, uint32_t left, uint32_t right)
{
    const uint32_t rank = bpe_pair_rank(model, left, right);
    return rank == BPE_NONE ? MERGE_NONE : (int32_t)rank;
}

/* Merges the pairs of one rank from left to right, at most until a lower one comes up; returns how many parts are left. */
static size_t merge_round(const struct bpe_model *model, uint32_t *ids, int32_t *ranks, size_t parts, int32_t rank)
{
    const uint32_t result = bpe_result(model, (uint32_t)rank);
    bool lower = false;
    size_t from = 0;
    while (ranks[from] != rank)
        from++;
    size_t to = from;
    while (from < parts && !lower) {
        if (ranks[from] != rank) {
            ids[to] = ids[from];
            ranks[to++] = ranks[from++];
            continue;
        }
        from += 2;
        ids[to] = result;
        ranks[to] = from < parts ? round_rank(model, result, ids[from]) : MERGE_NONE;
        if (to)
            ranks[to - 1] = round_rank(model, ids[to - 1], result);
        lower = ranks[to] < rank || (to && ranks[to - 1] < rank);
        to++;
    }
    memmove(ids + to, ids + from, (parts - from) * sizeof *ids);
    memmove(ranks + to, ranks + from, (parts - from) * sizeof *ranks);
    return to + (parts - from);
}

static size_t merge_rounds(const struct bpe_model *model, const uint8_t *bytes, size_t count, uint32_t *ids)
{
    int32_t ranks[ROUNDS];
    size_t parts = count;
    for (size_t i = 0; i < count; i++) {
        const uint32_t rank = i + 1 < count ? model->byte_pairs[(uint32_t)bytes[i] << 8 | bytes[i + 1]] : BPE_NONE;
        ids[i] = model->byte_ids[bytes[i]];
        ranks[i] = rank == BPE_NONE ? MERGE_NONE : (int32_t)rank;
    }
    for (int32_t rank; (rank = lowest_of(ranks, parts)) != MERGE_NONE;)
        parts = merge_round(model, ids, ranks, parts, rank);
    return parts;
}

struct part {
    uint32_t id, next, previous; /* id BPE_NONE: merged into the one before */
    uint32_t rank;               /* with the next; BPE_NONE: none */
};

static void set_rank(const struct bpe_model *model, struct heap *heap, struct part *parts, uint32_t at, uint32_t count)
{
    struct part *part = &parts[at];
    part->rank = part->next < count ? bpe_pair_rank(model, part->id, parts[part->next].id) : BPE_NONE;
    if (part->rank != BPE_NONE) {
        heap->entries[heap->count] = (uint64_t)part->rank << 32 | at;
        heap_up(heap->entries, heap->count++);
    }
}

/* A merge takes an entry out and puts at most two in: with those of the start never more than 2 * count. */
static size_t merge_heap(const struct bpe_model *model, void *memory, const uint8_t *bytes, size_t count, uint32_t *ids)
{
    struct part *parts = memory;
    struct heap heap = {(uint64_t *)(void *)(parts + count), 0};
    const uint32_t end = (uint32_t)count;
    for (uint32_t i = 0; i < end; i++) {
        const uint32_t rank = i + 1 < end ? model->byte_pairs[(uint32_t)bytes[i] << 8 | bytes[i + 1]] : BPE_NONE;
        parts[i] = (struct part){model->byte_ids[bytes[i]], i + 1, i - 1, rank};
        if (rank != BPE_NONE)
            heap.entries[heap.count++] = (uint64_t)rank << 32 | i;
    }
    for (size_t i = heap.count / 2; i--;)
        heap_down(heap.entries, heap.count, i);
    while (heap.count) {
        const uint32_t rank = (uint32_t)(heap.entries[0] >> 32), at = (uint32_t)heap.entries[0];
        heap.entries[0] = heap.entries[--heap.count];
        if (heap.count)
            heap_down(heap.entries, heap.count, 0);
        struct part *part = &parts[at];
        if (part->id == BPE_NONE || part->rank != rank)
            continue;
        struct part *gone = &parts[part->next];
        part->id = bpe_result(model, rank);
        part->next = gone->next;
        gone->id = BPE_NONE;
        if (part->next < end)
            parts[part->next].previous = at;
        set_rank(model, &heap, parts, at, end);
        if (at)
            set_rank(model, &heap, parts, part->previous, end);
    }
    size_t made = 0;
    for (uint32_t i = 0; i < end; i = parts[i].next)
        ids[made++] = parts[i].id;
    return made;
}

#define HEAP_BYTES (sizeof(struct part) + 2 * sizeof(uint64_t))

static size_t merge_window(const struct bpe_model *model, void *memory, const uint8_t *bytes, size_t count, uint32_t *ids)
{
    return count <= BPE_SHORT ? merge_short(model, bytes, count, ids)
           : count <= ROUNDS  ? merge_rounds(model, bytes, count, ids)
                              : merge_heap(model, memory, bytes, count, ids);
}

/* ---- long pieces ---- */

struct settled {
    void *tokens;
    bool wide;
    size_t count, start; /* start: where the last one begins */
};

static inline uint32_t settled_last(const struct settled *settled)
{
    return settled->wide ? ((const uint32_t *)settled->tokens)[settled->count - 1]
                         : ((const uint16_t *)settled->tokens)[settled->count - 1];
}

static void settled_add(struct settled *settled, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (settled->wide)
            ((uint32_t *)settled->tokens)[settled->count++] = ids[i];
        else
            ((uint16_t *)settled->tokens)[settled->count++] = (uint16_t)ids[i];
}

static uint32_t largest_of(const struct settled *settled)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < settled->count; i++) {
        const uint32_t id = settled->wide ? ((const uint32_t *)settled->tokens)[i] : ((const uint16_t *)settled->tokens)[i];
        largest = id > largest ? id : largest;
    }
    return largest;
}

static inline size_t length_of(const struct bpe_model *model, uint32_t id)
{
    return model->offsets[id + 1] - model->offsets[id];
}

static void take_back(const struct bpe_model *model, struct settled *settled, size_t tokens)
{
    while (tokens-- && settled->count) {
        if (--settled->count)
            settled->start -= length_of(model, settled_last(settled));
    }
}

/* How many of a window's tokens are certain enough to go on from: *tail: the bytes of those that are not. */
static size_t certain(const struct bpe_model *model, const uint32_t *ids, size_t count, size_t bytes, size_t *tail)
{
    for (*tail = 0; count && *tail < bytes / 4; count--)
        *tail += length_of(model, ids[count - 1]);
    return count;
}

static bool grow(struct bpe_scratch *scratch, size_t window)
{
    const size_t wanted = window * (HEAP_BYTES + sizeof(uint32_t));
    if (scratch->bytes >= wanted)
        return true;
    free(scratch->memory);
    scratch->memory = malloc(wanted);
    scratch->bytes = scratch->memory ? wanted : 0;
    return scratch->memory;
}

size_t bpe_merge_long(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                      void *tokens, bool wide, uint32_t *largest)
{
    uint32_t near[ROUNDS], *ids = near;
    struct settled settled = {tokens, wide, 0, 0};
    size_t window = BPE_SHORT, back = 1, good = 0;
    struct window_memory memory;
    window_memory_init(&memory);
    for (;;) {
        const bool last = window >= count - settled.start;
        const size_t size = last ? count - settled.start : window;
        if (size > ROUNDS) {
            if (!grow(scratch, size))
                return 0;
            ids = (uint32_t *)(void *)((uint8_t *)scratch->memory + size * HEAP_BYTES);
        } else {
            ids = near;
        }
        const uint8_t *here = bytes + settled.start;
        size_t made = window_recall(&memory, here, size, ids) / sizeof *ids, tail = 0;
        if (!made) {
            made = merge_window(model, scratch->memory, here, size, ids);
            window_keep(&memory, here, size, ids, made * sizeof *ids);
        }
        if (settled.count && settled_last(&settled) != ids[0]) {
            const size_t end = settled.start;
            take_back(model, &settled, back);
            back *= 2;
            window = 2 * window + (end - settled.start);
            good = 0;
            continue;
        }
        if (!last)
            made = certain(model, ids, made, size, &tail);
        if (made < 1 + (size_t)(settled.count != 0) && !last) { /* nothing new */
            window *= 2;
            continue;
        }
        settled.count -= settled.count != 0;
        settled_add(&settled, ids, made);
        if (last) {
            *largest = (uint32_t)max64(*largest, largest_of(&settled));
            return settled.count;
        }
        settled.start += size - tail - length_of(model, ids[made - 1]);
        back = 1;
        if (++good % 16 == 0 && window > BPE_SHORT)
            window = window / 2 > BPE_SHORT ? window / 2 : BPE_SHORT;
    }
}

size_t bpe_merge(const struct bpe_model *model, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                 uint32_t *ids)
{
    uint32_t largest = 0;
    return count <= BPE_SHORT ? merge_short(model, bytes, count, ids)
                              : bpe_merge_long(model, scratch, bytes, count, ids, true, &largest);
}

uint32_t bpe_unreached(const struct bpe_model *model, const uint8_t *bytes, size_t count)
{
    if (!model->unreached_count)
        return BPE_NONE;
    const uint32_t mask = (1u << model->unreached_bits) - 1;
    for (uint32_t at = (uint32_t)hash64(bytes, count) & mask; model->unreached[at] != BPE_NONE; at = (at + 1) & mask) {
        const uint32_t id = model->unreached[at], from = model->offsets[id];
        if (model->offsets[id + 1] - from == count && !memcmp(model->bytes + from, bytes, count))
            return id;
    }
    return BPE_NONE;
}
