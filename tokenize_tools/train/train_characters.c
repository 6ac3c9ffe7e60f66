/* SPDX-License-Identifier: MIT */
/* train_characters.c - see train_characters.h. */
#include "train_characters.h"

#include <stdlib.h>
#include <string.h>

#include "text/code_point.h"
#include "text/utf8.h"
#include "train_words.h"

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
