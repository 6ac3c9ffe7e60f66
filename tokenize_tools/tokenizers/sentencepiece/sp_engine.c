/* SPDX-License-Identifier: MIT */
/* sp_engine.c - the engine over a sp_model (text_engine.h). */
#include "sp_engine.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/cpu.h"
#include "common/error.h"
#include "sp_build.h"
#include "sp_encode.h"
#include "sp_walk.h"

static void engine_free(struct text_engine *engine)
{
    sp_model_free(((struct sp_engine *)engine)->model);
    free(engine);
}

static void engine_state_free(struct text_engine_state *state)
{
    sp_state_free((struct sp_state *)state);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    return sp_state_new((struct sp_state **)state, ((const struct sp_engine *)engine)->model, cpu_variant_best(),
                        error);
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    struct sp_state *own = (struct sp_state *)state;
    uint64_t written = 0;
    bool prefix;
    if (!sp_begins(own->model, place, &text, &count, &prefix))
        return TOKMAP_OK;
    const enum tokmap_status status =
        sp_encode(own, text, count, prefix, (uint8_t *)out->tokens + out->count * (out->wide ? 4 : 2),
                  out->room - out->count, &written, error);
    out->count += written;
    out->largest = max64(out->largest, own->pieces->largest);
    return status;
}

bool sp_engine_puts_space(const struct text_engine *engine)
{
    return ((const struct sp_engine *)engine)->model->front;
}

/* Text may only be cut before a space, because no space is put before a part that begins with one. It may not be cut
 * where a short text may be a token as a whole, nor where spaces at the ends of texts are removed. */
static bool engine_border(const struct text_engine *engine, uint8_t left, uint8_t right)
{
    const struct sp_model *model = ((const struct sp_engine *)engine)->model;
    const struct sp_cut_table *cuts = &model->cuts;
    return right == ' ' && model->escape && !model->remove_spaces && !model->suffix && !model->whole_longest &&
           !(cuts->left[0][left] & cuts->right[0][right]) && !(cuts->left[1][left] & cuts->right[1][right]);
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    return sp_walk(((const struct sp_engine *)engine)->model, text, count, place, walk);
}

/* ---- making an engine ---- */

static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_text = engine_text,
                                                    .id_bytes = pieces_id_bytes,
                                                    .puts_space = sp_engine_puts_space,
                                                    .may_cut = engine_border,
                                                    .walk = engine_walk};

enum tokmap_status sp_engine_make(struct text_engine **engine, const struct text_engine_kind *kind,
                                  struct sp_model *model, struct tokmap_error *error)
{
    struct sp_engine *made = calloc(1, sizeof *made);
    *engine = NULL;
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    *made = (struct sp_engine){{{kind}, &model->head}, model};
    *engine = &made->base.head;
    return TOKMAP_OK;
}

enum tokmap_status sp_engine_new(struct text_engine **engine, const struct sp_source *source,
                                 struct tokmap_error *error)
{
    struct sp_model *model;
    *engine = NULL;
    enum tokmap_status status = sp_model_build(&model, source, error);
    if (status)
        return status;
    status = sp_engine_make(engine, &engine_kind, model, error);
    if (status)
        sp_model_free(model);
    return status;
}
