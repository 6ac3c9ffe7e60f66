/* SPDX-License-Identifier: MIT */
#include "word_grams.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool word_grams_begin(struct word_grams *grams)
{
    assert(grams->each && grams->take);
    if (!grams->begins)
        grams->begins = malloc((GRAM_BLOCK + (size_t)grams->each) * sizeof *grams->begins);
    bytes_trim(&grams->words);
    if (!grams->begins || !bytes_reserve(&grams->words, GRAM_SLACK))
        return false;
    grams->begins[0] = grams->begin = grams->gone = grams->count = 0;
    grams->ended = false;
    return true;
}

void word_grams_pass(struct word_grams *grams)
{
    uint64_t *begins = grams->begins;
    if (grams->count < grams->each)
        return;
    const uint32_t count = grams->count - (grams->each - 1);
    const uint64_t first = begins[count];
    grams->ended = grams->ended || !grams->take(grams->user, grams->words.bytes, begins, count);
    memmove(grams->words.bytes, grams->words.bytes + first, grams->words.count - (size_t)first);
    grams->words.count -= (size_t)first;
    grams->count -= count;
    grams->gone += count;
    for (uint32_t i = 0; i <= grams->count; i++)
        grams->begin = begins[i] = begins[i + count] - first;
}

uint8_t *word_grams_full(struct word_grams *grams, uint8_t *to)
{
    struct bytes_buffer *words = &grams->words;
    words->count = (size_t)(to - words->bytes);
    if (grams->count >= grams->each && (grams->count >= GRAM_BLOCK - GRAM_WORDS + grams->each - 1 ||
                                        grams->begins[grams->count - grams->each + 1] >= words->count / 2))
        word_grams_pass(grams);
    return words->bytes + words->count;
}

void word_grams_free(struct word_grams *grams)
{
    bytes_free(&grams->words);
    free(grams->begins);
    grams->begins = NULL;
}
