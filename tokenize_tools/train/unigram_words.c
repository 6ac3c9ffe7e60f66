/* SPDX-License-Identifier: MIT */
/* unigram_words.c - see unigram_words.h. */
#include "unigram_words.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "text/utf8.h"
#include "train_words.h"

#define CODES 0x110000u

/* ---- words as code points ---- */

static void word_add(void *user, const uint8_t *bytes, uint64_t count, uint64_t times)
{
    struct unigram_words *w = user;
    w->words[w->count++] = (struct unigram_word){w->code_count, times};
    for (uint64_t at = 0; at < count;) {
        uint32_t code;
        at += train_code_at(bytes + at, &code);
        w->codes[w->code_count++] = code == ' ' ? TRAIN_SPACE : code;
    }
    w->codes[w->code_count++] = 0;
}

/* ---- characters ---- */

struct character {
    uint64_t times;
    uint32_t code;
    bool required;
};

/* Puts required characters first, then frequent ones. */
static int characters_compare(const void *one, const void *other)
{
    const struct character *a = one, *b = other;
    if (a->required != b->required)
        return a->required ? -1 : 1;
    if (a->times != b->times)
        return a->times > b->times ? -1 : 1;
    return a->code < b->code ? -1 : a->code > b->code;
}

static uint32_t bytes_of(uint32_t code)
{
    char text[4];
    return code == TRAIN_SPACE ? 1 : (uint32_t)utf8_put(text, code);
}

/* Decides which characters are covered, and writes their numbers to number_of. */
static enum tokmap_status cover(struct unigram_words *w, struct character *found, uint32_t count, double coverage,
                                uint32_t *number_of, struct train_budget *budget, struct tokmap_error *error)
{
    uint64_t covered = 0;
    qsort(found, count, sizeof *found, characters_compare);
    w->character_room = (uint64_t)count + 1;
    enum tokmap_status status =
        train_take(budget, (void **)&w->characters, w->character_room, sizeof *w->characters, error);
    if (!status)
        status =
            train_take(budget, (void **)&w->character_times, w->character_room, sizeof *w->character_times, error);
    if (status)
        return status;
    for (uint32_t i = 0; i < count; i++) {
        if (!found[i].required && (double)covered >= coverage * (double)w->all) {
            w->uncovered += found[i].times;
            w->uncovered_bytes += found[i].times * bytes_of(found[i].code);
            continue;
        }
        covered += found[i].times;
        w->characters[++w->character_count] = found[i].code;
        w->character_times[w->character_count] = found[i].times;
        number_of[found[i].code] = w->character_count;
    }
    return TOKMAP_OK;
}

static enum tokmap_status characters_make(struct unigram_words *w, double coverage, const uint32_t *required,
                                          uint32_t required_count, uint32_t *number_of, struct train_budget *budget,
                                          struct tokmap_error *error)
{
    uint64_t *times = NULL;
    struct character *found = NULL;
    uint32_t count = 0;
    enum tokmap_status status = train_take(budget, (void **)&times, CODES, sizeof *times, error);
    for (uint64_t i = 0; i < w->count && !status; i++)
        for (uint64_t at = w->words[i].begin; at + 1 < w->words[i + 1].begin; at++)
            if (w->codes[at]) {
                times[w->codes[at]] += w->words[i].times;
                w->all += w->words[i].times;
            }
    /* A required character is marked in number_of, which has no numbers yet. */
    for (uint32_t i = 0; i < required_count && !status; i++)
        number_of[required[i]] = 1;
    for (uint32_t code = 0; code < CODES && !status; code++)
        count += times[code] || number_of[code];
    if (!status)
        status = train_take(budget, (void **)&found, count, sizeof *found, error);
    count = 0;
    for (uint32_t code = 0; code < CODES && !status; code++)
        if (times[code] || number_of[code]) {
            found[count++] = (struct character){times[code], code, number_of[code] != 0};
            number_of[code] = 0;
        }
    if (!status)
        status = cover(w, found, count, coverage, number_of, budget, error);
    train_give(budget, times, CODES, sizeof *times);
    train_give(budget, found, count, sizeof *found);
    return status;
}

/* ---- the whole ---- */

enum tokmap_status unigram_words_make(struct unigram_words *w, struct train_pieces *pieces, double coverage,
                                      const uint32_t *required, uint32_t required_count, struct train_budget *budget,
                                      struct tokmap_error *error)
{
    struct train_totals totals;
    uint32_t *number_of = NULL;
    memset(w, 0, sizeof *w);
    train_pieces_totals(pieces, &totals);
    w->code_room = totals.bytes + totals.distinct;
    w->word_room = totals.distinct + 1;
    if (w->code_room >= UINT32_MAX)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the distinct words of the text have more than 2^32 bytes; train on a part of it");
    enum tokmap_status status = train_take(budget, (void **)&w->codes, w->code_room, sizeof *w->codes, error);
    if (!status)
        status = train_take(budget, (void **)&w->words, w->word_room, sizeof *w->words, error);
    if (!status)
        status = train_take(budget, (void **)&number_of, CODES, sizeof *number_of, error);
    if (!status) {
        train_pieces_drain(pieces, word_add, w);
        w->words[w->count].begin = w->code_count;
        status = characters_make(w, coverage, required, required_count, number_of, budget, error);
    }
    for (uint64_t i = 0; i < w->code_count && !status; i++)
        w->codes[i] = number_of[w->codes[i]];
    train_give(budget, number_of, CODES, sizeof *number_of);
    if (status)
        unigram_words_free(w, budget);
    return status;
}

void unigram_words_free(struct unigram_words *w, struct train_budget *budget)
{
    train_give(budget, w->codes, w->code_room, sizeof *w->codes);
    train_give(budget, w->words, w->word_room, sizeof *w->words);
    train_give(budget, w->characters, w->character_room, sizeof *w->characters);
    train_give(budget, w->character_times, w->character_room, sizeof *w->character_times);
    memset(w, 0, sizeof *w);
}
