/* SPDX-License-Identifier: MIT */
/*
 * wordpiece_train.h - makes a WordPiece vocabulary from counted words, as Hugging Face's trainer does: by the merges of
 * byte pair encoding (train_merges.h), of characters. A character that does not begin a word, and what is made from
 * such characters, has "##" before it. Merging does not decide how the model cuts a word: it takes the longest pieces.
 *
 * The files are:
 *
 *     PREFIX.vocab.txt   one piece a line, by id
 *     PREFIX.json        a tokenizer.json of Hugging Face
 *
 * Ids: [UNK], characters in ascending order, then those with "##", merges, and special tokens.
 */
#ifndef TOKMAP_TRAIN_WORDPIECE_TRAIN_H
#define TOKMAP_TRAIN_WORDPIECE_TRAIN_H

#include "train_words.h"
#include "train_write.h"
#include "words/wp_characters.h"

#define WORDPIECE_FILES 2

/* What becomes of text before it is cut into words. */
struct wordpiece_settings {
    bool lower; /* letters become small, and lose their accents */
};

struct wordpiece_vocabulary {
    struct train_vocabulary merged; /* its token number i has the id i + 1 */
    uint32_t first_count;           /* tokens from this number on, up to `initial`, have "##" */
    uint8_t *continues;             /* by token number: whether it has "##" */
    struct train_text *texts;       /* of the initial tokens */
    uint8_t *bytes;                 /* `texts` points into this */
};

/* Counts the words of one whole document, which is valid UTF-8: those of a BertNormalizer and a BertPreTokenizer,
 * except that marks stay in the order of the text. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status wordpiece_count(const struct wp_characters *characters, struct train_counter *counter,
                                   const uint8_t *text, uint64_t count, struct tokmap_error *error);

/* Trains. The words are moved out of *pieces. options: `tokens` includes [UNK]; alphabet and forbidden are set here.
 * Free *vocabulary with wordpiece_vocabulary_free() in any case. Statuses: those of train_merges(), ERROR_ARGUMENT
 * (fewer tokens than characters). */
enum tokmap_status wordpiece_train(struct wordpiece_vocabulary *vocabulary, struct train_pieces *pieces,
                                   const struct train_characters *characters, const struct train_settings *settings,
                                   struct train_budget *budget, const struct train_options *options,
                                   struct tokmap_error *error);
void wordpiece_vocabulary_free(struct wordpiece_vocabulary *vocabulary);

/* Makes the contents of the files, in the order of the list above. */
void wordpiece_write(struct growing *contents, const struct wordpiece_vocabulary *vocabulary,
                     const struct wordpiece_settings *wordpiece, const struct train_settings *settings);

#endif
