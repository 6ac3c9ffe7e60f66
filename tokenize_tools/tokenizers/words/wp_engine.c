/* SPDX-License-Identifier: MIT */
/* wp_engine.c - the engine over a wp_model (text_engine.h). */
#include "wp_engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/pieces_engine.h"
#include "common/cpu.h"
#include "common/error.h"
#include "wp_encode.h"

struct wp_engine {
    struct pieces_engine base;
    struct wp_model *model;
    struct wp_characters *characters; /* or NULL */
};

static void engine_free(struct text_engine *engine)
{
    struct wp_engine *own = (struct wp_engine *)engine;
    wp_model_free(own->model);
    wp_characters_free(own->characters);
    free(own);
}

static void engine_state_free(struct text_engine_state *state)
{
    wp_state_free((struct wp_state *)state);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    const struct wp_engine *own = (const struct wp_engine *)engine;
    return wp_state_new((struct wp_state **)state, own->model, own->characters, cpu_variant_best(), error);
}

static enum tokmap_status engine_piece(struct text_engine_state *state, const uint8_t *bytes, uint64_t count,
                                       struct ids_out *out, struct tokmap_error *error)
{
    return count ? wp_encode_word((struct wp_state *)state, bytes, count, out, error) : TOKMAP_OK;
}

static enum tokmap_status engine_raw(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                     struct ids_out *out, bool *done, struct tokmap_error *error)
{
    return wp_encode_text((struct wp_state *)state, text, count, out, done, error);
}

/* Walks along a word. The unknown token stands for all of it, and any other for its text, without the prefix where it
 * continues the word. */
static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    const struct wp_model *model = ((const struct wp_engine *)engine)->model;
    if (count && walk->at < walk->count && id_walk_next(walk) == model->unknown &&
        wp_is_unknown(model, text, (size_t)count)) {
        walk->found(walk->user, walk->at++, 0, count);
        return true;
    }
    for (uint64_t at = 0; at < count; walk->at++) {
        const uint8_t *bytes;
        uint32_t length;
        if (walk->at == walk->count || !pieces_id_bytes(engine, id_walk_next(walk), &bytes, &length))
            return false;
        const uint32_t skip = at ? model->prefix_bytes : 0;
        if (length <= skip || length - skip > count - at || memcmp(text + at, bytes + skip, length - skip) != 0)
            return false;
        walk->found(walk->user, walk->at, at, at + length - skip);
        at += length - skip;
    }
    return true;
}

static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_piece = engine_piece,
                                                    .encode_raw = engine_raw,
                                                    .id_bytes = pieces_id_bytes,
                                                    .walk = engine_walk};

enum tokmap_status wp_engine_new(struct text_engine **engine, const struct wp_source *source,
                                 const struct wp_rules *rules, struct tokmap_error *error)
{
    struct wp_engine *made = calloc(1, sizeof *made);
    *engine = NULL;
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    enum tokmap_status status = wp_model_new(&made->model, source, error);
    made->base = (struct pieces_engine){{&engine_kind}, &made->model->head};
    if (!status && rules)
        status = wp_characters_new(&made->characters, *rules, error);
    if (status)
        engine_free(&made->base.head);
    else
        *engine = &made->base.head;
    return status;
}
