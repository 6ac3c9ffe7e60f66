/* SPDX-License-Identifier: MIT */
/* unigram_engine.c - the engine over a unigram_model (text_engine.h). */
#include "unigram_engine.h"

#include <stdlib.h>

#include "bpe/pieces_engine.h"
#include "common/cpu.h"
#include "common/error.h"
#include "sentencepiece/sp_encode.h"
#include "sentencepiece/sp_walk.h"
#include "unigram_encode.h"

struct unigram_engine {
    struct pieces_engine base;
    struct unigram_model *model;
};

static const struct sp_model *texts_of(const struct text_engine *engine)
{
    return &((const struct unigram_engine *)engine)->model->sp;
}

static void engine_free(struct text_engine *engine)
{
    unigram_model_free(((struct unigram_engine *)engine)->model);
    free(engine);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    return unigram_state_new((struct unigram_state **)state, ((const struct unigram_engine *)engine)->model,
                             cpu_variant_best(), error);
}

static void engine_state_free(struct text_engine_state *state)
{
    unigram_state_free((struct unigram_state *)state);
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    struct unigram_state *own = (struct unigram_state *)state;
    bool prefix;
    if (!sp_begins(&own->model->sp, place, &text, &count, &prefix))
        return TOKMAP_OK;
    return unigram_encode(own, text, count, prefix, out, error);
}

static bool engine_puts_space(const struct text_engine *engine)
{
    return texts_of(engine)->front;
}

static void engine_measure(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                           struct tokenizer_measures *measures)
{
    const struct unigram_state *own = (const struct unigram_state *)state;
    sp_measure(&own->model->sp, own->pieces, own->cut, text, count, measures);
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    return unigram_walk(((const struct unigram_engine *)engine)->model, text, count, place, walk);
}

/* may_cut is missing: the sum goes through the whole text, so parts of it could have other ids. */
static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_text = engine_text,
                                                    .id_bytes = pieces_id_bytes,
                                                    .puts_space = engine_puts_space,
                                                    .measure = engine_measure,
                                                    .walk = engine_walk};

enum tokmap_status unigram_engine_new(struct text_engine **engine, const struct unigram_source *source,
                                      struct tokmap_error *error)
{
    struct unigram_engine *made = calloc(1, sizeof *made);
    *engine = NULL;
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    const enum tokmap_status status = unigram_model_build(&made->model, source, error);
    if (status) {
        free(made);
        return status;
    }
    made->base = (struct pieces_engine){{&engine_kind}, &made->model->sp.head};
    *engine = &made->base.head;
    return TOKMAP_OK;
}
