/* SPDX-License-Identifier: MIT */
/* sp_engine.c - the engine over a sp_model (text_engine.h). */
#include "sp_engine.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"
#include "common/error.h"
#include "sp_build.h"
#include "sp_encode.h"

struct sp_engine {
    struct text_engine head;
    struct sp_model *model;
};

struct sp_engine_state {
    const struct sp_model *model;
    struct sp_state *state;
};

static void engine_free(struct text_engine *engine)
{
    sp_model_free(((struct sp_engine *)engine)->model);
    free(engine);
}

static void engine_state_free(struct text_engine_state *state)
{
    sp_state_free(((struct sp_engine_state *)state)->state);
    free(state);
}

static void engine_state_stop(struct text_engine_state *state, bool (*stop)(void *user), void *user)
{
    struct bpe_scratch *scratch = &((struct sp_engine_state *)state)->state->pieces->scratch;
    scratch->stop = stop;
    scratch->user = user;
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    struct sp_engine_state *made = malloc(sizeof *made);
    *state = NULL;
    if (!made)
        return error_set_memory(error, "the state of a tokenizer", sizeof *made);
    made->model = ((const struct sp_engine *)engine)->model;
    const enum tokmap_status status = sp_state_new(&made->state, made->model, cpu_variant_best(), error);
    if (status)
        free(made);
    else
        *state = (struct text_engine_state *)made;
    return status;
}

static bool begins_with_space(const struct sp_model *model, const uint8_t *text, uint64_t count)
{
    return text[0] == ' ' || (model->escape && count >= 3 && !memcmp(text, SP_MARK, 3));
}

/* Returns whether a space is put before a text, which is not empty. */
static bool wants_prefix(const struct sp_model *model, const uint8_t *text, uint64_t count, enum engine_place place)
{
    switch (model->prefix) {
    case SP_PREFIX_ALWAYS:
        return place != ENGINE_INSIDE;
    case SP_PREFIX_UNLESS:
        return !begins_with_space(model, text, count);
    case SP_PREFIX_FIRST:
        return place == ENGINE_DOCUMENT_START && !begins_with_space(model, text, count);
    case SP_PREFIX_NEVER:
    default:
        return false;
    }
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    struct sp_engine_state *own = (struct sp_engine_state *)state;
    const struct sp_model *model = own->model;
    uint64_t written = 0;
    if (!count)
        return TOKMAP_OK;
    const bool prefix = wants_prefix(model, text, count, place);
    const enum tokmap_status status =
        sp_encode(own->state, text, count, prefix, (uint8_t *)out->tokens + out->count * (out->wide ? 4 : 2),
                  out->room - out->count, &written, error);
    out->count += written;
    out->largest = max64(out->largest, own->state->pieces->largest);
    return status;
}

static bool engine_bytes(const struct text_engine *engine, uint32_t id, const uint8_t **bytes, uint32_t *count)
{
    const struct bpe_model *model = &((const struct sp_engine *)engine)->model->head;
    if (id >= model->vocabulary)
        return false;
    *bytes = model->bytes + model->offsets[id];
    *count = model->offsets[id + 1] - model->offsets[id];
    return *count != 0;
}

static bool engine_puts_space(const struct text_engine *engine)
{
    return ((const struct sp_engine *)engine)->model->front;
}

static void engine_measure(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                           struct tokenizer_measures *measures)
{
    const struct sp_engine_state *own = (const struct sp_engine_state *)state;
    struct bpe_state *pieces = own->state->pieces;
    for (uint64_t at = 0, bytes; at < count; at += bytes) {
        bytes = min64(count - at, SCAN_BYTES);
        (void)own->state->cut(&own->model->cuts, &own->model->head, text + at, bytes, count - at, pieces->chunk.starts);
    }
    *measures = (struct tokenizer_measures){pieces->counts.pieces, pieces->counts.missed, pieces->counts.merged};
}

/* Text may only be cut before a space, because no space is put before a part that begins with one. It may not be cut
 * where a short text may be a token as a whole, nor where spaces at the ends of texts are removed. */
static bool engine_border(const struct text_engine *engine, uint8_t left, uint8_t right)
{
    const struct sp_model *model = ((const struct sp_engine *)engine)->model;
    const struct sp_cut_table *cuts = &model->cuts;
    return right == ' ' && model->escape && !model->remove_spaces && !model->whole_longest &&
           !(cuts->left[0][left] & cuts->right[0][right]) && !(cuts->left[1][left] & cuts->right[1][right]);
}

/* ---- where the ids of a text are in it ----
 *
 * The model sees the text with changes: a space before it, U+2581 as a space, and with remove_spaces fewer spaces. The
 * walk makes these changes as it goes. Example, with a prefix and remove_spaces: the text "a  b" is " a b" to the
 * model, and the tokens " a" and " b" are [0,1) and [1,4) of the text: the second space, which was removed, is inside
 * of the token that has the first one.
 *
 * An unknown token says nothing of its text. It takes one character or, with fuse_unk, the characters without a token
 * up to where the next id fits. */

struct place {
    uint64_t at;
    bool prefix; /* the space before the text comes next */
};

struct walked {
    const struct sp_model *model;
    const uint8_t *text;
    uint64_t count; /* without the spaces that are removed from the end */
};

/* Skips spaces that remove_spaces removes. */
static void skip(const struct walked *own, struct place *place)
{
    const uint8_t *text = own->text;
    uint64_t at = place->at;
    while (own->model->remove_spaces && at < own->count && text[at] == ' ' && (!at || text[at - 1] == ' '))
        at++;
    place->at = at;
}

static bool is_mark(const struct walked *own, uint64_t at)
{
    return own->model->escape && own->count - at >= 3 && !memcmp(own->text + at, SP_MARK, 3);
}

/* Moves along the bytes of a token. *begin receives the first byte of the text that is part of it. Returns false if the
 * text is different. */
static bool match(const struct walked *own, const uint8_t *bytes, uint32_t length, struct place *place, uint64_t *begin)
{
    struct place now = *place;
    bool begun = false;
    for (uint32_t i = 0; i < length; i++) {
        skip(own, &now);
        if (now.prefix) {
            now.prefix = false;
            if (bytes[i] != ' ')
                return false;
            *begin = now.at;
            continue;
        }
        if (now.at >= own->count)
            return false;
        /* Tokens have spaces for U+2581 (sp_texts.c), also where the text keeps it. */
        const bool mark = own->count - now.at >= 3 && !memcmp(own->text + now.at, SP_MARK, 3);
        if ((mark ? ' ' : own->text[now.at]) != bytes[i])
            return false;
        if (!begun)
            *begin = now.at;
        begun = true;
        now.at += mark ? 3 : 1;
    }
    *place = now;
    return length != 0;
}

static bool match_id(const struct walked *own, uint32_t id, struct place *place, uint64_t *begin)
{
    const struct bpe_model *head = &own->model->head;
    return id < head->vocabulary &&
           match(own, head->bytes + head->offsets[id], head->offsets[id + 1] - head->offsets[id], place, begin);
}

/* Returns whether the next character has no token, and its length. */
static bool is_unknown(const struct walked *own, struct place place, uint32_t *length)
{
    const struct sp_model *model = own->model;
    *length = 0;
    if (!place.prefix && place.at >= own->count)
        return false;
    const uint32_t code = place.prefix || is_mark(own, place.at)
                              ? ' '
                              : sp_character(own->text + place.at, own->count - place.at, length);
    if (!place.prefix && !*length)
        *length = 3; /* a mark */
    const uint32_t symbol = model->atoms[code];
    return !symbol || (model->ids ? model->ids[symbol - 1] == BPE_NONE : symbol - 1 >= model->head.vocabulary);
}

/* Moves along what an unknown token stands for. */
static bool take_unknown(const struct walked *own, const struct id_walk *walk, struct place *place, uint64_t *begin)
{
    const bool fused = own->model->fuse_unk && !own->model->byte_fallback;
    uint32_t length;
    bool any = false;
    for (;; any = true) {
        skip(own, place);
        if (!is_unknown(own, *place, &length) || (any && !fused))
            return any;
        if (any && walk->at + 1 < walk->count) {
            struct id_walk rest = *walk;
            struct place next = *place;
            uint64_t unused;
            rest.at++;
            if (match_id(own, id_walk_next(&rest), &next, &unused))
                return true;
        }
        if (!any)
            *begin = place->at;
        place->prefix = false;
        place->at += length;
    }
}

/* Returns where the text ends without the spaces that are removed from its end. */
static uint64_t stripped_end(const struct sp_model *model, const uint8_t *text, uint64_t count)
{
    for (;;) {
        if (count && text[count - 1] == ' ')
            count--;
        else if (model->escape && count >= 3 && !memcmp(text + count - 3, SP_MARK, 3))
            count -= 3;
        else
            return count;
    }
}

/* Walks along a text, which is not empty, and the ids that sp_encode made of it. prefix: as in sp_encode. Returns false
 * if the next ids are not those of the text (text_engine.h, `walk`). */
static bool text_walk(const struct sp_model *model, const uint8_t *text, uint64_t count, bool prefix,
                      struct id_walk *walk)
{
    const struct walked own = {model, text, model->remove_spaces ? stripped_end(model, text, count) : count};
    struct place place = {0, prefix};
    uint64_t begin = 0;
    if (!own.count)
        return true; /* an empty text gets no space before it either */
    if (model->whole_bytes && !prefix && count == 6 && walk->at < walk->count &&
        sp_whole(model, text, (size_t)count) == id_walk_next(walk) && sp_byte_name(text, 6) >= 0) {
        walk->found(walk->user, walk->at++, 0, count);
        return true;
    }
    for (;; walk->at++) {
        skip(&own, &place);
        if (place.at >= own.count && !place.prefix)
            return true;
        if (walk->at == walk->count)
            return false;
        const uint32_t id = id_walk_next(walk);
        uint32_t length;
        if (id == model->unk && is_unknown(&own, place, &length)) {
            if (!take_unknown(&own, walk, &place, &begin))
                return false;
        } else if (!match_id(&own, id, &place, &begin)) {
            return false;
        }
        walk->found(walk->user, walk->at, begin, begin > place.at ? begin : place.at);
    }
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    const struct sp_model *model = ((const struct sp_engine *)engine)->model;
    return !count || text_walk(model, text, count, wants_prefix(model, text, count, place), walk);
}

/* ---- making an engine ---- */

static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = engine_state_stop,
                                                    .encode_text = engine_text,
                                                    .id_bytes = engine_bytes,
                                                    .puts_space = engine_puts_space,
                                                    .measure = engine_measure,
                                                    .may_cut = engine_border,
                                                    .walk = engine_walk};

enum tokmap_status sp_engine_new(struct text_engine **engine, const struct sp_source *source,
                                 struct tokmap_error *error)
{
    struct sp_engine *made = calloc(1, sizeof *made);
    *engine = NULL;
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    made->head.kind = &engine_kind;
    const enum tokmap_status status = sp_model_build(&made->model, source, error);
    if (status)
        free(made);
    else
        *engine = &made->head;
    return status;
}
