/* SPDX-License-Identifier: MIT */
/*
 * unigram_word.c - the best division of a word.
 *
 * For a cache, the sums are those of real numbers (in 64 bits), and rounding must not be able to decide. Let e be the
 * largest error of one addition (model->error). With k tokens before a place, the reference's sum of a division is off
 * by at most k e, whatever was before the word. Let R be the best sum of a place on the best division, with k tokens,
 * and A the best of s + n e over all other divisions into n tokens that end there with another token than the best one.
 * The reference keeps the best token if R - k e > A: its sum of the best division is at least R - k e, because larger
 * terms never give smaller rounded sums, and all other sums are at most A. If this holds at every place of the best
 * division, from its end back to its start, the reference finds it.
 *
 * Example: "abc" is "ab" "c" with the sum -10, and "a" "bc" has -10.5. With e = 0.006 the condition at the end of the
 * word is -10 - 0.012 > -10.5 + 0.012, so the word is kept. With -10.01 it would be fragile.
 *
 * A division with n tokens has a sum that is wrong by n e at most, but the bound only holds while all sums are below
 * model->limit. unigram_encode.c divides words where they stand if they could pass it.
 */
#include "unigram_word.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

#define PATH_KEPT ((size_t)1 << 16) /* bytes of a word; the memory for longer ones is freed after the text */
#define LOOK ((size_t)1 << 14)      /* bytes between two looks at scratch->stop */

/* ---- for a cache ---- */

/* What is known of a place. */
struct place {
    double best;    /* the best sum */
    double highest; /* the best sum of which each addition was wrong by e upwards */
    double second;  /* the same, of divisions that end with another token than the best one */
    uint32_t id;    /* the last token of the best division */
    uint32_t steps; /* tokens of the best division */
};

/* Takes a way to a place. There are no branches, because no processor could predict them. */
static inline void reach(struct place *to, const struct place *from, uint32_t id, double score, double error)
{
    const double sum = from->best + score, high = from->highest + score + error;
    const bool better = sum > to->best;
    /* `highest` is at least that of the token that was best so far. */
    const double second = better ? to->highest : to->second, least = better ? -HUGE_VAL : high;
    to->second = second > least ? second : least;
    to->highest = high > to->highest ? high : to->highest;
    to->best = better ? sum : to->best;
    to->id = better ? id : to->id;
    to->steps = better ? from->steps + 1 : to->steps;
}

/* Finds the tokens that begin at text[at]. Returns false if an unknown token is needed, which the model lacks. */
static inline bool step(const struct unigram_model *model, const uint8_t *text, size_t count, size_t at,
                        struct place *places, bool floats)
{
    const uint32_t length = unigram_character(text + at, count - at);
    const struct byte_trie_node *nodes = model->trie.nodes;
    const struct place from = places[at];
    uint32_t node = BYTE_TRIE_ROOT;
    bool single = false;
    for (size_t to = at; to < count;) {
        const uint32_t child = nodes[node].base ^ text[to++];
        if (nodes[child].parent != node)
            break;
        node = child;
        const uint32_t id = nodes[node].value;
        if (id == BYTE_TRIE_NONE)
            continue;
        reach(&places[to], &from, id, floats ? (double)model->floats[id] : model->doubles[id], model->error);
        single |= to - at == length;
    }
    if (single)
        return true;
    if (model->sp.unk == BPE_NONE && !floats)
        return false;
    reach(&places[at + length], &from, model->unknown,
          floats ? (double)model->floats[model->unknown] : model->doubles[model->unknown], model->error);
    return true;
}

/* Finds the tokens that begin at each place of a word. */
static inline bool steps(const struct unigram_model *model, const uint8_t *text, size_t count, struct place *places,
                         bool floats)
{
    for (size_t at = 0; at < count; at += unigram_character(text + at, count - at))
        if (!step(model, text, count, at, places, floats))
            return false;
    return true;
}

size_t unigram_word(const struct bpe_model *head, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                    uint32_t *ids)
{
    const struct unigram_model *model = (const struct unigram_model *)(const void *)head;
    struct place places[UNIGRAM_WORD_MOST + 1];
    (void)scratch;
    ids[0] = model->fragile;
    if (count > UNIGRAM_WORD_MOST)
        return 1;
    for (size_t i = 1; i <= count; i++)
        places[i] = (struct place){-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, BPE_NONE, 0};
    places[0] = (struct place){0, 0, -HUGE_VAL, BPE_NONE, 0};
    if (!(model->floats ? steps(model, bytes, count, places, true) : steps(model, bytes, count, places, false)))
        return 1;
    for (size_t at = count; at;) {
        const struct place *place = &places[at];
        if (!(place->best - place->steps * model->error > place->second))
            return 1;
        if (place->id == model->unknown) {
            do
                at--;
            while ((bytes[at] & 0xC0) == 0x80 && at);
        } else {
            at -= model->lengths[place->id];
        }
    }
    const uint32_t made = places[count].steps;
    for (size_t at = count, next = made; at;) {
        const uint32_t id = places[at].id;
        ids[--next] = id;
        if (id == model->unknown) {
            do
                at--;
            while ((bytes[at] & 0xC0) == 0x80 && at);
        } else {
            at -= model->lengths[id];
        }
    }
    return made;
}

/* ---- where it stands ---- */

void unigram_path_free(struct unigram_path *path)
{
    free(path->ids);
    free(path->sums);
    memset(path, 0, sizeof *path);
}

void unigram_path_trim(struct unigram_path *path)
{
    if (path->room <= PATH_KEPT)
        return;
    free(path->ids);
    path->ids = NULL;
    path->room = 0;
}

static bool path_reserve(const struct unigram_model *model, struct unigram_path *path, size_t count)
{
    if (!path->sums) {
        path->ring = 1;
        while (path->ring <= model->longest)
            path->ring *= 2;
        path->sums = malloc(path->ring * sizeof(double));
    }
    if (path->room < count || !path->ids) {
        free(path->ids);
        path->room = 0;
        path->ids = malloc((count + count / 4 + 256) * sizeof *path->ids);
        if (path->ids)
            path->room = count + count / 4 + 255;
    }
    return path->ids && path->sums;
}

#define NUMBER float
#define FIND find_float
#define SCORES floats
#define RESETS true
#include "unigram_find.h"
#undef NUMBER
#undef FIND
#undef SCORES
#undef RESETS
#define NUMBER double
#define FIND find_double
#define SCORES doubles
#define RESETS false
#include "unigram_find.h"

/* Moves the tokens of the best division, each of which is where it ends, to the end of path->ids. Returns how many. */
static size_t collect(const struct unigram_model *model, struct unigram_path *path, const uint8_t *text, size_t count)
{
    size_t next = count + 1;
    for (size_t at = count; at;) {
        const uint32_t id = path->ids[at];
        path->ids[--next] = id; /* a token has at least one byte, so next is at least `at` */
        if (id == model->unknown) {
            do
                at--;
            while ((text[at] & 0xC0) == 0x80 && at);
        } else {
            at -= model->lengths[id];
        }
    }
    return count + 1 - next;
}

enum unigram_divided unigram_divide(const struct unigram_model *model, struct unigram_path *path,
                                    struct bpe_scratch *scratch, const uint8_t *text, size_t count, double *sum,
                                    const uint32_t **ids, size_t *id_count)
{
    if (!path_reserve(model, path, count))
        return UNIGRAM_NO_MEMORY;
    memset(path->ids, 0xFF, (count + 1) * sizeof *path->ids);
    const enum unigram_divided divided = model->floats ? find_float(model, path, scratch, text, count, sum)
                                                       : find_double(model, path, scratch, text, count, sum);
    if (divided)
        return divided;
    *id_count = collect(model, path, text, count);
    *ids = path->ids + count + 1 - *id_count;
    return UNIGRAM_DIVIDED;
}
