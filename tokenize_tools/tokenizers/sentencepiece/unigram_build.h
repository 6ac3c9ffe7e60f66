/* SPDX-License-Identifier: MIT */
/* unigram_build.h - makes a unigram_model of what a loader has read, and the engine of a pipeline of it. */
#ifndef TOKMAP_SENTENCEPIECE_UNIGRAM_BUILD_H
#define TOKMAP_SENTENCEPIECE_UNIGRAM_BUILD_H

#include "engine/text_engine.h"
#include "unigram_model.h"

/* What a loader fills in. The memory stays the loader's. */
struct unigram_source {
    struct sp_source texts; /* with `scores`: sums and types of pieces as in SentencePiece; with `merges`, but 0 of
                               them, as in tokenizers: all pieces are found in text, also the unknown token and the
                               tokens of bytes */
    const double *scores;   /* by id */
    uint32_t lost;          /* so many of the last tokens become the unknown token */
    bool unknown_named;     /* with texts.scores: unknown characters in a row become the token of type SP_UNUSED that is
                               the text of them together, if there is one */
};

/* Builds a model. *out is NULL on failure. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status unigram_model_build(struct unigram_model **out, const struct unigram_source *source,
                                       struct tokmap_error *error);

/* Frees a model and all that it holds; NULL is ignored. No thread may use it any more. */
void unigram_model_free(struct unigram_model *model);

#define UNIGRAM_IDS_PER_BYTE 6 /* a text of one unknown space becomes the bytes of two "▁" */

/* Makes an engine. With source->texts.escape it makes spaces "▁" as the engine of sp_engine.h does. *engine is NULL on
 * failure. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status unigram_engine_new(struct text_engine **engine, const struct unigram_source *source,
                                      struct tokmap_error *error);

#endif
