/* SPDX-License-Identifier: MIT */
/*
 * unigram_trie.c - see unigram_trie.h. A node with one child gets the first free place, which is found by a union-find
 * structure over the places. A node with several children tries a few free places and otherwise takes the end of the
 * array, where nothing is in the way, so the work is nearly linear in the number of nodes.
 */
#include "unigram_trie.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

#define TRIES 24
#define NO_PARENT UINT32_MAX

struct builder {
    struct unigram_trie *trie;
    struct train_budget *budget;
    const struct unigram_piece *pieces;
    uint32_t *next;   /* of each place: itself if it is free, otherwise a later place */
    uint32_t *starts; /* begins of groups of children, for all nodes on the way to the current one */
    uint64_t start_count, start_room;
    uint64_t room; /* of nodes and next */
    uint64_t end;  /* no place from here on is in use */
    uint32_t largest;
};

/* Returns the first free place that is not before `at`; it may be at the end of what is allocated. */
static uint32_t free_from(struct builder *b, uint32_t at)
{
    while (at < b->room && b->next[at] != at) {
        const uint32_t then = b->next[at];
        if (then < b->room)
            b->next[at] = b->next[then];
        at = then;
    }
    return at;
}

/* Makes sure that `wanted` places and the characters behind them exist. */
static enum tokmap_status places_grow(struct builder *b, uint64_t wanted, struct tokmap_error *error)
{
    const uint64_t room = b->room;
    wanted += (uint64_t)b->largest + 2;
    if (wanted <= room)
        return TOKMAP_OK;
    wanted += wanted / 2;
    if (wanted >= UINT32_MAX)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the pieces of this text are too many; train on a part of it");
    enum tokmap_status status =
        train_grow(b->budget, (void **)&b->trie->nodes, room, wanted, sizeof *b->trie->nodes, error);
    if (status)
        return status;
    b->trie->count = wanted;
    status = train_grow(b->budget, (void **)&b->next, room, wanted, sizeof *b->next, error);
    if (status)
        return status;
    b->room = wanted;
    for (uint64_t i = room; i < wanted; i++) {
        b->trie->nodes[i] = (struct trie_node){0, NO_PARENT, TRIE_NO_PIECE, 0};
        b->next[i] = (uint32_t)i;
    }
    return TOKMAP_OK;
}

/* Finds a base for children with these codes, ascending, the first codes of groups. */
static enum tokmap_status base_find(struct builder *b, const uint32_t *groups, uint64_t count, uint32_t depth,
                                    uint32_t *base, struct tokmap_error *error)
{
    const uint32_t first = b->pieces[groups[0]].codes[depth], last = b->pieces[groups[count - 1]].codes[depth];
    uint32_t at = free_from(b, b->largest + 1);
    for (int tries = 0; tries < TRIES; tries++, at = free_from(b, at + 1)) {
        const enum tokmap_status status = places_grow(b, (uint64_t)at + (last - first) + 1, error);
        if (status)
            return status;
        uint64_t i = 1;
        while (i < count && b->next[at - first + b->pieces[groups[i]].codes[depth]] ==
                                at - first + b->pieces[groups[i]].codes[depth])
            i++;
        if (i == count) {
            *base = at - first;
            return TOKMAP_OK;
        }
    }
    at = (uint32_t)b->end > b->largest ? (uint32_t)b->end : b->largest + 1;
    *base = at - first;
    return places_grow(b, (uint64_t)at + (last - first) + 1, error);
}

/* Makes the children of a node: pieces `from` to `to` - 1 have its characters as their first `depth` ones. */
static enum tokmap_status children_make(struct builder *b, uint32_t node, uint32_t from, uint32_t to, uint32_t depth,
                                        struct tokmap_error *error)
{
    struct unigram_trie *trie = b->trie;
    enum tokmap_status status = TOKMAP_OK;
    uint32_t base;
    if (from < to && b->pieces[from].count == depth) {
        trie->nodes[node].piece = from;
        trie->node_of[from++] = node;
    }
    if (from == to)
        return TOKMAP_OK;
    const uint64_t begin = b->start_count;
    for (uint32_t i = from; i < to; i++) {
        if (i > from && b->pieces[i].codes[depth] == b->pieces[i - 1].codes[depth])
            continue;
        if (b->start_count == b->start_room) {
            status =
                train_grow(b->budget, (void **)&b->starts, b->start_room, b->start_room * 2, sizeof *b->starts, error);
            if (status)
                return status;
            b->start_room *= 2;
        }
        b->starts[b->start_count++] = i;
    }
    const uint64_t count = b->start_count - begin;
    status = base_find(b, b->starts + begin, count, depth, &base, error);
    if (status)
        return status;
    trie->nodes[node].base = base;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t place = base + b->pieces[b->starts[begin + i]].codes[depth];
        trie->nodes[place].parent = node;
        b->next[place] = place + 1;
        b->end = place >= b->end ? place + 1 : b->end;
    }
    for (uint64_t i = 0; i < count && !status; i++) {
        const uint32_t first = b->starts[begin + i], end = i + 1 < count ? b->starts[begin + i + 1] : to;
        status = children_make(b, base + b->pieces[first].codes[depth], first, end, depth + 1, error);
    }
    b->start_count = begin;
    return status;
}

enum tokmap_status unigram_trie_make(struct unigram_trie *trie, const struct unigram_piece *pieces, uint32_t count,
                                     uint32_t largest, struct train_budget *budget, struct tokmap_error *error)
{
    struct builder b = {.trie = trie, .budget = budget, .pieces = pieces, .largest = largest, .start_room = 4096};
    memset(trie, 0, sizeof *trie);
    trie->piece_count = count;
    enum tokmap_status status = train_take(budget, (void **)&trie->node_of, count, sizeof *trie->node_of, error);
    if (!status)
        status = train_take(budget, (void **)&b.starts, b.start_room, sizeof *b.starts, error);
    if (!status)
        status = places_grow(&b, (uint64_t)count * 2, error);
    if (!status) {
        b.next[0] = 1; /* the root */
        b.end = 1;
        status = children_make(&b, 0, 0, count, 0, error);
    }
    if (b.next)
        train_give(budget, b.next, b.room, sizeof *b.next);
    if (b.starts)
        train_give(budget, b.starts, b.start_room, sizeof *b.starts);
    if (status)
        unigram_trie_free(trie, budget);
    return status;
}

void unigram_trie_free(struct unigram_trie *trie, struct train_budget *budget)
{
    train_give(budget, trie->nodes, trie->count, sizeof *trie->nodes);
    train_give(budget, trie->node_of, trie->piece_count, sizeof *trie->node_of);
    memset(trie, 0, sizeof *trie);
}
