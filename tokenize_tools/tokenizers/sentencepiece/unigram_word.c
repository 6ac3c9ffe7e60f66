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

#include <assert.h>
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

/* A token that a word has somewhere. */
struct match {
    uint32_t id;
    uint16_t next; /* of those with the same end, or 0 */
    uint8_t start; /* place */
};

#define MATCHES 2048 /* of words that are matched together, and one that is not used */

/* Words, one after another, that are matched together. */
struct words {
    uint8_t text[UNIGRAM_WORD_MOST];
    size_t count; /* of its bytes */
    /* Places from which tokens may begin: the nodes that they have reached, and where their words end. */
    uint32_t nodes[UNIGRAM_WORD_MOST], next[UNIGRAM_WORD_MOST];
    uint8_t starts[UNIGRAM_WORD_MOST], stops[UNIGRAM_WORD_MOST];
    uint32_t left, tails; /* places */
    struct tailed {
        uint32_t node;
        uint8_t start, at, stop; /* places */
    } tailed[UNIGRAM_WORD_MOST];
    struct match matches[MATCHES];
    uint16_t ends[UNIGRAM_WORD_MOST + 1]; /* by place: the last match that ends there, or 0 */
    struct place places[UNIGRAM_WORD_MOST + 1];
};

static void begin(struct words *words)
{
    words->count = words->left = words->tails = 0;
}

/* Adds a word, for which there is room. */
static void add_word(struct words *words, const uint8_t *text, size_t count)
{
    memcpy(words->text + words->count, text, count);
    memset(words->ends + words->count, 0, (count + 1) * sizeof *words->ends);
    for (size_t at = 0; at < count; at += unigram_character(text + at, count - at), words->left++) {
        words->nodes[words->left] = BYTE_TRIE_ROOT;
        words->starts[words->left] = (uint8_t)(words->count + at);
        words->stops[words->left] = (uint8_t)(words->count + count);
    }
    words->count += count;
}

/* Notes a token of words that ends at a place. */
static inline void note(const struct unigram_model *model, struct words *words, uint32_t *found, uint32_t id,
                        uint8_t start, uint32_t to)
{
    __builtin_prefetch(model->floats ? (const void *)&model->floats[id] : (const void *)&model->doubles[id]);
    words->matches[*found] = (struct match){id, words->ends[to], start};
    words->ends[to] = (uint16_t)(*found)++;
}

/* Finds all tokens that words have: those of all places byte by byte, not one place after another, so that the
 * processor waits for the nodes of many places at once. Returns false if there is no room. */
static bool match_words(const struct unigram_model *model, struct words *words)
{
    const struct byte_trie *trie = &model->trie;
    uint32_t found = 1;
    for (uint32_t depth = 0, kept; words->left; depth++, words->left = kept) {
        kept = 0;
        if (found + 2 * words->left + words->tails > MATCHES)
            return false;
        for (uint32_t i = 0; i < words->left; i++) {
            words->next[i] = trie->nodes[words->nodes[i]].base ^ words->text[words->starts[i] + depth];
            __builtin_prefetch(&trie->nodes[words->next[i]]);
        }
        for (uint32_t i = 0; i < words->left; i++) {
            const struct byte_trie_node *node = &trie->nodes[words->next[i]];
            const uint8_t start = words->starts[i], stop = words->stops[i];
            const uint32_t to = start + depth + 1;
            if (node->parent != words->nodes[i])
                continue;
            if (node->value != BYTE_TRIE_NONE)
                note(model, words, &found, node->value, start, to);
            if (to == stop)
                continue;
            if (node->base & BYTE_TRIE_TAIL) {
                words->tailed[words->tails++] = (struct tailed){words->next[i], start, (uint8_t)to, stop};
                __builtin_prefetch(byte_trie_tail(trie, words->next[i]));
                continue;
            }
            words->nodes[kept] = words->next[i];
            words->starts[kept] = start;
            words->stops[kept++] = stop;
        }
    }
    for (uint32_t i = 0; i < words->tails; i++) {
        const struct tailed *at = &words->tailed[i];
        const struct byte_trie_tail *tail = byte_trie_tail(trie, at->node);
        if (byte_trie_ends(tail, words->text + at->at, at->stop - at->at))
            note(model, words, &found, tail->value, at->start, at->at + tail->count);
    }
    return true;
}

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

static inline double score_of(const struct unigram_model *model, uint32_t id, bool floats)
{
    return floats ? (double)model->floats[id] : model->doubles[id];
}

/* Finds the best way to each place of a word, text[from, end). Returns false if an unknown token is needed, which the
 * model lacks. */
static inline bool find_places(const struct unigram_model *model, struct words *words, size_t from, size_t end,
                               bool floats)
{
    const double unknown = score_of(model, model->unknown, floats);
    words->places[from] = (struct place){0, 0, -HUGE_VAL, BPE_NONE, 0};
    for (size_t at = from, to; at < end; at = to) {
        struct place place = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, BPE_NONE, 0};
        bool single = false;
        to = at + unigram_character(words->text + at, end - at);
        for (uint32_t i = words->ends[to]; i; i = words->matches[i].next) {
            const struct match *match = &words->matches[i];
            reach(&place, &words->places[match->start], match->id, score_of(model, match->id, floats), model->error);
            single |= match->start == at;
        }
        if (!single && model->sp.unk == BPE_NONE && !floats)
            return false;
        if (!single)
            reach(&place, &words->places[at], model->unknown, unknown, model->error);
        words->places[to] = place;
    }
    return true;
}

/* Returns the place where the last token before a place begins. */
static size_t before(const struct unigram_model *model, const struct words *words, size_t at)
{
    const uint32_t id = words->places[at].id;
    assert(id < model->fragile || id == model->unknown);
    if (id != model->unknown)
        return at - model->lengths[id];
    do
        at--;
    while ((words->text[at] & 0xC0) == 0x80 && at);
    return at;
}

/* Divides a word that has been matched. Returns how many ids it has. */
static size_t divide(const struct unigram_model *model, struct words *words, size_t from, size_t end, uint32_t *ids)
{
    bool known =
        model->floats ? find_places(model, words, from, end, true) : find_places(model, words, from, end, false);
    for (size_t at = end; known && at > from;) {
        const struct place *place = &words->places[at];
        known = place->best - place->steps * model->error > place->second; /* not where no sum is finite */
        at = known ? before(model, words, at) : at;
    }
    ids[0] = model->fragile;
    if (!known)
        return 1;
    const uint32_t made = words->places[end].steps;
    for (size_t at = end, next = made; at > from; at = before(model, words, at))
        ids[--next] = words->places[at].id;
    return made;
}

size_t unigram_word(const struct bpe_model *head, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                    uint32_t *ids)
{
    const struct unigram_model *model = (const struct unigram_model *)(const void *)head;
    struct words words;
    (void)scratch;
    ids[0] = model->fragile;
    if (count > UNIGRAM_WORD_MOST)
        return 1;
    begin(&words);
    add_word(&words, bytes, count);
    return match_words(model, &words) ? divide(model, &words, 0, count, ids) : 1;
}

void unigram_words(const struct bpe_model *head, struct bpe_piece *const *pieces, uint32_t count, uint32_t size_class)
{
    const struct unigram_model *model = (const struct unigram_model *)(const void *)head;
    struct words words;
    (void)size_class;
    for (uint32_t from = 0, to; from < count; from = to) {
        begin(&words);
        for (to = from; to < count && words.count + pieces[to]->count <= UNIGRAM_WORD_MOST; to++)
            add_word(&words, pieces[to]->bytes, pieces[to]->count);
        const bool matched = match_words(model, &words);
        size_t at = 0;
        for (uint32_t i = from; i < to; at += pieces[i++]->count)
            pieces[i]->ids_count =
                (uint32_t)(matched ? divide(model, &words, at, at + pieces[i]->count, pieces[i]->ids)
                                   : unigram_word(head, NULL, pieces[i]->bytes, pieces[i]->count, pieces[i]->ids));
    }
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

/* Sums are kept in the type of the model's scores. */
static inline double sum_at(const struct unigram_path *path, size_t place, bool floats)
{
    place &= path->ring - 1;
    return floats ? (double)((const float *)path->sums)[place] : ((const double *)path->sums)[place];
}

static inline void set_sum(struct unigram_path *path, size_t place, bool floats, double sum)
{
    place &= path->ring - 1;
    if (floats)
        ((float *)path->sums)[place] = (float)sum;
    else
        ((double *)path->sums)[place] = sum;
}

/* Adds as the reference does. The sum of two floats in 64 bits, rounded to a float, is their sum in 32 bits. */
static inline double add(double a, double b, bool floats)
{
    return floats ? (double)(float)(a + b) : a + b;
}

/* Takes a way to a place. Returns whether it is the best so far. */
static inline bool offer(struct unigram_path *path, size_t to, uint32_t id, double sum, bool floats)
{
    if (path->ids[to] != BPE_NONE && !(sum > sum_at(path, to, floats)))
        return false;
    set_sum(path, to, floats, sum);
    path->ids[to] = id;
    return true;
}

/* Takes the sum of a place off all places from it on that are reached, as SentencePiece does when it is large. */
static void reset(struct unigram_path *path, size_t at, size_t furthest)
{
    const double here = sum_at(path, at, true);
    for (size_t i = at; i <= furthest; i++)
        if (i == at || path->ids[i] != BPE_NONE)
            set_sum(path, i, true, add(sum_at(path, i, true), -here, true));
}

/* Finds the last token of the best division up to each place. This follows the reference step by step:
 * Model::EncodeOptimized of SentencePiece (floats), or encode_optimized of tokenizers. */
static inline enum unigram_divided find(const struct unigram_model *model, struct unigram_path *path,
                                        struct bpe_scratch *scratch, const uint8_t *text, size_t count, bool floats)
{
    const struct byte_trie *trie = &model->trie;
    size_t furthest = 0, look = LOOK;
    uint32_t length;
    for (size_t at = 0; at < count; at += length) {
        double here = sum_at(path, at, floats);
        if (floats && (here < -(double)UNIGRAM_RESET || here > (double)UNIGRAM_RESET)) {
            reset(path, at, furthest);
            here = 0;
        }
        length = unigram_character(text + at, count - at);
        bool single = false;
        uint32_t node = BYTE_TRIE_ROOT;
        for (size_t to = at; to < count && node != BYTE_TRIE_NONE;) {
            const struct byte_trie_tail *tail = byte_trie_tail(trie, node);
            uint32_t id = BYTE_TRIE_NONE;
            if (tail) {
                node = BYTE_TRIE_NONE;
                if (byte_trie_ends(tail, text + to, count - to))
                    id = tail->value;
                to += tail->count;
            } else {
                node = byte_trie_step(trie, node, text[to++]);
                id = node == BYTE_TRIE_NONE ? node : trie->nodes[node].value;
            }
            if (id == BYTE_TRIE_NONE)
                continue;
            (void)offer(path, to, id, add(score_of(model, id, floats), here, floats), floats);
            furthest = max64(furthest, to);
            single |= to - at == length;
        }
        if (!single) {
            furthest = max64(furthest, at + length);
            if (offer(path, at + length, model->unknown, add(score_of(model, model->unknown, floats), here, floats),
                      floats) &&
                !floats && model->sp.unk == BPE_NONE)
                return UNIGRAM_NO_UNKNOWN;
        }
        if (at >= look) {
            look = at + LOOK;
            if (bpe_scratch_stops(scratch))
                return UNIGRAM_STOPPED;
        }
    }
    return UNIGRAM_DIVIDED;
}

/* Moves the tokens of the best division, each of which is where it ends, to the end of path->ids. Returns how many. */
static size_t collect(const struct unigram_model *model, struct unigram_path *path, const uint8_t *text, size_t count)
{
    size_t next = count + 1;
    for (size_t at = count; at;) {
        const uint32_t id = path->ids[at];
        assert(id < model->fragile || id == model->unknown);
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
    const bool floats = model->floats != NULL;
    set_sum(path, 0, floats, *sum);
    const enum unigram_divided divided =
        floats ? find(model, path, scratch, text, count, true) : find(model, path, scratch, text, count, false);
    if (divided)
        return divided;
    *sum = sum_at(path, count, floats);
    *id_count = collect(model, path, text, count);
    *ids = path->ids + count + 1 - *id_count;
    return UNIGRAM_DIVIDED;
}
