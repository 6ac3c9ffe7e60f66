/* SPDX-License-Identifier: MIT */
/* unigram_lattice.c - see unigram_lattice.h. */
#include "unigram_lattice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "train_math.h"

#define SCALE 300 /* numbers below 2^-SCALE are multiplied by 2^SCALE */

struct lattice_edge {
    uint32_t begin, end, piece;
    float probability;
};

static uint64_t edges_most(uint32_t longest)
{
    return (uint64_t)LATTICE_RUN * longest;
}

enum tokmap_status unigram_lattice_make(struct unigram_lattice *lattice, uint32_t longest, struct train_budget *budget,
                                        struct tokmap_error *error)
{
    memset(lattice, 0, sizeof *lattice);
    lattice->longest = longest;
    lattice->edge_room = edges_most(longest);
    const uint64_t places = LATTICE_RUN + 1;
    enum tokmap_status status = train_take(budget, (void **)&lattice->forward, places, sizeof(double), error);
    if (!status)
        status = train_take(budget, (void **)&lattice->backward, places, sizeof(double), error);
    if (!status)
        status = train_take(budget, (void **)&lattice->shifts, places, sizeof(int32_t), error);
    if (!status)
        status = train_take(budget, (void **)&lattice->best, places, sizeof *lattice->best, error);
    if (!status)
        status = train_take(budget, (void **)&lattice->edges, lattice->edge_room, sizeof *lattice->edges, error);
    if (status)
        unigram_lattice_free(lattice, budget);
    return status;
}

void unigram_lattice_free(struct unigram_lattice *lattice, struct train_budget *budget)
{
    const uint64_t places = LATTICE_RUN + 1;
    train_give(budget, lattice->forward, places, sizeof(double));
    train_give(budget, lattice->backward, places, sizeof(double));
    train_give(budget, lattice->shifts, places, sizeof(int32_t));
    train_give(budget, lattice->best, places, sizeof *lattice->best);
    train_give(budget, lattice->edges, lattice->edge_room, sizeof *lattice->edges);
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
