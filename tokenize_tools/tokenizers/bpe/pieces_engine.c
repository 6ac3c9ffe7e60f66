/* SPDX-License-Identifier: MIT */
/* pieces_engine.c - see pieces_engine.h. */
#include "pieces_engine.h"

#include <stdlib.h>

#include "common/cpu.h"
#include "common/error.h"

bool pieces_id_bytes(const struct text_engine *engine, uint32_t id, const uint8_t **bytes, uint32_t *count)
{
    const struct bpe_model *model = ((const struct pieces_engine *)engine)->model;
    if (id >= model->vocabulary)
        return false;
    *bytes = model->bytes + model->offsets[id];
    *count = bpe_token_bytes(model, id);
    return *count != 0;
}

void pieces_state_stop(struct text_engine_state *state, bool (*stop)(void *user), void *user)
{
    struct bpe_scratch *scratch = &(*(struct bpe_state **)(void *)state)->scratch;
    scratch->stop = stop;
    scratch->user = user;
}

enum tokmap_status pieces_state_new(struct text_engine_state **state, size_t bytes, const struct bpe_model *model,
                                    struct tokmap_error *error)
{
    void *made = calloc(1, bytes);
    *state = NULL;
    if (!made)
        return error_set_memory(error, "the state of a tokenizer", bytes);
    const enum tokmap_status status = bpe_state_new(made, model, cpu_variant_best(), error);
    if (status)
        free(made);
    else
        *state = made;
    return status;
}
