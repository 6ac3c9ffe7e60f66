/* SPDX-License-Identifier: MIT */
/*
 * cache_model.c - see cache_model.h.
 *
 * The order of a run is known, so the cache can do what Belady proved to be the best: when it is full, the block leaves
 * that is needed again latest. Only a part of the future is known, the horizon. A block without a known next use is
 * needed later than any with one; of several, the one that was used longest ago leaves.
 *
 * Method. Walking backward through the uses, next[i] becomes the use after use i of the same block. Then the uses are
 * walked forward. A block in the cache is in one of two lists: in a heap, the one with the latest next use on top, if
 * that use is known, else in a queue, in the order of the last use. Use i makes use i + horizon known: its block moves
 * from the queue to the heap, if it is in the cache. Neither list is searched: an entry whose block has left, or was
 * used since, is dropped when it comes to the front. A heap of many such entries is made again.
 *
 * Example: blocks a b c a b d a b c a, a cache of 2 blocks, and a horizon of 3 uses. a and b are fetched. c needs a
 * place: a is needed at once, and b in two uses, so b leaves; c is next used after the horizon, so it waits in the
 * queue. a is there. b is fetched, and c leaves, because its next use is not known. d is fetched, and of a (next) and b
 * (in two uses), b leaves. a is there, b is fetched, and d, which is not needed any more, leaves. c takes b's place,
 * and a is there: 7 of 10 uses are fetched. "Used longest ago" would fetch 10.
 */
#include "cache_model.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

#define NEVER UINT32_MAX

struct entry {
    uint32_t next; /* in the heap: the block's next use; in the queue: its last one */
    uint32_t block;
};

struct cache {
    const uint32_t *uses, *next;
    uint32_t *last; /* by block: its last use */
    bool *held;     /* by block */
    uint64_t count, capacity, horizon, held_count;
    struct entry *heap; /* the latest next use is first */
    uint64_t heap_count, heap_room;
    struct entry *queue; /* a ring, from `queue_first` on */
    uint64_t queue_first, queue_count, queue_room;
};

static bool is_known(const struct cache *cache, uint64_t now, uint32_t next)
{
    return next != NEVER && next - now <= cache->horizon;
}

/* Returns whether an entry of the heap, or of the queue, still says where its block is. */
static bool heap_holds(const struct cache *cache, const struct entry *entry)
{
    return cache->held[entry->block] && cache->next[cache->last[entry->block]] == entry->next;
}

static bool queue_holds(const struct cache *cache, const struct entry *entry, uint64_t now)
{
    return cache->held[entry->block] && cache->last[entry->block] == entry->next &&
           !is_known(cache, now, cache->next[entry->next]);
}

static void sift_down(struct cache *cache, uint64_t i)
{
    struct entry *heap = cache->heap;
    const struct entry moved = heap[i];
    for (uint64_t child; (child = 2 * i + 1) < cache->heap_count; i = child) {
        child += child + 1 < cache->heap_count && heap[child + 1].next > heap[child].next;
        if (heap[child].next <= moved.next)
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static void heap_add(struct cache *cache, uint32_t next, uint32_t block)
{
    if (cache->heap_count ==
        cache->heap_room) { /* at least half of the entries are of blocks that left, or were used */
        uint64_t kept = 0;
        for (uint64_t i = 0; i < cache->heap_count; i++)
            if (heap_holds(cache, &cache->heap[i]))
                cache->heap[kept++] = cache->heap[i];
        cache->heap_count = kept;
        for (uint64_t i = kept / 2; i-- > 0;)
            sift_down(cache, i);
    }
    uint64_t i = cache->heap_count++;
    for (; i && cache->heap[(i - 1) / 2].next < next; i = (i - 1) / 2)
        cache->heap[i] = cache->heap[(i - 1) / 2];
    cache->heap[i] = (struct entry){next, block};
}

static void queue_add(struct cache *cache, uint32_t last, uint32_t block, uint64_t now)
{
    if (cache->queue_count == cache->queue_room) { /* likewise */
        uint64_t kept = 0;
        for (uint64_t i = 0; i < cache->queue_count; i++) {
            const struct entry entry = cache->queue[(cache->queue_first + i) % cache->queue_room];
            if (queue_holds(cache, &entry, now))
                cache->queue[(cache->queue_first + kept++) % cache->queue_room] = entry;
        }
        cache->queue_count = kept;
    }
    cache->queue[(cache->queue_first + cache->queue_count++) % cache->queue_room] = (struct entry){last, block};
}

/* Removes the block that is needed latest. */
static void evict(struct cache *cache, uint64_t now)
{
    for (; cache->queue_count; cache->queue_count--) {
        const struct entry first = cache->queue[cache->queue_first];
        cache->queue_first = (cache->queue_first + 1) % cache->queue_room;
        if (!queue_holds(cache, &first, now))
            continue;
        cache->queue_count--;
        cache->held[first.block] = false;
        cache->held_count--;
        return;
    }
    while (cache->heap_count) {
        const struct entry top = cache->heap[0];
        cache->heap[0] = cache->heap[--cache->heap_count];
        if (cache->heap_count)
            sift_down(cache, 0);
        if (!heap_holds(cache, &top))
            continue;
        cache->held[top.block] = false;
        cache->held_count--;
        return;
    }
}

/* Moves the block of a use that has become known from the queue to the heap. */
static void learn(struct cache *cache, uint64_t use)
{
    const uint32_t block = cache->uses[use] & ~CACHE_FETCHED;
    if (cache->held[block] && cache->next[cache->last[block]] == use)
        heap_add(cache, (uint32_t)use, block);
}

static void run(struct cache *cache, uint32_t *uses)
{
    for (uint64_t now = 0; now < cache->count; now++) {
        const uint32_t block = uses[now], next = cache->next[now];
        if (cache->horizon < cache->count - now)
            learn(cache, now + cache->horizon);
        if (!cache->held[block]) {
            uses[now] |= CACHE_FETCHED;
            if (cache->held_count == cache->capacity)
                evict(cache, now);
            cache->held[block] = true;
            cache->held_count++;
        }
        cache->last[block] = (uint32_t)now;
        if (is_known(cache, now, next))
            heap_add(cache, next, block);
        else
            queue_add(cache, (uint32_t)now, block, now);
    }
}

enum tokmap_status cache_model_run(uint32_t *uses, uint64_t count, uint64_t blocks, uint64_t capacity, uint64_t horizon,
                                   struct tokmap_error *error)
{
    const uint64_t most = min64(min64(capacity, blocks), count), room = 2 * most + 2;
    uint32_t *next = malloc((count + 1) * sizeof *next);
    struct cache cache = {
        .uses = uses, .next = next, .count = count, .capacity = capacity, .heap_room = room, .queue_room = room};
    cache.horizon = min64(horizon, count);
    cache.last = malloc(blocks * sizeof *cache.last);
    cache.held = calloc(blocks, sizeof *cache.held);
    cache.heap = malloc(room * sizeof *cache.heap);
    cache.queue = malloc(room * sizeof *cache.queue);
    const bool good = next && cache.last && cache.held && cache.heap && cache.queue;
    if (good) {
        memset(cache.last, 0xff, blocks * sizeof *cache.last); /* no use */
        for (uint64_t i = count; i-- > 0;) {
            next[i] = cache.last[uses[i]];
            cache.last[uses[i]] = (uint32_t)i;
        }
        run(&cache, uses);
    }
    free(next);
    free(cache.last);
    free(cache.held);
    free(cache.heap);
    free(cache.queue);
    return good ? TOKMAP_OK : error_set_memory(error, "the uses of blocks", count * 4 + blocks * 5 + room * 16);
}
