/* SPDX-License-Identifier: MIT */
/*
 * train_write.h - what is in the files of vocabularies, which other libraries read. Those of byte-level BPE:
 *
 *     PREFIX.specials.json   an object with the texts and ids of the special tokens; only if there are any
 *     PREFIX.tiktoken        a rank file, which has no special tokens
 *     PREFIX.json            a tokenizer.json of Hugging Face
 */
#ifndef TOKMAP_TRAIN_TRAIN_WRITE_H
#define TOKMAP_TRAIN_TRAIN_WRITE_H

#include "engine/growing.h"
#include "train_unigram.h"

#define TRAIN_WRITE_FILES 3

/* Everything in a tokenizer file that is not learned. Special tokens have the ids after the vocabulary, in order. */
struct train_settings {
    const char *pattern;               /* one of split_rules_names() */
    const struct train_text *specials; /* UTF-8 */
    uint32_t special_count;
};

/* Makes the contents of the files, in the order of the list above. */
void train_write(struct growing *contents, const struct train_vocabulary *vocabulary,
                 const struct train_settings *settings);

/* Appends the head of a tokenizer.json, up to its special tokens, a comma, and a line feed. zero: a special token with
 * the id 0, or NULL. first: the id of the first other one. */
void train_write_head(struct growing *g, const struct train_text *zero, uint64_t first,
                      const struct train_settings *settings);

/* Appends a tokenizer_config.json, in which transformers looks for the class and for what the special tokens mean.
 * unknown: the text of the token for what is unknown, or NULL. */
void train_write_config(struct growing *g, const char *unknown, const struct train_settings *settings);

/* Decodes a special token that is spelled entirely in the byte alphabet (unicode/byte_alphabet.h), as the tokens of a
 * tokenizer.json are. A learned token with the decoded bytes would have the same spelling in the file. Returns true and
 * writes *count bytes, or returns false if the text has another character or is empty. `into` has room for
 * special->count bytes. */
bool train_decode_spelling(const struct train_text *special, uint8_t *into, uint64_t *count);

/*
 * The files of a Unigram vocabulary:
 *
 *     PREFIX.model   a model of SentencePiece
 *     PREFIX.json    a tokenizer.json of Hugging Face
 *
 * Both have the same ids: <unk>, the 256 bytes if there are any, the pieces in descending order of their scores, and
 * the special tokens. They do not normalize text: they only write spaces as U+2581.
 */

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
