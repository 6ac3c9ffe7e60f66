/* SPDX-License-Identifier: MIT */
/*
 * unigram_word.h - divides a word, for a cache or where it stands.
 */
#ifndef TOKMAP_SENTENCEPIECE_UNIGRAM_WORD_H
#define TOKMAP_SENTENCEPIECE_UNIGRAM_WORD_H

#include "bpe/bpe_merge.h"
#include "unigram_model.h"

/* A bpe_merge_function: divides a word whatever the sum before it is. The only number is model->fragile if the sum, or
 * an error, may decide. */
bpe_merge_function unigram_word;
/* A bpe_merge_many_function: divides several words, faster than one after the other. */
bpe_merge_many_function unigram_words;

/* Memory for unigram_divide(); zeros at first. */
struct unigram_path {
    uint32_t *ids; /* room + 1: the last token of the best division up to each place, or BPE_NONE */
    size_t room;   /* bytes of a word */
    void *sums;    /* of the places within reach of a token, by place modulo ring */
    size_t ring;
};
void unigram_path_free(struct unigram_path *path);
/* Frees memory that an unusually long word needed. */
void unigram_path_trim(struct unigram_path *path);

enum unigram_divided { UNIGRAM_DIVIDED, UNIGRAM_NO_MEMORY, UNIGRAM_STOPPED, UNIGRAM_NO_UNKNOWN };

/* Divides a word with the arithmetic of the reference. *sum: of the tokens before it, then with those of the word; a
 * sum of floats fits a float. *ids are the tokens, within `path`, or the model's `unknown`. Fails with
 * UNIGRAM_NO_UNKNOWN if the reference needs an unknown token, and the model has none. */
enum unigram_divided unigram_divide(const struct unigram_model *model, struct unigram_path *path,
                                    struct bpe_scratch *scratch, const uint8_t *text, size_t count, double *sum,
                                    const uint32_t **ids, size_t *id_count);

#endif
