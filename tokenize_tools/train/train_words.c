/* SPDX-License-Identifier: MIT */
#include "train_words.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "text/code_point.h"
#include "text/utf8.h"
#include "unicode/code_sets.h"

/* Kinds of characters: a script, by number, or one of these. */
enum {
    KIND_ANY = SCRIPT_ANY, /* belongs to its neighbors on both sides, of whatever script */
    KIND_LINE = 252,       /* belongs to its like only */
    KIND_ALONE,            /* belongs to nothing */
    KIND_SPACE,            /* begins a word */
    KIND_MARK              /* belongs to what is before it: of the script Inherited */
};
#define MARK 0x300 /* a character of that script */

struct train_cutter {
    bool dummy_prefix;
    uint8_t kinds[CODES];
};

static void digits_are(struct train_cutter *cutter, uint8_t kind)
{
    memset(&cutter->kinds['0'], kind, 10);
    memset(&cutter->kinds[0xFF10], kind, 10);
}

enum tokmap_status train_cutter_new(struct train_cutter **cutter, const struct train_word_rules *rules,
                                    struct train_budget *budget, struct tokmap_error *error)
{
    const enum tokmap_status status = train_take(budget, (void **)cutter, 1, sizeof **cutter, error);
    if (status)
        return status;
    struct train_cutter *made = *cutter;
    made->dummy_prefix = rules->dummy_prefix;
    for (uint32_t i = 0; i < SCRIPT_SPANS && rules->scripts; i++) {
        const struct code_span *span = &script_spans[i];
        const bool mark = span->number == code_script(MARK);
        memset(made->kinds + span->first, mark ? KIND_MARK : span->number, span->last + 1 - span->first);
    }
    if (rules->digits)
        digits_are(made, KIND_ALONE);
    else if (!rules->numbers)
        digits_are(made, KIND_ANY);
    made->kinds['\n'] = made->kinds['\r'] = KIND_LINE;
    made->kinds[' '] = made->kinds[TRAIN_SPACE] = KIND_SPACE;
    return TOKMAP_OK;
}

void train_cutter_free(struct train_cutter *cutter, struct train_budget *budget)
{
    train_give(budget, cutter, 1, sizeof *cutter);
}

/* Counts a word with a space in front of it. */
static enum tokmap_status prefixed_count(struct train_counter *counter, const uint8_t *word, uint64_t count,
                                         struct tokmap_error *error)
{
    uint8_t *copy = malloc((size_t)count + 1);
    if (!copy)
        return error_set_memory(error, "the first word of a document", count + 1);
    copy[0] = ' ';
    memcpy(copy + 1, word, (size_t)count);
    const enum tokmap_status status = train_counter_piece(counter, copy, count + 1, count + 1, error);
    free(copy);
    return status;
}

enum tokmap_status train_words_count(const struct train_cutter *cutter, struct train_counter *counter,
                                     const uint8_t *text, uint64_t count, struct tokmap_error *error)
{
    uint32_t before = KIND_ANY;
    uint64_t from = 0;
    bool prefix = cutter->dummy_prefix && count;
    enum tokmap_status status = TOKMAP_OK;
    train_counter_read(counter, count);
    for (uint64_t at = 0; at < count && !status;) {
        size_t bytes;
        const uint32_t code = code_point_get(text + at, &bytes);
        uint32_t kind = cutter->kinds[code];
        bool cut = kind != before && before != KIND_ANY && kind != KIND_ANY;
        if (kind == KIND_SPACE) {
            cut = true;
            kind = KIND_ANY;
        } else if (kind == KIND_MARK) {
            cut = before >= KIND_LINE;
            kind = cut ? KIND_ANY : before;
        } else if (kind == KIND_ALONE || before == KIND_ALONE) {
            cut = true;
        }
        if (cut && (at > from || prefix)) {
            status = prefix ? prefixed_count(counter, text + from, at - from, error)
                            : train_counter_piece(counter, text + from, at - from, count - from, error);
            prefix = false;
            from = at;
        }
        before = kind;
        at += bytes;
    }
    if (!status && (count > from || prefix))
        status = prefix ? prefixed_count(counter, text + from, count - from, error)
                        : train_counter_piece(counter, text + from, count - from, count - from, error);
    return status;
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

/* Decides which characters are covered. */
static enum tokmap_status cover(struct train_characters *c, struct character *found, uint32_t count, double coverage,
                                struct train_budget *budget, struct tokmap_error *error)
{
    uint64_t covered = 0;
    qsort(found, count, sizeof *found, characters_compare);
    c->room = (uint64_t)count + 1;
    enum tokmap_status status = train_take(budget, (void **)&c->codes, c->room, sizeof *c->codes, error);
    if (!status)
        status = train_take(budget, (void **)&c->times, c->room, sizeof *c->times, error);
    if (status)
        return status;
    for (uint32_t i = 0; i < count; i++) {
        if (!found[i].required && (double)covered >= coverage * (double)c->all) {
            c->uncovered += found[i].times;
            c->uncovered_bytes += found[i].times * bytes_of(found[i].code);
            continue;
        }
        covered += found[i].times;
        c->codes[++c->count] = found[i].code;
        c->times[c->count] = found[i].times;
        c->number_of[found[i].code] = c->count;
    }
    return TOKMAP_OK;
}

/* The times of each code point, and their sum. */
struct counts {
    uint64_t *times, all;
};

static void piece_count(void *user, const uint8_t *bytes, uint64_t count, uint64_t times)
{
    struct counts *counts = user;
    size_t length;
    for (uint64_t at = 0; at < count; at += length) {
        const uint32_t code = code_point_get(bytes + at, &length);
        if (!code)
            continue;
        counts->times[code == ' ' ? TRAIN_SPACE : code] += times;
        counts->all += times;
    }
}

enum tokmap_status train_characters_choose(struct train_characters *c, const struct train_pieces *pieces,
                                           double coverage, const uint32_t *required, uint32_t required_count,
                                           struct train_budget *budget, struct tokmap_error *error)
{
    struct counts counts = {NULL, 0};
    struct character *found = NULL;
    uint32_t count = 0;
    memset(c, 0, sizeof *c);
    enum tokmap_status status = train_take(budget, (void **)&counts.times, CODES, sizeof *counts.times, error);
    if (!status)
        status = train_take(budget, (void **)&c->number_of, CODES, sizeof *c->number_of, error);
    if (!status) {
        train_pieces_each(pieces, piece_count, &counts);
        c->all = counts.all;
    }
    for (uint32_t i = 0; i < required_count && !status; i++)
        c->number_of[required[i]] = required[i] != 0; /* marks it; there are no numbers yet */
    for (uint32_t code = 0; code < CODES && !status; code++)
        count += counts.times[code] || c->number_of[code];
    if (!status)
        status = train_take(budget, (void **)&found, count, sizeof *found, error);
    uint32_t at = 0;
    for (uint32_t code = 0; code < CODES && !status; code++)
        if (counts.times[code] || c->number_of[code]) {
            found[at++] = (struct character){counts.times[code], code, c->number_of[code] != 0};
            c->number_of[code] = 0;
        }
    if (!status)
        status = cover(c, found, count, coverage, budget, error);
    train_give(budget, counts.times, CODES, sizeof *counts.times);
    train_give(budget, found, count, sizeof *found);
    if (status)
        train_characters_free(c, budget);
    return status;
}

void train_characters_free(struct train_characters *c, struct train_budget *budget)
{
    train_give(budget, c->number_of, CODES, sizeof *c->number_of);
    train_give(budget, c->codes, c->room, sizeof *c->codes);
    train_give(budget, c->times, c->room, sizeof *c->times);
    memset(c, 0, sizeof *c);
}

/* ---- words as numbers of characters ---- */

static void word_add(void *user, const uint8_t *bytes, uint64_t count, uint64_t times)
{
    struct unigram_words *w = user;
    w->words[w->count++] = (struct unigram_word){w->code_count, times};
    size_t length;
    for (uint64_t at = 0; at < count; at += length) {
        const uint32_t code = code_point_get(bytes + at, &length);
        w->codes[w->code_count++] = w->characters->number_of[code == ' ' ? TRAIN_SPACE : code];
    }
    w->codes[w->code_count++] = 0;
}

enum tokmap_status unigram_words_make(struct unigram_words *w, struct train_pieces *pieces,
                                      const struct train_characters *characters, struct train_budget *budget,
                                      struct tokmap_error *error)
{
    struct train_totals totals;
    memset(w, 0, sizeof *w);
    train_pieces_totals(pieces, &totals);
    w->characters = characters;
    w->code_room = totals.bytes + totals.distinct;
    w->word_room = totals.distinct + 1;
    if (w->code_room >= UINT32_MAX)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the distinct words of the text have more than 2^32 bytes; train on a part of it");
    enum tokmap_status status = train_take(budget, (void **)&w->codes, w->code_room, sizeof *w->codes, error);
    if (!status)
        status = train_take(budget, (void **)&w->words, w->word_room, sizeof *w->words, error);
    if (status) {
        unigram_words_free(w, budget);
        return status;
    }
    train_pieces_drain(pieces, word_add, w);
    w->words[w->count].begin = w->code_count;
    return TOKMAP_OK;
}

void unigram_words_free(struct unigram_words *w, struct train_budget *budget)
{
    train_give(budget, w->codes, w->code_room, sizeof *w->codes);
    train_give(budget, w->words, w->word_room, sizeof *w->words);
    memset(w, 0, sizeof *w);
}
