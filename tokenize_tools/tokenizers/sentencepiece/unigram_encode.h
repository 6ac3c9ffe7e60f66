/* SPDX-License-Identifier: MIT */
/*
 * unigram_encode.h - from text to ids with a unigram_model: the state of one thread.
 *
 * A state belongs to one thread at a time; any number of states share a model, which must outlive them.
 */
#ifndef TOKMAP_SENTENCEPIECE_UNIGRAM_ENCODE_H
#define TOKMAP_SENTENCEPIECE_UNIGRAM_ENCODE_H

#include "engine/text_engine.h"
#include "sp_encode.h"
#include "unigram_word.h"

struct unigram_state {
    struct sp_state sp; /* first */
    const struct unigram_model *model;
    struct unigram_path path;
    double sum;                                 /* of the tokens so far */
    bool unknown;                               /* the text so far ends with something unknown */
    struct bytes_buffer run;                    /* of tokenizers: all that is unknown at the end of the text so far */
    enum unigram_divided failure;               /* of a word; UNIGRAM_DIVIDED: none */
    uint32_t found[SCAN_BYTES + 2 * BPE_SLACK]; /* numbers that the caches have for a chunk */
};

/* Makes a state; free it with unigram_state_free(). *state is NULL on failure. variant: cpu_variant_best(); tests pass
 * lower ones. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status unigram_state_new(struct unigram_state **state, const struct unigram_model *model,
                                     enum cpu_variant variant, struct tokmap_error *error);
/* Frees a state; NULL is ignored. */
void unigram_state_free(struct unigram_state *state);

/* Appends the ids of a text. Nothing carries over from one call to the next. prefix: a space is put before the text.
 * `out` has room for three ids per byte, and three more with a prefix. Statuses: OK, ERROR_INPUT (a character is
 * unknown, and the model has no unknown token), ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status unigram_encode(struct unigram_state *state, const uint8_t *text, uint64_t count, bool prefix,
                                  struct ids_out *out, struct tokmap_error *error);

/* Finds where the ids of a text are (text_engine.h, `walk`). The text is divided again, since an unknown token does not
 * say what it stands for. Also returns false if memory ran out. */
bool unigram_walk(const struct unigram_model *model, const uint8_t *text, uint64_t count, enum engine_place place,
                  struct id_walk *walk);

#endif
