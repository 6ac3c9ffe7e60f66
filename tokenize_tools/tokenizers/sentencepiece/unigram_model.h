/* SPDX-License-Identifier: MIT */
/*
 * unigram_model.h - a Unigram vocabulary (T5, ALBERT, XLM-R) in the form that encoding needs.
 *
 * Each token has a score, the logarithm of its probability. A text becomes those tokens whose scores have the largest
 * sum; a character that is not a token by itself may also be unknown, for a score lower than all others. The sum is
 * built from the start of the text on (Viterbi): for each place, the best tokens that end there.
 *
 * No token holds certain pairs of characters side by side, such as a letter and the space after it. All ways to divide
 * the text meet at such a place, so text is cut there into words (sentencepiece/sp_cut.h), and the words go through
 * the caches of bpe/bpe_encode.h.
 *
 * Rounding. The references add scores in floating point, from the start of the text: SentencePiece in 32 bits,
 * tokenizers in 64. Two divisions of a word whose sums are nearly equal may therefore be decided by the sum before the
 * word. So a word is kept in a cache only if rounding cannot decide it, whatever that sum is (unigram_word.c has the
 * bound). In place of all other words the caches have the number `fragile`; they are divided where they stand, with the
 * sum and the arithmetic of the reference.
 *
 * A model is immutable, and any number of threads may use it at once.
 */
#ifndef TOKMAP_SENTENCEPIECE_UNIGRAM_MODEL_H
#define TOKMAP_SENTENCEPIECE_UNIGRAM_MODEL_H

#include "engine/byte_trie.h"
#include "sp_model.h"

/* Bytes of a token that text can become. Each place of a text may be compared with as many. */
#define UNIGRAM_TOKEN_MOST 2048
#define UNIGRAM_WORD_MOST 255 /* bytes of a word that the caches may hold */

/* SentencePiece sets a sum beyond it to 0 (and takes it off all sums that are already made). */
#define UNIGRAM_RESET 100000.0f

struct unigram_model {
    struct sp_model sp;     /* first. Of merging it has nothing; its texts, characters, cuts, and settings are used */
    struct byte_trie trie;  /* texts of the tokens that text can become, as the model sees text */
    uint32_t fragile;       /* the number that stands for a word which a cache cannot decide */
    uint32_t unknown;       /* the number of a character that is unknown */
    uint32_t known;         /* a token from this number on becomes the unknown token */
    struct byte_trie names; /* ids of texts that unknown characters in a row may be; or empty */
    const struct byte_trie *runs; /* the trie in which unknown characters in a row are looked up, or NULL */
    uint32_t *lengths;            /* bytes of each token in the trie, by id */
    float *floats;                /* scores of ids and of `unknown`, for sums of 32 bits; or NULL */
    double *doubles;              /* the same, for sums of 64 bits; or NULL */
    double limit;                 /* sums of cached words stay below it */
    double reach;                 /* a byte changes the sum by at most so much */
    double error;                 /* an addition below the limit is wrong by at most so much */
    uint32_t longest;             /* bytes of the longest token in the trie, at least 4 */
};
_Static_assert(offsetof(struct unigram_model, sp) == 0, "unigram_word() casts the head to the model");

/* Returns the bytes of the character that begins at `bytes`; count: at least 1. The text is UTF-8. */
static inline uint32_t unigram_character(const uint8_t *bytes, size_t count)
{
    const uint32_t first = bytes[0], length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return length < count ? length : (uint32_t)count;
}

#endif
