/* SPDX-License-Identifier: MIT */
/*
 * word_grams.h - the words of texts, one after the other, and all N consecutive ones, in blocks. Code that finds words
 * (shingles.c, ngram_table.c) appends their bytes to `words`, and calls gram_word_end() after each. It gets the grams
 * by take().
 *
 * Example, with N = 2: after "it s 0 at" begins[] has 0, 3, 5, 7, and 10, and the three grams are the bytes 0 to 3, 3
 * to 5, and 5 to 8: gram i is the bytes from begins[i] to before begins[i + N] - 1.
 */
#ifndef TOKMAP_DEDUP_WORD_GRAMS_H
#define TOKMAP_DEDUP_WORD_GRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/cpu.h"

#define GRAM_BLOCK 1024               /* grams that are passed on at once, at most */
#define GRAM_BYTES ((size_t)64 << 10) /* with more bytes of words, grams are passed on earlier */
#define GRAM_SLACK 64                 /* bytes that may be read and written after the words */
#define GRAM_WORDS 40                 /* room for words that end before the next check */

/* What a byte of ASCII becomes, where a map has no byte of a word for it. */
enum { GRAM_DELETED = 1, GRAM_OTHER = 2 /* the handler says */, GRAM_BLANK = ' ' /* a word ends */ };

/* The words of one text after the other, for one thread. Begins as zero bytes but for the first members. */
struct word_grams {
    uint32_t each; /* N, at least 1 */
    /* Takes grams, from 1 to GRAM_BLOCK. Returns false if no more are wanted. */
    bool (*take)(void *user, const uint8_t *words, const uint64_t *begins, uint32_t count);
    void *user;
    struct bytes_buffer words; /* the last ones, with a blank after each, and what there is of the next one */
    uint64_t *begins;          /* of the last words, and of the next one: room for GRAM_BLOCK + N */
    uint64_t begin;            /* of the next one */
    uint64_t gone;             /* words that are not in `words` any more */
    uint32_t count;            /* those that are */
    bool ended;                /* take() has returned false */
};

/* Begins a text. N must be the same for all texts until word_grams_free(). Returns false if there is no memory. */
bool word_grams_begin(struct word_grams *grams);
/* Passes the grams of all words on, and keeps those words that belong to the next ones. Call it at the end of a text.
 */
void word_grams_pass(struct word_grams *grams);
/* Does so if there are many, when the bytes of the words end at `to`. Returns where they end then. */
uint8_t *word_grams_full(struct word_grams *grams, uint8_t *to);
void word_grams_free(struct word_grams *grams);

/* Returns true if it is time for word_grams_full(). */
static inline bool word_grams_are_many(const struct word_grams *grams)
{
    return grams->begin >= GRAM_BYTES || grams->count >= GRAM_BLOCK - GRAM_WORDS + grams->each - 1;
}

/* Ends a word at `to`, where its bytes end, if there is one since the last call. There is room for a byte. Returns
 * where the bytes of the next word go. There is no branch on that, because between a comma and a blank there is no
 * word, and it would be predicted wrong often. */
static inline uint8_t *gram_word_end(struct word_grams *grams, uint8_t *to)
{
    const uint32_t more = (uint64_t)(to - grams->words.bytes) != grams->begin;
    *to = ' ';
    to += more;
    grams->count += more;
    grams->begins[grams->count] = grams->begin = (uint64_t)(to - grams->words.bytes);
    return word_grams_are_many(grams) ? word_grams_full(grams, to) : to;
}

/* Returns which of 64 bytes are letters of ASCII, as bits. */
static inline uint64_t letters_of(const uint8_t *text)
{
    const uint64_t ones = 0x0101010101010101, highs = 0x80 * ones;
    uint64_t letters = 0;
    for (int i = 0; i < 64; i += 8) {
        const uint64_t bytes = load64(text + i), low = (bytes | 0x20 * ones) & ~highs;
        const uint64_t from_a = low + (0x80 - 'a') * ones, beyond_z = low + (0x80 - 'z' - 1) * ones;
        const uint64_t found = from_a & ~beyond_z & ~bytes & highs;
        letters |= (found >> 7) * 0x0102040810204080 >> 56 << i; /* the product has the eight bits side by side */
    }
    return letters;
}

/* Handles the character at text + at, and returns where the next one begins. Bytes of words go to *to, at most `growth`
 * for each byte of text. */
typedef uint64_t character_handler(void *user, uint8_t **to, const uint8_t *text, uint64_t count, uint64_t at);

#if defined(__x86_64__)
/* Adds the words of a text up to the first character that is not ASCII or that the map leaves to the handler, or until
 * the block is full. There is room for GRAM_SLACK bytes. Returns how many bytes of the text these are. Needs CPU_VBMI.
 */
uint64_t words_add_vbmi(struct word_grams *grams, const uint8_t map[128], const uint8_t *text, uint64_t count);
#endif

/* Adds the words of a text. map: what each byte of ASCII becomes; letters are in lower case. The handler, a constant
 * where this is called, does the same for any character. Returns false if there is no memory. */
static inline __attribute__((always_inline)) bool words_add(struct word_grams *grams, const uint8_t map[128],
                                                            const uint8_t *text, uint64_t count, uint64_t growth,
                                                            character_handler *other, void *user)
{
    struct bytes_buffer *words = &grams->words;
    bool wide = false;
#if defined(__x86_64__)
    wide = cpu_has(CPU_VBMI);
#endif
    for (uint64_t base = 0; base < count && !grams->ended;) {
        if (!bytes_reserve(words, growth * 64 + GRAM_SLACK))
            return false;
#if defined(__x86_64__)
        if (wide && text[base] < 0x80 && (base += words_add_vbmi(grams, map, text + base, count - base)) == count)
            break;
#endif
        const bool whole = !wide && count - base >= 64 + 8;
        const uint64_t letters = whole ? letters_of(text + base) : 0, stop = wide ? 1 : min64(count - base, 64);
        uint8_t *to = words->bytes + words->count;
        uint64_t at = 0;
        while (at < stop) {
            const uint64_t others = ~(letters >> at), run = others ? (uint64_t)__builtin_ctzll(others) : 64;
            for (uint64_t i = 0; i < run; i += 8)
                store64(to + i, load64(text + base + at + i) | 0x2020202020202020);
            to += run;
            at += run;
            if (at < stop)
                at = other(user, &to, text, count, base + at) - base;
        }
        base += at;
        words->count = (size_t)(to - words->bytes);
    }
    if (!bytes_reserve(words, 1 + GRAM_SLACK))
        return false;
    if (!grams->ended)
        words->count = (size_t)(gram_word_end(grams, words->bytes + words->count) - words->bytes);
    return true;
}

#endif
