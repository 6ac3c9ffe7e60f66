/* SPDX-License-Identifier: MIT */
/* unigram_words.c - see unigram_words.h. */
#include "unigram_words.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "text/code_point.h"
#include "train_words.h"

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
