/* SPDX-License-Identifier: MIT */
/*
 * byte_trie.c - building: the keys are sorted, and each node is a range of them that have the same first bytes. Nodes
 * that have no place yet are in a list of free nodes. A node with one child takes the first free node; for several
 * children some free nodes are tried, and then 256 new ones are added, where they fit in any case.
 */
#include "byte_trie.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "platform/os.h"

#define FREE (UINT32_MAX - 1)   /* the parent of a free node: base is the next one, and value the one before */
#define ORPHAN (UINT32_MAX - 2) /* the parent of the root */
#define END UINT32_MAX          /* of the list */
#define TRIES 24                /* free nodes that are tried for several children */
#define AHEAD 16                /* keys whose bytes are prefetched; they may be anywhere */
#define GAPS 4096               /* nodes that are allocated for gaps, and one for each 16 that are used */

/* A key with its first 8 bytes as a number, in which nearly all keys differ. */
struct sorted {
    uint64_t first;
    const struct byte_trie_key *key;
};

_Static_assert(sizeof(struct byte_trie_key) <= sizeof(struct sorted), "own.other becomes own.sorted");

struct range {
    size_t from, to; /* keys */
    uint32_t node, depth;
};

struct building {
    struct byte_trie *trie;
    struct sorted *keys, *other;
    struct byte_trie_key *sorted; /* a copy of the keys in their order, where `other` was */
    size_t count;
    struct range *stack;
    uint64_t stacked, stack_room;
    uint32_t head, room; /* the first free node; nodes that are allocated */
    uint32_t tails_used; /* units */
    bool tails;
};

/* Returns the units that a tail of so many bytes takes. */
static uint32_t tail_units(uint32_t bytes)
{
    return (uint32_t)(sizeof(struct byte_trie_tail) + bytes + 3) / 4;
}

static uint64_t first_of(const struct byte_trie_key *key)
{
    uint64_t first = 0;
    memcpy(&first, key->bytes, key->count < 8 ? key->count : 8);
    return __builtin_bswap64(first);
}

static int by_rest(const void *a, const void *b)
{
    const struct byte_trie_key *left = ((const struct sorted *)a)->key, *right = ((const struct sorted *)b)->key;
    const int order = memcmp(left->bytes, right->bytes, min64(left->count, right->count));
    if (order || left->count != right->count)
        return order ? order : left->count < right->count ? -1 : 1;
    return left->value < right->value ? -1 : left->value > right->value;
}

/* Sorts by the first bytes, least significant byte first, and then what is equal. */
static void sort(struct building *own, size_t count)
{
    static const size_t none[256];
    for (uint32_t shift = 0; shift < 64; shift += 8) {
        size_t places[256], sum = 0;
        memcpy(places, none, sizeof places);
        for (size_t i = 0; i < count; i++)
            places[own->keys[i].first >> shift & 255]++;
        for (uint32_t byte = 0; byte < 256; byte++) {
            const size_t here = places[byte];
            places[byte] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            own->other[places[own->keys[i].first >> shift & 255]++] = own->keys[i];
        struct sorted *swap = own->keys;
        own->keys = own->other;
        own->other = swap;
    }
    for (size_t from = 0, to; from < count; from = to) {
        to = from + 1;
        while (to < count && own->keys[to].first == own->keys[from].first)
            to++;
        if (to - from > 1)
            qsort(own->keys + from, to - from, sizeof *own->keys, by_rest);
    }
}

/* ---- the list of free nodes, in ascending order ---- */

/* Adds 256 free nodes at the front of the list, so that they are tried first. */
static bool grow(struct building *own)
{
    struct byte_trie *trie = own->trie;
    if (trie->count == own->room) {
        const uint32_t room = own->room + own->room / 4 / 256 * 256 + GAPS;
        struct byte_trie_node *grown = os_memory_large((size_t)room * sizeof *grown);
        if (!grown)
            return false;
        if (trie->count)
            memcpy(grown, trie->nodes, trie->count * sizeof *grown);
        free(trie->nodes);
        trie->nodes = grown;
        own->room = room;
    }
    const uint32_t from = trie->count;
    for (uint32_t i = from; i < from + 256; i++)
        trie->nodes[i] = (struct byte_trie_node){i + 1, FREE, i - 1};
    trie->nodes[from].value = END;
    trie->nodes[from + 255].base = own->head;
    if (own->head != END)
        trie->nodes[own->head].value = from + 255;
    own->head = from;
    trie->count += 256;
    return true;
}

static void take(struct building *own, uint32_t node, uint32_t parent)
{
    struct byte_trie_node *nodes = own->trie->nodes;
    if (nodes[node].value == END)
        own->head = nodes[node].base;
    else
        nodes[nodes[node].value].base = nodes[node].base;
    if (nodes[node].base != END)
        nodes[nodes[node].base].value = nodes[node].value;
    nodes[node] = (struct byte_trie_node){0, parent, BYTE_TRIE_NONE};
}

/* Returns whether the places of children with these bytes are free. */
static bool fits(const struct building *own, uint32_t base, const uint8_t *bytes, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && own->trie->nodes[base ^ bytes[i]].parent == FREE)
        i++;
    return i == count;
}

/* Finds a base for the children with these bytes. */
static bool place(struct building *own, const uint8_t *bytes, uint32_t count, uint32_t *base)
{
    uint32_t tries = count > 1 ? TRIES : 1;
    for (uint32_t at = own->head; at != END && tries; at = own->trie->nodes[at].base, tries--)
        if (fits(own, *base = at ^ bytes[0], bytes, count))
            return true;
    for (uint32_t back = 64; count > 1 && back < 256; back += 64) /* two alphabets share the newest 256 nodes */
        if (fits(own, *base = own->trie->count - back, bytes, count))
            return true;
    *base = own->trie->count;
    return grow(own);
}

/* ---- nodes ---- */

static bool push(struct building *own, struct range range)
{
    if (!list_room(&own->stack, own->stacked, &own->stack_room, sizeof *own->stack))
        return false;
    own->stack[own->stacked++] = range;
    return true;
}

static inline uint8_t byte_at(const struct building *own, size_t i, uint32_t depth)
{
    return depth < 8 ? (uint8_t)(own->keys[i].first >> (56 - 8 * depth)) : own->sorted[i].bytes[depth];
}

/* Makes the rest of a key the tail of a node. */
static void put_tail(struct building *own, const struct byte_trie_key *key, uint32_t node, uint32_t depth)
{
    const struct byte_trie_tail tail = {key->value, key->count - depth};
    uint32_t *into = own->trie->tails + own->tails_used;
    own->trie->nodes[node].base = BYTE_TRIE_TAIL | own->tails_used;
    memcpy(into, &tail, sizeof tail);
    memcpy((uint8_t *)into + sizeof tail, key->bytes + depth, tail.count);
    own->tails_used += tail_units(tail.count);
}

/* Makes the nodes of the rest of a key, each of which has one child, or its tail. */
static bool chain(struct building *own, size_t i, uint32_t node, uint32_t depth)
{
    const struct byte_trie_key *key = &own->sorted[i];
    __builtin_prefetch(own->sorted[min64(i + AHEAD, own->count - 1)].bytes);
    for (; depth < key->count; depth++) {
        if (own->tails && depth) {
            put_tail(own, key, node, depth);
            return true;
        }
        if (own->head == END && !grow(own))
            return false;
        const uint32_t child = own->head;
        own->trie->nodes[node].base = child ^ byte_at(own, i, depth);
        take(own, child, node);
        node = child;
    }
    own->trie->nodes[node].value = key->value;
    return true;
}

/* Makes the children of a node. */
static bool children(struct building *own, struct range range)
{
    size_t starts[257];
    uint8_t bytes[256];
    uint32_t count = 0, base;
    if (range.to - range.from == 1)
        return chain(own, range.from, range.node, range.depth);
    for (; range.from < range.to && own->sorted[range.from].count == range.depth; range.from++)
        own->trie->nodes[range.node].value = own->sorted[range.from].value;
    for (size_t i = range.from; i < range.to; i++) {
        const uint8_t byte = byte_at(own, i, range.depth);
        if (!count || byte != bytes[count - 1]) {
            starts[count] = i;
            bytes[count++] = byte;
        }
    }
    if (!count)
        return true;
    starts[count] = range.to;
    if (!place(own, bytes, count, &base))
        return false;
    own->trie->nodes[range.node].base = base;
    for (uint32_t i = 0; i < count; i++)
        take(own, base ^ bytes[i], range.node);
    for (uint32_t i = count; i-- > 0;)
        if (!push(own, (struct range){starts[i], starts[i + 1], base ^ bytes[i], range.depth + 1}))
            return false;
    return true;
}

/* Returns how many bytes key i and the one before have in common. */
static uint32_t common(const struct building *own, size_t i, size_t count)
{
    if (!i || i == count)
        return 0;
    const struct byte_trie_key *key = &own->sorted[i];
    const uint32_t most = (uint32_t)min64(key->count, key[-1].count);
    const uint64_t other = own->keys[i].first ^ own->keys[i - 1].first;
    uint32_t same = other ? (uint32_t)min64(most, (uint64_t)__builtin_clzll(other) / 8) : (uint32_t)min64(most, 8);
    while (!other && same < most && key->bytes[same] == key[-1].bytes[same])
        same++;
    return same;
}

/* Counts the nodes and the units of tails that the keys need: nodes for each byte that does not continue what the key
 * before has, and tails for those of them that neither the key before nor the next one has, but for the first. */
static void count_parts(const struct building *own, size_t count, uint64_t *nodes, uint64_t *units)
{
    *nodes = 1;
    *units = 0;
    for (size_t i = 0, before = 0, next; i < count; i++, before = next) {
        next = common(own, i + 1, count);
        const size_t bytes = own->sorted[i].count, depth = own->tails ? min64(bytes, max64(before, next) + 1) : bytes;
        *nodes += depth - before;
        *units += depth < bytes ? tail_units((uint32_t)(bytes - depth)) : 0;
    }
}

/* Allocates the nodes and makes them. */
static enum tokmap_status nodes_build(struct building *own, size_t count)
{
    uint64_t nodes, units;
    count_parts(own, count, &nodes, &units);
    if (nodes > BYTE_TRIE_NODES_MOST || units > BYTE_TRIE_NODES_MOST)
        return TOKMAP_ERROR_LIMIT;
    own->trie->tails = units ? os_memory_large(units * sizeof *own->trie->tails) : NULL;
    own->room = (uint32_t)(nodes + nodes / 16 + GAPS) / 256 * 256;
    own->trie->nodes = os_memory_large(own->room * sizeof *own->trie->nodes);
    if (!own->trie->nodes || (units && !own->trie->tails) || !grow(own))
        return TOKMAP_ERROR_MEMORY;
    take(own, BYTE_TRIE_ROOT, ORPHAN);
    bool good = push(own, (struct range){0, count, BYTE_TRIE_ROOT, 0});
    while (good && own->stacked)
        good = children(own, own->stack[--own->stacked]);
    return good ? TOKMAP_OK : TOKMAP_ERROR_MEMORY;
}

enum tokmap_status byte_trie_build(struct byte_trie *trie, const struct byte_trie_key *keys, size_t count, bool tails)
{
    struct building own = {.trie = trie, .head = END, .tails = tails};
    enum tokmap_status status = TOKMAP_ERROR_MEMORY;
    memset(trie, 0, sizeof *trie);
    own.keys = os_memory_large((count + 1) * sizeof *own.keys);
    own.other = os_memory_large((count + 1) * sizeof *own.other);
    if (own.keys && own.other) {
        for (size_t i = 0; i < count; i++)
            own.keys[i] = (struct sorted){first_of(&keys[i]), &keys[i]};
        own.count = count;
        sort(&own, count);
        own.sorted = (struct byte_trie_key *)(void *)own.other; /* both have 16 bytes */
        for (size_t i = 0; i < count; i++)
            own.sorted[i] = *own.keys[i].key;
        status = nodes_build(&own, count);
    }
    free(own.keys);
    free(own.other);
    free(own.stack);
    return status;
}

void byte_trie_free(struct byte_trie *trie)
{
    free(trie->nodes);
    free(trie->tails);
    memset(trie, 0, sizeof *trie);
}
