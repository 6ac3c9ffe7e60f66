/* SPDX-License-Identifier: MIT */
/*
 * match_long.c - the automaton of Aho and Corasick, over texts that are read from their last byte to their first.
 *
 * The automaton reads a text from right to left. Its state is the longest stretch of bytes from the current place on
 * that is the end of one of the texts: a node of the trie of the reversed texts. If no edge of the node has the next
 * byte, the node's `fail` is the longest other node whose bytes the node's bytes end with. Example: the texts "ab" and
 * "aab" are reversed to "ba" and "baa".
 *
 *     nodes      0: (root)   1: b   2: ba (text "ab")   3: baa (text "aab")
 *     text       x  a  a  b
 *     state      0  3  2  1      read from the right
 *     longest    -  aab ab -     what begins at each place
 *
 * Why backward: which text begins at a place is then known at that place. Read forward, an automaton knows which texts
 * end at a place; to know that "a" is the longest text that begins somewhere, it has to read until a text "aaa..b" is
 * ruled out, and to do so again after each "a".
 *
 * The children of a node have consecutive numbers, in the order of their bytes, so a node needs only the number of its
 * first child.
 */
#include "match_long.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/error.h"

#define BYTES_MOST (UINT32_C(1) << 30)

struct match_long {
    uint32_t nodes, longest;
    uint8_t *byte;         /* of the edge that leads to the node */
    uint32_t *first_child; /* nodes + 1 numbers: the children of n are first_child[n] up to first_child[n + 1] */
    uint32_t *fail;
    uint32_t *text; /* 1 plus the index of the longest text that the node's bytes begin with when read forward; or 0 */
};

/* A text to be added. */
struct entry {
    const uint8_t *bytes;
    uint32_t count, index;
};

static int by_end(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;
    const uint32_t shorter = a->count < b->count ? a->count : b->count;
    for (uint32_t i = 1; i <= shorter; i++)
        if (a->bytes[a->count - i] != b->bytes[b->count - i])
            return a->bytes[a->count - i] < b->bytes[b->count - i] ? -1 : 1;
    return a->count < b->count ? -1 : a->count > b->count;
}

/* Returns the child of a node by a byte, or 0. */
static inline uint32_t child_by(const struct match_long *automaton, uint32_t node, uint8_t byte)
{
    uint32_t low = automaton->first_child[node];
    const uint32_t end = automaton->first_child[node + 1];
    for (uint32_t high = end; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        if (automaton->byte[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && automaton->byte[low] == byte ? low : 0;
}

/* Returns the node after reading a byte. */
static inline uint32_t step(const struct match_long *automaton, uint32_t node, uint8_t byte, uint64_t *steps)
{
    uint32_t child;
    while (++*steps, !(child = child_by(automaton, node, byte)) && node)
        node = automaton->fail[node];
    return child;
}

/* Makes the nodes, level by level, of entries that are sorted by by_end. ends: room for a number per node. */
static void make_nodes(struct match_long *automaton, const struct entry *entries, uint32_t count, uint32_t *ends)
{
    /* The entries of a node are those from first_child[node] up to ends[node], until the node is reached. */
    uint32_t next = 1, depth = 0, level_end = 1;
    automaton->first_child[0] = 0;
    ends[0] = count;
    for (uint32_t node = 0; node < next; node++) {
        if (node == level_end) {
            depth++;
            level_end = next;
        }
        uint32_t from = automaton->first_child[node];
        const uint32_t to = ends[node];
        if (entries[from].count == depth)
            automaton->text[node] = entries[from++].index + 1;
        automaton->first_child[node] = next;
        while (from < to) {
            const uint8_t byte = entries[from].bytes[entries[from].count - 1 - depth];
            automaton->byte[next] = byte;
            automaton->first_child[next] = from;
            while (from < to && entries[from].bytes[entries[from].count - 1 - depth] == byte)
                from++;
            ends[next++] = from;
        }
    }
    automaton->nodes = next;
    automaton->first_child[next] = next;
}

static void make_fails(struct match_long *automaton)
{
    uint64_t steps = 0;
    for (uint32_t node = 0; node < automaton->nodes; node++)
        for (uint32_t child = automaton->first_child[node]; child < automaton->first_child[node + 1]; child++) {
            automaton->fail[child] = node ? step(automaton, automaton->fail[node], automaton->byte[child], &steps) : 0;
            if (!automaton->text[child])
                automaton->text[child] = automaton->text[automaton->fail[child]];
        }
}

enum tokmap_status match_long_new(struct match_long **made, const struct match_text *texts, size_t count,
                                  uint32_t shortest, struct tokmap_error *error)
{
    uint64_t bytes = 0;
    uint32_t longs = 0, longest = 0;
    *made = NULL;
    for (size_t i = 0; i < count; i++)
        if (texts[i].count > shortest) {
            longs++;
            bytes += texts[i].count;
            longest = texts[i].count > longest ? texts[i].count : longest;
        }
    if (!longs)
        return TOKMAP_OK;
    if (bytes > BYTES_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the long texts have %" PRIu64 " bytes, but at most %" PRIu32 " are supported", bytes,
                         BYTES_MOST);
    const size_t room = (size_t)bytes + 2;
    struct match_long *automaton = calloc(1, sizeof *automaton);
    struct entry *entries = malloc(longs * sizeof *entries);
    if (automaton) {
        automaton->byte = malloc(room);
        automaton->first_child = malloc(room * sizeof *automaton->first_child);
        automaton->fail = calloc(room, sizeof *automaton->fail);
        automaton->text = calloc(room, sizeof *automaton->text);
    }
    if (!automaton || !entries || !automaton->byte || !automaton->first_child || !automaton->fail || !automaton->text) {
        match_long_free(automaton);
        free(entries);
        return error_set_memory(error, "long texts", room * 13);
    }
    automaton->longest = longest;
    for (size_t i = 0, next = 0; i < count; i++)
        if (texts[i].count > shortest)
            entries[next++] = (struct entry){texts[i].bytes, texts[i].count, (uint32_t)i};
    qsort(entries, longs, sizeof *entries, by_end);
    make_nodes(automaton, entries, longs, automaton->fail); /* `fail` is filled only afterwards */
    automaton->fail[0] = 0;
    make_fails(automaton);
    free(entries);
    *made = automaton;
    return TOKMAP_OK;
}

void match_long_free(struct match_long *automaton)
{
    if (!automaton)
        return;
    free(automaton->byte);
    free(automaton->first_child);
    free(automaton->fail);
    free(automaton->text);
    free(automaton);
}

uint32_t match_long_longest(const struct match_long *automaton)
{
    return automaton->longest;
}

void match_long_find(const struct match_long *automaton, const uint8_t *text, size_t places, size_t count,
                     uint32_t *found, uint64_t *steps)
{
    assert(places <= count);
    uint32_t node = 0;
    size_t at = count - places > automaton->longest ? places + automaton->longest : count;
    while (at-- > 0) {
        node = step(automaton, node, text[at], steps);
        if (at < places)
            found[at] = automaton->text[node];
    }
}
