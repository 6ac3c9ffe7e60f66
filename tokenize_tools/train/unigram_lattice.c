/* SPDX-License-Identifier: MIT */
#include "unigram_lattice.h"

#include <assert.h>
#include <string.h>

#include "common/error.h"
#include "train_math.h"

/*
 * ---- the trie ----
 *
 * A node with one child gets the first free place, which is found by a union-find structure over the places. A node
 * with several children tries a few free places and otherwise takes the end of the array, where nothing is in the way,
 * so the work is nearly linear in the number of nodes.
 */

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

/* ---- the lattice ---- */

#define SCALE 300 /* numbers below 2^-SCALE are multiplied by 2^SCALE */

struct lattice_edge {
    uint32_t begin, end, piece;
    float probability;
};

enum tokmap_status unigram_lattice_make(struct unigram_lattice *lattice, uint32_t longest, struct train_budget *budget,
                                        struct tokmap_error *error)
{
    const uint64_t places = LATTICE_RUN + 1, edges = (uint64_t)LATTICE_RUN * longest;
    memset(lattice, 0, sizeof *lattice);
    lattice->longest = longest;
    lattice->memory = edges * sizeof *lattice->edges +
                      places * (2 * sizeof(double) + sizeof *lattice->best + sizeof *lattice->shifts);
    const enum tokmap_status status = train_take(budget, (void **)&lattice->forward, lattice->memory, 1, error);
    if (status)
        return status;
    lattice->backward = lattice->forward + places;
    lattice->best = (struct lattice_step *)(void *)(lattice->backward + places);
    lattice->edges = (struct lattice_edge *)(void *)(lattice->best + places);
    lattice->shifts = (int32_t *)(void *)(lattice->edges + edges);
    return TOKMAP_OK;
}

void unigram_lattice_free(struct unigram_lattice *lattice, struct train_budget *budget)
{
    train_give(budget, lattice->forward, lattice->memory, 1);
    memset(lattice, 0, sizeof *lattice);
}

static void scale_up(double *numbers, uint32_t from, uint32_t to)
{
    const double factor = train_power_of_two(SCALE);
    for (uint32_t i = from; i <= to; i++)
        numbers[i] *= factor;
}

static inline uint32_t ahead(const struct unigram_lattice *lattice, uint32_t at, uint32_t count)
{
    return count - at < lattice->longest ? count : at + lattice->longest;
}

void unigram_lattice_expect(struct unigram_lattice *lattice, const uint32_t *codes, uint32_t count, uint64_t times,
                            uint64_t *expected)
{
    const struct unigram_trie *trie = lattice->trie;
    const double small = train_power_of_two(-SCALE);
    double *forward = lattice->forward, *backward = lattice->backward;
    uint64_t edge_count = 0;
    int32_t shift = 0;
    assert(count && count <= LATTICE_RUN);
    memset(forward, 0, (count + 1) * sizeof *forward);
    forward[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct trie_node *node = trie->nodes;
        const uint32_t end = ahead(lattice, i, count);
        bool alone = false;
        if (forward[i] < small) {
            scale_up(forward, i, end);
            shift++;
        }
        lattice->shifts[i] = shift;
        for (uint32_t j = i; j < end && (node = trie_step(trie, node, codes[j])); j++) {
            if (node->piece == TRIE_NO_PIECE)
                continue;
            alone |= j == i;
            forward[j + 1] += forward[i] * (double)node->probability;
            lattice->edges[edge_count++] = (struct lattice_edge){i, j + 1, node->piece, node->probability};
        }
        if (!alone) {
            forward[i + 1] += forward[i] * lattice->unknown;
            lattice->edges[edge_count++] = (struct lattice_edge){i, i + 1, TRIE_NO_PIECE, (float)lattice->unknown};
        }
    }
    const double whole = forward[count], unit = (double)times * LATTICE_UNIT / whole;
    int32_t back = 0; /* how often the numbers of `backward` that are still needed are scaled */
    memset(backward, 0, count * sizeof *backward);
    backward[count] = 1;
    for (uint64_t e = edge_count; e-- > 0;) {
        const struct lattice_edge *edge = &lattice->edges[e];
        const double part = (double)edge->probability * backward[edge->end];
        backward[edge->begin] += part;
        if (edge->piece != TRIE_NO_PIECE) {
            const int32_t shifts = shift - lattice->shifts[edge->begin] - back;
            double product = part * forward[edge->begin];
            if (shifts)
                product = shifts < -3 ? 0 : product * train_power_of_two(SCALE * shifts);
            expected[edge->piece] += (uint64_t)(product * unit + 0.5);
        }
        if (e && lattice->edges[e - 1].begin != edge->begin && backward[edge->begin] < small) {
            scale_up(backward, edge->begin, ahead(lattice, edge->begin, count));
            back++;
        }
    }
}

double unigram_lattice_best(struct unigram_lattice *lattice, const uint32_t *codes, uint32_t count, uint32_t but,
                            uint32_t *pieces, uint32_t *piece_count)
{
    const struct unigram_trie *trie = lattice->trie;
    const double small = train_power_of_two(-SCALE);
    double *best = lattice->forward;
    int32_t shift = 0;
    assert(count && count <= LATTICE_RUN);
    memset(best, 0, (count + 1) * sizeof *best);
    best[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct trie_node *node = trie->nodes;
        const uint32_t end = ahead(lattice, i, count);
        bool alone = false;
        if (best[i] < small) {
            scale_up(best, i, end);
            shift++;
        }
        for (uint32_t j = i; j < end && (node = trie_step(trie, node, codes[j])); j++) {
            if (node->piece == TRIE_NO_PIECE || node->piece == but)
                continue;
            alone |= j == i;
            const double way = best[i] * (double)node->probability;
            if (way > best[j + 1]) {
                best[j + 1] = way;
                lattice->best[j + 1] = (struct lattice_step){node->piece, j + 1 - i};
            }
        }
        if (!alone && best[i] * lattice->unknown > best[i + 1]) {
            best[i + 1] = best[i] * lattice->unknown;
            lattice->best[i + 1] = (struct lattice_step){TRIE_NO_PIECE, 1};
        }
    }
    *piece_count = 0;
    for (uint32_t at = count; at; at -= lattice->best[at].length)
        pieces[(*piece_count)++] = lattice->best[at].piece;
    return shift ? best[count] * train_power_of_two(-SCALE * (shift < 3 ? shift : 3)) : best[count];
}
