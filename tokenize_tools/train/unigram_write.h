/* SPDX-License-Identifier: MIT */
/*
 * unigram_write.h - what is in the files of a Unigram vocabulary, which other libraries read:
 *
 *     PREFIX.model   a model of SentencePiece
 *     PREFIX.json    a tokenizer.json of Hugging Face
 *
 * Both have the same ids: <unk>, the 256 bytes if there are any, the pieces in descending order of their scores, and
 * the special tokens. They do not normalize text: they only write spaces as U+2581.
 */
#ifndef TOKMAP_TRAIN_UNIGRAM_WRITE_H
#define TOKMAP_TRAIN_UNIGRAM_WRITE_H

#include "train_unigram.h"
#include "train_words.h"
#include "train_write.h"

#define UNIGRAM_WRITE_FILES 2

struct unigram_settings {
    struct train_word_rules rules;
    bool bytes;      /* characters that are not in the vocabulary become tokens of their bytes, not <unk> */
    double coverage; /* of characters, as in unigram_words_make() */
    uint32_t longest;
};

/* Returns how many ids the files have besides those of pieces. */
uint32_t unigram_write_others(const struct unigram_settings *unigram, const struct train_settings *settings);

/* Returns the texts that no piece may have, because other tokens have them, and sets their number; NULL if there is no
 * memory. The caller frees the array, and the settings outlive it. */
struct train_text *unigram_write_forbidden(const struct train_settings *settings, uint32_t *count);

/* Makes the contents of the files, in the order of the list above. */
void unigram_write(struct growing *contents, const struct unigram_vocabulary *vocabulary,
                   const struct unigram_settings *unigram, const struct train_settings *settings);

#endif
