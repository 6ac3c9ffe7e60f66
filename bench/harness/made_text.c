/* SPDX-License-Identifier: MIT */
/* made_text.c - see made_text.h. */
#include "made_text.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "harness.h"

#define WORDS ((uint32_t)1 << 16) /* size of the vocabulary */

struct made_text {
    uint64_t state; /* of the random numbers */
    char words[WORDS][16];
    uint8_t lengths[WORDS];
};

/* Makes words of syllables, so that the letters are about as unequally frequent as in a natural language. */
static void words_make(struct made_text *text)
{
    static const char consonants[] = "ttttnnnnsssshhhrrrrddllccmmffwyggpbbvk", vowels[] = "eeeeeeaaaaooooiiiiuu";
    uint64_t *state = &text->state;
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t syllables = 1 + (uint32_t)(i > 40) + (uint32_t)(i > 2000) + (uint32_t)random_below(state, 2);
        uint8_t length = 0;
        for (uint32_t j = 0; j < syllables; j++) {
            text->words[i][length++] = consonants[random_below(state, sizeof consonants - 1)];
            text->words[i][length++] = vowels[random_below(state, sizeof vowels - 1)];
            if (random_below(state, 3) == 0)
                text->words[i][length++] = consonants[random_below(state, sizeof consonants - 1)];
        }
        text->lengths[i] = length;
    }
}

struct made_text *made_text_new(uint64_t seed)
{
    struct made_text *text = calloc(1, sizeof *text);
    if (!text)
        return NULL;
    text->state = seed;
    words_make(text);
    return text;
}

void made_text_free(struct made_text *text)
{
    free(text);
}

/* Words follow Zipf's law: the logarithm of a word's rank is uniform. */
void made_text_fill(struct made_text *text, uint8_t *block, size_t bytes)
{
    size_t at = 0, line = 0;
    while (at < bytes) {
        uint32_t power = (uint32_t)1 << random_below(&text->state, 16);
        uint32_t rank = power + (uint32_t)random_below(&text->state, power) - 1;
        size_t length = (size_t)min64(text->lengths[rank], bytes - at);
        memcpy(block + at, text->words[rank], length);
        at += length;
        line += length + 1;
        uint64_t dice = random_below(&text->state, 16);
        if (at < bytes && dice == 0)
            block[at++] = '.';
        if (at < bytes)
            block[at++] = line > 72 ? '\n' : ' ';
        line = line > 72 ? 0 : line;
    }
}
