/* SPDX-License-Identifier: MIT */
/*
 * pipeline_offsets.c - where the tokens of a text are.
 *
 * Encoding keeps no offsets, because most callers want none and the fast encoders would have to carry them. They are
 * found afterwards: the text goes through the pipeline again, but the engine does not merge. It walks along the text
 * and the ids, each of which stands for known bytes (text_engine.h, `walk`). What comes before the engine is run again
 * with a record of its changes, and each token is followed back through them:
 *
 *     ids of the engine's text -> pieces, whose steps may have changed text (pretokenizer_origin)
 *                              -> normalized text (struct text_edits, a list per step) -> the document
 *
 * Example, with a vocabulary that replaces spaces by U+2581 (3 bytes): "a b" is normalized to 5 bytes, of which [1,4)
 * were [1,2). The tokens "a" and U+2581 "b" are [0,1) and [1,5) of these, so [0,1) and [1,3) of the document.
 *
 * Every id is compared with the text, so ids of another text are noticed.
 */
#include "pipeline_offsets.h"

#include "common/error.h"

struct search {
    const struct pipeline_offsets *how;
    struct id_walk walk;
    uint64_t *begins, *ends;
    enum engine_place place; /* of the text that the engine walks along next */
    size_t segment;          /* beginning of the segment that is normalized now */
    const uint8_t *normalized;
    const uint8_t *text; /* text that the engine walks along */
    bool pieces;         /* true if it is a piece of the pre-tokenizer */
    uint32_t layers;     /* steps of the normalizer whose changes are in how->trace */
    struct tokmap_error *error;
};

static void put(struct search *own, uint64_t index, uint64_t begin, uint64_t end)
{
    if (own->begins)
        own->begins[index] = begin;
    if (own->ends)
        own->ends[index] = end;
}

/* Replaces a part of the normalized segment by the part of the document. */
static void denormalize(struct search *own, uint64_t *begin, uint64_t *end)
{
    for (uint32_t i = own->layers; i-- > 0;)
        text_edits_map(&own->how->trace[i], begin, end);
    *begin += own->segment;
    *end += own->segment;
}

/* Receives from the engine where a token is in the text that it walks along. */
static void token_found(void *user, uint64_t index, uint64_t begin, uint64_t end)
{
    struct search *own = user;
    const uint8_t *from = own->text + begin, *to = own->text + end;
    if (own->pieces)
        pretokenizer_origin(own->how->pretokenizer, &from, &to);
    begin = (uint64_t)(from - own->normalized);
    end = (uint64_t)(to - own->normalized);
    denormalize(own, &begin, &end);
    put(own, index, begin, end);
}

static enum tokmap_status refuse(const struct search *own)
{
    if (own->walk.at == own->walk.count)
        return error_set(own->error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                         "the text has more than the %" PRIu64 " ids that were passed in; pass the ids that this "
                         "tokenizer made of this text",
                         own->walk.count);
    return error_set(own->error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                     "ids[%" PRIu64 "] is %" PRIu32 ", which is not the token that this tokenizer finds there in the "
                     "text; pass the ids that it made of this text",
                     own->walk.at, id_walk_next(&own->walk));
}

static bool walk_text(struct search *own, const uint8_t *text, size_t count)
{
    const struct text_engine *engine = own->how->parts->engine;
    own->text = text;
    const bool good = engine->kind->walk(engine, text, count, own->place, &own->walk);
    own->place = ENGINE_INSIDE;
    return good;
}

static bool walk_piece(void *user, const uint8_t *text, size_t count)
{
    return walk_text(user, text, count);
}

/* Normalized text without added tokens. */
static enum tokmap_status search_plain(struct search *own, const uint8_t *text, size_t count)
{
    const struct pipeline_offsets *how = own->how;
    struct pretokenizer_state *state = how->pretokenizer;
    const struct text_engine_kind *engine = how->parts->engine->kind;
    /* An engine that encodes whole texts, too, walks along all pieces at once if they are the text. */
    const bool at_once = engine->encode_text && !engine->puts_space && pretokenizer_keeps(&how->parts->pretokenizer);
    if (!how->parts->pretokenizer.count || at_once)
        return walk_text(own, text, count) ? TOKMAP_OK : refuse(own);
    bool (*const emit)(void *, const uint8_t *, size_t) = state->emit;
    void *const user = state->user;
    state->emit = walk_piece;
    state->user = own;
    state->error = own->error;
    state->first = own->place == ENGINE_DOCUMENT_START;
    own->pieces = true;
    const bool good = pretokenizer_run(state, text, count);
    own->pieces = false;
    state->emit = emit;
    state->user = user;
    return good ? TOKMAP_OK : state->status ? state->status : refuse(own);
}

/* Takes the id of an added token. within: it was found in the spaces that the token before it took (rstrip), of which
 * that one keeps those before this one. */
static bool take_added(struct search *own, const struct added_token *token, uint64_t begin, uint64_t end, bool within)
{
    if (own->walk.at == own->walk.count || id_walk_next(&own->walk) != token->id)
        return false;
    if (within && own->ends)
        own->ends[own->walk.at - 1] = begin;
    put(own, own->walk.at++, begin, end);
    return true;
}

static enum tokmap_status search_segment(struct search *own, const uint8_t *text, size_t count)
{
    const struct pipeline_offsets *how = own->how;
    enum tokmap_status status = TOKMAP_OK;
    own->layers = how->parts->normalizer.count;
    if (own->layers) {
        how->normalizer->trace = how->trace;
        status = normalizer_run(how->normalizer, text, count, &text, &count, own->error);
        how->normalizer->trace = NULL;
    }
    own->normalized = text;
    if (status || (!count && how->parts->pretokenizer.count))
        return status;
    if (!how->normalized_pass || !count)
        return search_plain(own, text, count);
    struct added_split split;
    struct added_part part;
    added_split_begin(&split, how->parts->added, ADDED_NORMALIZED, how->specials, text, count);
    for (size_t done = 0; !status && added_split_next(&split, &part); done = part.to) {
        if (!part.token) {
            status = search_plain(own, text + part.from, part.to - part.from);
            continue;
        }
        uint64_t begin = part.from, end = part.to;
        denormalize(own, &begin, &end);
        if (!take_added(own, part.token, begin, end, part.from < done))
            status = refuse(own);
        own->place = ENGINE_INSIDE;
    }
    const enum tokmap_status ended = added_split_end(&split, own->error);
    return status ? status : ended;
}

static enum tokmap_status search_document(struct search *own, const uint8_t *text, size_t bytes)
{
    enum tokmap_status status = TOKMAP_OK;
    if (!own->how->raw_pass)
        return search_segment(own, text, bytes);
    struct added_split split;
    struct added_part part;
    added_split_begin(&split, own->how->parts->added, ADDED_RAW, own->how->specials, text, bytes);
    for (size_t done = 0; !status && added_split_next(&split, &part); done = part.to) {
        if (!part.token) {
            own->segment = part.from;
            status = search_segment(own, text + part.from, part.to - part.from);
            continue;
        }
        if (!take_added(own, part.token, part.from, part.to, part.from < done))
            status = refuse(own);
        own->place = ENGINE_SEGMENT_START;
    }
    const enum tokmap_status ended = added_split_end(&split, own->error);
    return status ? status : ended;
}

enum tokmap_status pipeline_offsets_find(const struct pipeline_offsets *how, const uint8_t *text, size_t bytes,
                                         enum tokenizer_where where, const void *ids, uint64_t count, uint64_t *begins,
                                         uint64_t *ends, struct tokmap_error *error)
{
    struct search own = {.how = how,
                         .walk = {.ids = ids, .wide = how->wide, .count = count, .found = token_found},
                         .begins = begins,
                         .ends = ends,
                         .place = where == TOKENIZER_RESUMES       ? ENGINE_INSIDE
                                  : where == TOKENIZER_AFTER_ADDED ? ENGINE_SEGMENT_START
                                                                   : ENGINE_DOCUMENT_START,
                         .error = error};
    own.walk.user = &own;
    const enum tokmap_status status = bytes ? search_document(&own, text, bytes) : TOKMAP_OK;
    if (how->parts->normalizer.count)
        normalizer_trim(how->normalizer);
    if (how->parts->pretokenizer.count)
        pretokenizer_trim(how->pretokenizer);
    return status || own.walk.at == count ? status : refuse(&own);
}
