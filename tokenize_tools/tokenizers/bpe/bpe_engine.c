/* SPDX-License-Identifier: MIT */
/*
 * bpe_engine.c - the engine over a bpe_model (text_engine.h).
 *
 * Some vocabularies have no token for some bytes. Hugging Face tokenizers then drop such a byte inside its piece, and
 * its neighbors may merge. The scanner and the caches do not handle this. A text with such a byte, which is rare, is
 * cut piece by piece here instead.
 */
#include "bpe_engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_merge.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/cpu.h"
#include "common/error.h"
#include "pretokenize/scanner_piece.h"

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

struct bpe_engine {
    struct pieces_engine base;
    struct bpe_model *model;
    bool lacks_any, lacks[256]; /* bytes without a token */
};

struct bpe_engine_state {
    struct bpe_state *state;
    const struct bpe_engine *engine;
    struct bytes_buffer kept; /* a piece without the bytes that have no token */
};

static void engine_free(struct text_engine *engine)
{
    bpe_model_free(((struct bpe_engine *)engine)->model);
    free(engine);
}

static void engine_state_free(struct text_engine_state *state)
{
    struct bpe_engine_state *own = (struct bpe_engine_state *)state;
    bpe_state_free(own->state);
    bytes_free(&own->kept);
    free(own);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    const struct bpe_engine *own = (const struct bpe_engine *)engine;
    const enum tokmap_status status = pieces_state_new(state, sizeof(struct bpe_engine_state), own->model, error);
    if (!status)
        ((struct bpe_engine_state *)*state)->engine = own;
    return status;
}

/* Returns whether a text has a byte without a token. */
static bool lacks_one(const struct bpe_engine *engine, const uint8_t *text, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (engine->lacks[text[i]])
            return true;
    return false;
}

static enum tokmap_status engine_piece(struct text_engine_state *state, const uint8_t *bytes, uint64_t count,
                                       struct ids_out *out, struct tokmap_error *error)
{
    struct bpe_engine_state *own = (struct bpe_engine_state *)state;
    if (own->engine->lacks_any && lacks_one(own->engine, bytes, count)) {
        own->kept.count = 0;
        if (!bytes_reserve(&own->kept, count))
            return error_set_memory(error, "a piece of text", count);
        for (uint64_t i = 0; i < count; i++)
            if (!own->engine->lacks[bytes[i]])
                own->kept.bytes[own->kept.count++] = bytes[i];
        bytes = own->kept.bytes;
        count = own->kept.count;
    }
    if (!count)
        return TOKMAP_OK;
    uint64_t written = 0;
    own->state->largest = 0;
    const enum tokmap_status status = bpe_encode_piece(own->state, bytes, count, ids_end(out), &written, error);
    out->count += written;
    out->largest = max64(out->largest, own->state->largest);
    return status;
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    struct bpe_engine_state *own = (struct bpe_engine_state *)state;
    enum tokmap_status status = TOKMAP_OK;
    if (own->engine->lacks_any && lacks_one(own->engine, text, count)) {
        for (uint64_t at = 0, end; at < count && !status; at = end) {
            end = scan_piece(&own->engine->model->scanner.rules, text, at, count);
            status = engine_piece(state, text + at, end - at, out, error);
        }
        bytes_trim(&own->kept);
        return status;
    }
    uint64_t written = 0;
    own->state->largest = 0;
    status = bpe_encode(own->state, text, count, ids_end(out), out->room - out->count, &written, error);
    out->count += written;
    out->largest = max64(out->largest, own->state->largest);
    return status;
}

/* Returns true for a border, because all rules cut at the borders that pipeline_cut.c asks for. */
static bool engine_border(const struct text_engine *engine, uint8_t left, uint8_t right)
{
    return true;
}

/* Bytes without a token are not part of any id: they are skipped between and inside the texts of ids. */
static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    const struct bpe_engine *own = (const struct bpe_engine *)engine;
    uint64_t at = 0;
    for (;; walk->at++) {
        const uint8_t *bytes;
        uint32_t length, same = 0;
        while (at < count && own->lacks[text[at]])
            at++;
        if (at == count)
            return true;
        const uint64_t begin = at;
        if (walk->at == walk->count || !pieces_id_bytes(engine, id_walk_next(walk), &bytes, &length))
            return false;
        if (!own->lacks_any) {
            if (length > count - at || memcmp(text + at, bytes, length) != 0)
                return false;
            at += length;
        }
        for (; own->lacks_any && same < length; at++)
            if (at == count || (!own->lacks[text[at]] && text[at] != bytes[same++]))
                return false;
        walk->found(walk->user, walk->at, begin, at);
    }
}

enum tokmap_status bpe_engine_new(struct text_engine **engine, struct bpe_model *model, struct tokmap_error *error)
{
    static const struct text_engine_kind kind = {.free = engine_free,
                                                 .state_new = engine_state_new,
                                                 .state_free = engine_state_free,
                                                 .state_stop = pieces_state_stop,
                                                 .encode_text = engine_text,
                                                 .encode_piece = engine_piece,
                                                 .id_bytes = pieces_id_bytes,
                                                 .may_cut = engine_border,
                                                 .walk = engine_walk};
    struct bpe_engine *made = calloc(1, sizeof *made);
    assert(model);
    *engine = NULL;
    if (!made) {
        bpe_model_free(model);
        return error_set_memory(error, "a tokenizer", sizeof *made);
    }
    made->base = (struct pieces_engine){{&kind}, model};
    made->model = model;
    for (uint32_t byte = 0; byte < 256; byte++) {
        made->lacks[byte] = model->byte_ids[byte] == BPE_NONE;
        made->lacks_any |= made->lacks[byte];
    }
    *engine = &made->base.head;
    return TOKMAP_OK;
}
