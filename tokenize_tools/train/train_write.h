/* SPDX-License-Identifier: MIT */
/*
 * train_write.h - what is in the files of a vocabulary, which other libraries read:
 *
 *     PREFIX.specials.json   an object with the texts and ids of the special tokens; only if there are any
 *     PREFIX.tiktoken        a rank file, which has no special tokens
 *     PREFIX.json            a tokenizer.json of Hugging Face
 */
#ifndef TOKMAP_TRAIN_TRAIN_WRITE_H
#define TOKMAP_TRAIN_TRAIN_WRITE_H

#include "engine/growing.h"
#include "train_merges.h"

/* Everything in a tokenizer file that is not learned. Special tokens have the ids after the vocabulary, in order. */
struct train_settings {
    const char *pattern;               /* one of split_rules_names() */
    const struct train_text *specials; /* UTF-8 */
    uint32_t special_count;
};

/* Makes the contents of the files, in the order of the list above. */
void train_write(struct growing *contents, const struct train_vocabulary *vocabulary,
                 const struct train_settings *settings);

/* Appends a tokenizer_config.json, in which transformers looks for the class and for what the special tokens mean. */
void train_write_config(struct growing *g, const struct train_settings *settings);

/* Decodes a special token that is spelled entirely in the byte alphabet (unicode/byte_alphabet.h), as the tokens of a
 * tokenizer.json are. A learned token with the decoded bytes would have the same spelling in the file. Returns true and
 * writes *count bytes, or returns false if the text has another character or is empty. `into` has room for
 * special->count bytes. */
bool train_decode_spelling(const struct train_text *special, uint8_t *into, uint64_t *count);

#endif
