/* SPDX-License-Identifier: MIT */
/*
 * byte_trie.h - finds all texts of a set that a text begins with, byte by byte: a double-array trie.
 *
 * The child of node n for the byte c is node base[n] ^ c, if that node says that its parent is n. So a step reads one
 * cache line, and nodes whose children are few are packed into the gaps of others.
 *
 * Most texts share only their first bytes with others. The rest of a text can be kept as a tail, which has no nodes and
 * is compared at once: a vocabulary of 250,000 texts needs two fifths of the nodes.
 *
 * Example: the set has "a" and "ab". Then step(root, 'a') has the value of "a", step of that with 'b' the value of
 * "ab", and any other step is BYTE_TRIE_NONE.
 *
 * A trie is immutable, and any number of threads may use it at once.
 */
#ifndef TOKMAP_ENGINE_BYTE_TRIE_H
#define TOKMAP_ENGINE_BYTE_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap/error.h"

#define BYTE_TRIE_NONE UINT32_MAX /* no node, no value */
#define BYTE_TRIE_ROOT 0u

#define BYTE_TRIE_TAIL (UINT32_C(1) << 31)

struct byte_trie_node {
    uint32_t base; /* or BYTE_TRIE_TAIL, and the place of a tail; the root has none */
    uint32_t parent;
    uint32_t value; /* of the text that ends here, or BYTE_TRIE_NONE */
};

/* Rest of the only text that continues from a node. */
struct byte_trie_tail {
    uint32_t value;
    uint32_t count; /* at least 1 */
    uint8_t bytes[];
};

#define BYTE_TRIE_NODES_MOST (1u << 23) /* of a set of 250,000 texts in all scripts: about a million */

struct byte_trie {
    struct byte_trie_node *nodes;
    uint32_t *tails; /* in units of 4 bytes; or NULL */
    uint32_t count;  /* nodes, a multiple of 256 */
};

struct byte_trie_key {
    const uint8_t *bytes;
    uint32_t count; /* at least 1 */
    uint32_t value; /* not BYTE_TRIE_NONE */
};

/* Builds a trie; free it with byte_trie_free(), on failure too. Of equal texts, the one with the largest value counts.
 * Statuses: OK, ERROR_LIMIT (more than BYTE_TRIE_NODES_MOST nodes or units of tails), ERROR_MEMORY. */
enum tokmap_status byte_trie_build(struct byte_trie *trie, const struct byte_trie_key *keys, size_t count, bool tails);
void byte_trie_free(struct byte_trie *trie);

/* Returns the tail of a node, or NULL. */
static inline const struct byte_trie_tail *byte_trie_tail(const struct byte_trie *trie, uint32_t node)
{
    const uint32_t base = trie->nodes[node].base;
    return base & BYTE_TRIE_TAIL ? (const void *)(trie->tails + (base & ~BYTE_TRIE_TAIL)) : NULL;
}

/* Returns whether a text begins with a tail. */
static inline bool byte_trie_ends(const struct byte_trie_tail *tail, const uint8_t *text, size_t count)
{
    uint32_t same = 0;
    while (same < tail->count && same < count && tail->bytes[same] == text[same])
        same++;
    return same == tail->count;
}

/* Returns the node after `node`, which has no tail, and a byte, or BYTE_TRIE_NONE. */
static inline uint32_t byte_trie_step(const struct byte_trie *trie, uint32_t node, uint8_t byte)
{
    const uint32_t child = trie->nodes[node].base ^ byte;
    return trie->nodes[child].parent == node ? child : BYTE_TRIE_NONE;
}

/* Returns how many bytes the longest text of the set has that the text begins with, and its value; 0: none. */
static inline size_t byte_trie_longest(const struct byte_trie *trie, const uint8_t *text, size_t count, uint32_t *value)
{
    uint32_t node = BYTE_TRIE_ROOT;
    size_t longest = 0;
    for (size_t at = 0; at < count; at++) {
        node = byte_trie_step(trie, node, text[at]);
        if (node == BYTE_TRIE_NONE)
            break;
        if (trie->nodes[node].value != BYTE_TRIE_NONE) {
            longest = at + 1;
            *value = trie->nodes[node].value;
        }
        const struct byte_trie_tail *tail = byte_trie_tail(trie, node);
        if (tail && byte_trie_ends(tail, text + at + 1, count - at - 1)) {
            *value = tail->value;
            return at + 1 + tail->count;
        }
        if (tail)
            break;
    }
    return longest;
}

#endif
