/* SPDX-License-Identifier: MIT */
/* unigram_engine.c - the engine over a unigram_model (text_engine.h). */
#include "unigram_engine.h"

#include <stdlib.h>

#include "common/cpu.h"
#include "sp_engine.h"
#include "sp_walk.h"
#include "unigram_encode.h"

static struct unigram_model *model_of(const struct text_engine *engine)
{
    return (struct unigram_model *)((const struct sp_engine *)engine)->model;
}

static void engine_free(struct text_engine *engine)
{
    unigram_model_free(model_of(engine));
    free(engine);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    return unigram_state_new((struct unigram_state **)state, model_of(engine), cpu_variant_best(), error);
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
    if (!sp_begins(own->sp.model, place, &text, &count, &prefix))
        return TOKMAP_OK;
    return unigram_encode(own, text, count, prefix, out, error);
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    return unigram_walk(model_of(engine), text, count, place, walk);
}

/* may_cut is missing: the sum goes through the whole text, so parts of it could have other ids. */
static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_text = engine_text,
                                                    .id_bytes = pieces_id_bytes,
                                                    .puts_space = sp_engine_puts_space,
                                                    .walk = engine_walk};

enum tokmap_status unigram_engine_new(struct text_engine **engine, const struct unigram_source *source,
                                      struct tokmap_error *error)
{
    struct unigram_model *model;
    *engine = NULL;
    enum tokmap_status status = unigram_model_build(&model, source, error);
    if (status)
        return status;
    status = sp_engine_make(engine, &engine_kind, &model->sp, error);
    if (status)
        unigram_model_free(model);
    return status;
}
