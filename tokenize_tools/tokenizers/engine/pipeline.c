/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c - passes documents through the parts of a tokenizer.
 *
 *     document -> stretches -> raw added tokens -> normalizer -> normalized added tokens -> pre-tokenizer -> engine
 */
#include "pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "pipeline_cut.h"
#include "pipeline_offsets.h"
#include "text/code_point.h"
#include "tokenizer_kind.h"
#include "unicode/byte_alphabet.h"
#include "unicode/code_sets.h"

#define IDS_PER_BYTE_LIMIT 4096 /* callers could not provide memory for more */
#define PIECES_A_LOOK 4096      /* and added tokens, between two looks at whether to stop */
/* A long document goes through the pipeline in stretches of about this many bytes, cut where that does not change the
 * ids. What one part writes is then still in the cache when the next part reads it, and normalized text needs little
 * memory. */
#define STRETCH ((size_t)128 << 10)

struct pipeline {
    struct tokenizer head;
    struct pipeline_parts parts;
    enum tokmap_special special;
    bool raw_pass, normalized_pass; /* the pass can find added tokens */
    bool wide;                      /* ids have 4 bytes, otherwise 2 */
    struct pipeline_cuts cuts;
    bool borrowed; /* the parts belong to another tokenizer */
};

struct pipeline_state {
    struct tokenizer_state head;
    const struct pipeline *pipeline;
    struct text_engine_state *engine;
    struct normalizer_state normalizer;
    struct pretokenizer_state pretokenizer;
    struct text_edits trace[NORMALIZER_STEPS_MOST];
    struct ids_out ids;
    enum engine_place place;  /* of the text that the engine receives next */
    size_t done;              /* bytes of the document before the current stretch */
    bool (*stop)(void *user); /* or NULL */
    void *stop_user;
    uint32_t looks; /* pieces since the last look at `stop` */
    enum tokmap_status status;
    struct tokmap_error *error;
};

static void pipeline_close(struct tokenizer *tokenizer)
{
    struct pipeline *own = (struct pipeline *)tokenizer;
    if (!own->borrowed)
        pipeline_parts_free(&own->parts);
    free(own);
}

static void pipeline_state_free(struct tokenizer_state *state)
{
    struct pipeline_state *own = (struct pipeline_state *)state;
    if (own->engine)
        own->pipeline->parts.engine->kind->state_free(own->engine);
    normalizer_state_free(&own->normalizer);
    pretokenizer_state_free(&own->pretokenizer);
    for (uint32_t i = 0; i < NORMALIZER_STEPS_MOST; i++)
        text_edits_free(&own->trace[i]);
    free(own);
}

static void pipeline_state_stop(struct tokenizer_state *state, bool (*stop)(void *user), void *user)
{
    struct pipeline_state *own = (struct pipeline_state *)state;
    own->stop = stop;
    own->stop_user = user;
    own->pipeline->parts.engine->kind->state_stop(own->engine, stop, user);
    regexes_stop(own->normalizer.regexes, NORMALIZER_STEPS_MOST, stop, user);
    regexes_stop(own->pretokenizer.regexes, PRETOKENIZER_STEPS_MOST, stop, user);
}

/* Returns OK, or ERROR_INTERRUPTED if that is asked for. */
static enum tokmap_status look_at_stop(struct pipeline_state *own)
{
    own->looks = 0;
    return own->stop && own->stop(own->stop_user)
               ? error_set(own->error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
               : TOKMAP_OK;
}

/* Encodes what the pre-tokenizer emits. */
static bool encode_piece(void *user, const uint8_t *bytes, size_t count)
{
    struct pipeline_state *own = user;
    const struct pipeline_parts *parts = &own->pipeline->parts;
    const struct text_engine_kind *engine = parts->engine->kind;
    own->status = parts->engine_cuts ? engine->encode_text(own->engine, bytes, count, own->place, &own->ids, own->error)
                                     : engine->encode_piece(own->engine, bytes, count, &own->ids, own->error);
    own->place = ENGINE_INSIDE;
    if (++own->looks == PIECES_A_LOOK && !own->status)
        own->status = look_at_stop(own);
    return own->status == TOKMAP_OK;
}

static enum tokmap_status pipeline_state_new(struct tokenizer_state **state, const struct tokenizer *tokenizer,
                                             struct tokmap_error *error)
{
    const struct pipeline *pipeline = (const struct pipeline *)tokenizer;
    struct pipeline_state *made = calloc(1, sizeof *made);
    *state = NULL;
    if (!made)
        return error_set_memory(error, "the state of a tokenizer", sizeof *made);
    made->head.tokenizer = tokenizer;
    made->pipeline = pipeline;
    enum tokmap_status status = pipeline->parts.engine->kind->state_new(&made->engine, pipeline->parts.engine, error);
    if (!status)
        status = normalizer_state_init(&made->normalizer, &pipeline->parts.normalizer, error);
    if (!status)
        status = pretokenizer_state_init(&made->pretokenizer, &pipeline->parts.pretokenizer, error);
    if (status) {
        pipeline_state_free(&made->head);
        return status;
    }
    made->pretokenizer.emit = encode_piece;
    made->pretokenizer.user = made;
    made->ids.wide = pipeline->wide;
    *state = &made->head;
    return TOKMAP_OK;
}

/* ---- encoding ---- */

/* Encodes normalized text without added tokens. */
static enum tokmap_status encode_plain(struct pipeline_state *own, const uint8_t *text, size_t count)
{
    const struct pipeline_parts *parts = &own->pipeline->parts;
    if (!parts->pretokenizer.count) {
        (void)encode_piece(own, text, count);
        return own->status;
    }
    own->pretokenizer.error = own->error;
    own->pretokenizer.first = own->place == ENGINE_DOCUMENT_START;
    if (pretokenizer_run(&own->pretokenizer, text, count))
        return TOKMAP_OK;
    return own->pretokenizer.status ? own->pretokenizer.status : own->status;
}

static enum tokmap_status refuse_special(const struct pipeline_state *own, const struct added_token *token, size_t at)
{
    at += own->done;
    return error_set(own->error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                     "the document contains the text of the special token '%.*s' (about byte %zu); set "
                     "special to text or recognize to encode it",
                     (int)min64(token->bytes, 64), (const char *)token->text, at);
}

/* Encodes the added tokens that this pass finds in the text, and passes the texts between them to `rest`. */
static enum tokmap_status split_pass(struct pipeline_state *own, enum added_pass pass, const uint8_t *text,
                                     size_t count,
                                     enum tokmap_status (*rest)(struct pipeline_state *, const uint8_t *, size_t))
{
    struct added_split split;
    struct added_part part;
    enum tokmap_status status = TOKMAP_OK;
    const enum tokmap_special special = own->pipeline->special;
    added_split_begin(&split, own->pipeline->parts.added, pass, special != TOKMAP_SPECIAL_TEXT, text, count);
    while (!status && added_split_next(&split, &part)) {
        if (!part.token) {
            status = rest(own, text + part.from, part.to - part.from);
            continue;
        }
        if (part.token->special && special == TOKMAP_SPECIAL_ERROR) {
            status = refuse_special(own, part.token, part.from);
            break;
        }
        ids_append(&own->ids, part.token->id);
        if (++own->looks == PIECES_A_LOOK)
            status = look_at_stop(own);
        own->place = pass == ADDED_RAW ? ENGINE_SEGMENT_START : ENGINE_INSIDE;
    }
    const enum tokmap_status ended = added_split_end(&split, own->error);
    return status ? status : ended;
}

/* Encodes text without raw added tokens: normalizes it first. */
static enum tokmap_status encode_segment(struct pipeline_state *own, const uint8_t *text, size_t count)
{
    const struct pipeline *pipeline = own->pipeline;
    if (pipeline->parts.engine_raw && !pipeline->normalized_pass) {
        bool done;
        const enum tokmap_status status =
            pipeline->parts.engine->kind->encode_raw(own->engine, text, count, &own->ids, &done, own->error);
        if (status || done)
            return status;
    }
    if (pipeline->parts.normalizer.count) {
        own->normalizer.continues = own->place == ENGINE_INSIDE;
        const enum tokmap_status status = normalizer_run(&own->normalizer, text, count, &text, &count, own->error);
        own->normalizer.continues = false;
        if (status)
            return status;
    }
    if (!count) /* an engine may put a space before a text of which nothing is left */
        return pipeline->parts.pretokenizer.count ? TOKMAP_OK : encode_plain(own, text, count);
    return pipeline->normalized_pass ? split_pass(own, ADDED_NORMALIZED, text, count, encode_plain)
                                     : encode_plain(own, text, count);
}

/* Returns how many of the `left` bytes the next stretch takes: STRETCH or less, up to a cut; more if no cut is
 * found. */
static size_t stretch_bytes(const struct pipeline *pipeline, const uint8_t *text, size_t left)
{
    const bool several = pipeline->raw_pass || pipeline->parts.normalizer.count;
    for (size_t seen = STRETCH; several && pipeline->head.info.cuts && seen < left; seen *= 2) {
        const size_t cut = pipeline_cut(&pipeline->cuts, text, seen);
        if (cut)
            return cut;
    }
    return left;
}

/* Begins the account of what patterns may cost. */
static void begin_document(struct pipeline_state *own)
{
    regexes_document(own->normalizer.regexes, own->pipeline->parts.normalizer.count);
    regexes_document(own->pretokenizer.regexes, own->pipeline->parts.pretokenizer.count);
}

/* Frees memory that an unusually long document needed. */
static void end_document(struct pipeline_state *own)
{
    if (own->pipeline->parts.normalizer.count)
        normalizer_trim(&own->normalizer);
    if (own->pipeline->parts.pretokenizer.count)
        pretokenizer_trim(&own->pretokenizer);
}

static enum tokmap_status encode_document(struct pipeline_state *own, const struct tokmap_text *text, bool resumed)
{
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    enum tokmap_status status = TOKMAP_OK;
    begin_document(own);
    for (size_t at = 0, count; at < text->count && !status; at += count) {
        count = stretch_bytes(own->pipeline, bytes + at, (size_t)text->count - at);
        own->done = at;
        own->place = resumed || at ? ENGINE_INSIDE : ENGINE_DOCUMENT_START;
        status = own->pipeline->raw_pass ? split_pass(own, ADDED_RAW, bytes + at, count, encode_segment)
                                         : encode_segment(own, bytes + at, count);
    }
    end_document(own);
    return status;
}

/* Makes the caller's array the place of the next ids. */
static void ids_begin(struct pipeline_state *own, const struct tokenizer_out *out, struct tokmap_error *error)
{
    own->error = error;
    own->ids.tokens = out->tokens;
    own->ids.count = 0;
    own->ids.room = out->capacity;
    own->ids.largest = 0;
}

static enum tokmap_status pipeline_encode(struct tokenizer_state *state, const struct tokenizer_batch *batch,
                                          struct tokenizer_out *out, struct tokmap_error *error)
{
    struct pipeline_state *own = (struct pipeline_state *)state;
    enum tokmap_status status = tokenizer_check_capacity(batch, out, state->tokenizer->info.ids_per_byte_most, error);
    if (status)
        return status;
    ids_begin(own, out, error);
    for (uint64_t i = 0; i < batch->count && !status; i++) {
        const bool resumed = i == 0 && batch->resumed, unfinished = i + 1 == batch->count && batch->unfinished;
        if (out->has_prefix && !resumed)
            ids_append(&own->ids, out->prefix);
        status = encode_document(own, &batch->documents[i], resumed);
        if (out->has_suffix && !status && !unfinished)
            ids_append(&own->ids, out->suffix);
        out->ends[i] = own->ids.count;
        assert(own->ids.count <= own->ids.room); /* tokenizer_check_capacity has made sure of it */
        out->failed = i;                         /* used only if this document failed */
    }
    out->count = own->ids.count;
    out->largest = own->ids.largest;
    return status;
}

/* ---- text with marks ---- */

/* Returns how many bytes of white space are at the start of the text. */
static uint64_t spaces_at_start(const uint8_t *text, uint64_t count)
{
    uint64_t at = 0;
    size_t bytes;
    while (at < count && code_is_space(code_point_get(text + at, &bytes)))
        at += bytes;
    return at;
}

/* Encodes the text between two marks, bytes [from, to) of the document. */
static enum tokmap_status encode_between(struct pipeline_state *own, const uint8_t *bytes, uint64_t from, uint64_t to)
{
    if (from == to)
        return TOKMAP_OK;
    own->done = (size_t)from;
    own->place = from ? ENGINE_SEGMENT_START : ENGINE_DOCUMENT_START;
    return own->pipeline->raw_pass ? split_pass(own, ADDED_RAW, bytes + from, (size_t)(to - from), encode_segment)
                                   : encode_segment(own, bytes + from, (size_t)(to - from));
}

static enum tokmap_status encode_marks(struct pipeline_state *own, const struct tokmap_text *text,
                                       const struct tokenizer_mark *marks, uint64_t mark_count,
                                       struct tokenizer_place *places)
{
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    uint64_t at = 0;
    begin_document(own);
    for (uint64_t i = 0; i < mark_count; i++) {
        const struct tokenizer_mark *mark = &marks[i];
        const struct added_token *token = added_tokens_by_id(own->pipeline->parts.added, mark->id);
        if (!token)
            return error_set(own->error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "id %" PRIu32 " is not that of a special token", mark->id);
        const uint64_t end =
            token->lstrip ? at + code_spaces_trimmed(bytes + at, (size_t)(mark->begin - at)) : mark->begin;
        const enum tokmap_status status = encode_between(own, bytes, at, end);
        if (status)
            return status;
        const uint64_t index = own->ids.count;
        ids_append(&own->ids, mark->id);
        const uint64_t next = i + 1 < mark_count ? marks[i + 1].begin : text->count;
        at = mark->end + (token->rstrip ? spaces_at_start(bytes + mark->end, next - mark->end) : 0);
        if (places)
            places[i] = (struct tokenizer_place){index, end, at};
    }
    return encode_between(own, bytes, at, text->count);
}

static enum tokmap_status pipeline_encode_marked(struct tokenizer_state *state, const struct tokmap_text *text,
                                                 const struct tokenizer_mark *marks, uint64_t mark_count,
                                                 struct tokenizer_out *out, struct tokenizer_place *places,
                                                 struct tokmap_error *error)
{
    struct pipeline_state *own = (struct pipeline_state *)state;
    const struct tokenizer_batch batch = {.documents = text, .count = 1};
    enum tokmap_status status = tokenizer_check_capacity(&batch, out, state->tokenizer->info.ids_per_byte_most, error);
    if (status)
        return status;
    ids_begin(own, out, error);
    if (out->has_prefix)
        ids_append(&own->ids, out->prefix);
    status = encode_marks(own, text, marks, mark_count, places);
    if (out->has_suffix && !status)
        ids_append(&own->ids, out->suffix);
    end_document(own);
    assert(own->ids.count <= own->ids.room); /* tokenizer_check_capacity has made sure of it */
    out->ends[0] = out->count = own->ids.count;
    out->largest = own->ids.largest;
    return status;
}

static enum tokmap_status pipeline_offsets(struct tokenizer_state *state, const struct tokmap_text *text,
                                           enum tokenizer_where where, const void *ids, uint64_t count,
                                           uint64_t *begins, uint64_t *ends, struct tokmap_error *error)
{
    struct pipeline_state *own = (struct pipeline_state *)state;
    const struct pipeline *pipeline = own->pipeline;
    const struct pipeline_offsets how = {.parts = &pipeline->parts,
                                         .raw_pass = pipeline->raw_pass,
                                         .normalized_pass = pipeline->normalized_pass,
                                         .specials = pipeline->special != TOKMAP_SPECIAL_TEXT,
                                         .wide = pipeline->wide,
                                         .normalizer = &own->normalizer,
                                         .pretokenizer = &own->pretokenizer,
                                         .trace = own->trace};
    return pipeline_offsets_find(&how, (const uint8_t *)text->bytes, (size_t)text->count, where, ids, count, begins,
                                 ends, error);
}

/* ---- decoding ---- */

/* Returns the text of an id that only `texts` has, or NULL. */
static const struct pipeline_text *text_of(const struct pipeline_parts *parts, uint32_t id)
{
    uint32_t low = 0, high = parts->text_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (parts->texts[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < parts->text_count && parts->texts[low].id == id ? &parts->texts[low] : NULL;
}

static bool pipeline_token(const struct tokenizer *tokenizer, uint64_t wanted, const uint8_t **bytes, uint32_t *count)
{
    const struct pipeline_parts *parts = &((const struct pipeline *)tokenizer)->parts;
    const uint32_t id = (uint32_t)wanted;
    const struct added_token *added = added_tokens_by_id(parts->added, id);
    if (added) {
        *bytes = added->text;
        *count = added->bytes;
        return true;
    }
    if (parts->engine->kind->id_bytes(parts->engine, id, bytes, count))
        return true;
    const struct pipeline_text *text = text_of(parts, id);
    if (!text)
        return false;
    *bytes = text->text;
    *count = text->bytes;
    return true;
}

struct pipeline_decoder {
    struct tokenizer_decoder head;
    const struct pipeline_parts *parts;
    struct text_decoding *decoding;
    struct bytes_buffer spelled; /* the characters that stand for the bytes of a token, or the reverse */
};

static void pipeline_decoder_free(struct tokenizer_decoder *decoder)
{
    struct pipeline_decoder *own = (struct pipeline_decoder *)decoder;
    text_decoding_free(own->decoding);
    bytes_free(&own->spelled);
    free(own);
}

static enum tokmap_status pipeline_decoder_new(struct tokenizer_decoder **decoder, const struct tokenizer *tokenizer,
                                               bool specials, struct tokmap_error *error)
{
    struct pipeline_decoder *made = calloc(1, sizeof *made);
    *decoder = NULL;
    if (!made)
        return error_set_memory(error, "decoding", sizeof *made);
    made->head = (struct tokenizer_decoder){tokenizer, specials, 0};
    made->parts = &((const struct pipeline *)tokenizer)->parts;
    const enum tokmap_status status =
        text_decoding_new(&made->decoding, &made->parts->decoder, &made->head.replaced, error);
    if (status)
        pipeline_decoder_free(&made->head);
    else
        *decoder = &made->head;
    return status;
}

static void pipeline_decoder_begin(struct tokenizer_decoder *decoder, bool resumed)
{
    text_decoding_begin(((struct pipeline_decoder *)decoder)->decoding, resumed);
}

/* Writes the characters that stand for the bytes of a token. */
static bool spell(struct bytes_buffer *spelled, const uint8_t *bytes, uint32_t count)
{
    spelled->count = 0;
    if (!bytes_reserve(spelled, 2 * (size_t)count + 1))
        return false;
    for (uint32_t i = 0; i < count; i++)
        spelled->count += code_point_put(spelled->bytes + spelled->count, byte_character(bytes[i]));
    return true;
}

/* Text that the decoder receives for an id. */
struct spelling {
    const uint8_t *text;
    uint32_t count;
    enum decode_token kind;
    bool lacks_memory;
};

/* Adds what an added token decodes to: it may stand for bytes like any other token. */
static void added_spell(struct pipeline_decoder *own, const struct added_token *token, struct spelling *spelling)
{
    const struct pipeline_parts *parts = own->parts;
    size_t made = 0;
    *spelling = (struct spelling){token->decoded, token->decoded_bytes, DECODE_CONTROL, false};
    if (!parts->decoder.mapped)
        return;
    own->spelled.count = 0;
    spelling->lacks_memory = !bytes_reserve(&own->spelled, (size_t)token->decoded_bytes + 1);
    if (!spelling->lacks_memory && text_decoder_map(token->decoded, token->decoded_bytes, own->spelled.bytes, &made)) {
        spelling->text = own->spelled.bytes;
        spelling->count = (uint32_t)made;
    }
}

/* Finds what the decoder receives for an id. Returns false if the id is not in the vocabulary. */
static bool token_spell(struct pipeline_decoder *own, uint32_t id, struct spelling *spelling)
{
    const struct pipeline_parts *parts = own->parts;
    const struct text_decoder *decoder = &parts->decoder;
    const struct pipeline_text *other;
    *spelling = (struct spelling){.kind = DECODE_TEXT};
    if (parts->engine->kind->id_bytes(parts->engine, id, &spelling->text, &spelling->count)) {
        if (decoder->kinds)
            spelling->kind = (enum decode_token)decoder->kinds[id];
        if (decoder->texts && spelling->kind != DECODE_BYTE) {
            spelling->text = decoder->texts + decoder->offsets[id];
            spelling->count = decoder->offsets[id + 1] - decoder->offsets[id];
        } else if (decoder->spelled_bytes) {
            spelling->lacks_memory = !spell(&own->spelled, spelling->text, spelling->count);
            spelling->text = own->spelled.bytes;
            spelling->count = (uint32_t)own->spelled.count;
        }
        return true;
    }
    other = text_of(parts, id);
    if (other)
        *spelling = (struct spelling){other->text, other->bytes, DECODE_CONTROL, false};
    return other != NULL;
}

static enum tokmap_status id_decode(struct pipeline_decoder *own, uint32_t id, struct text_buffer *text,
                                    struct tokmap_error *error)
{
    const struct pipeline_parts *parts = own->parts;
    const struct added_token *added = added_tokens_by_id(parts->added, id);
    struct spelling spelling;
    if (added && added->hidden && !own->head.specials) {
        /* SentencePiece's decoder must know where such a token was; the others never see it. */
        if (!parts->decoder.kinds)
            return TOKMAP_OK;
        spelling = (struct spelling){(const uint8_t *)"", 0, DECODE_CONTROL, false};
    } else if (added) {
        added_spell(own, added, &spelling);
    } else if (!token_spell(own, id, &spelling)) {
        return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                         "id %" PRIu32 " is not in the vocabulary of the tokenizer '%s'; decode these ids with the "
                         "tokenizer that made them",
                         id, parts->name);
    }
    if (spelling.lacks_memory)
        return error_set_memory(error, "decoded text", spelling.count);
    return text_decoding_token(own->decoding, spelling.text, spelling.count, spelling.kind, text, error);
}

static enum tokmap_status pipeline_decoder_add(struct tokenizer_decoder *decoder, const void *tokens, uint64_t count,
                                               struct text_buffer *text, struct tokmap_error *error)
{
    struct pipeline_decoder *own = (struct pipeline_decoder *)decoder;
    const bool wide = ((const struct pipeline *)decoder->tokenizer)->wide;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        const uint8_t *token = (const uint8_t *)tokens + i * (wide ? 4 : 2);
        status = id_decode(own, wide ? load32(token) : load16(token), text, error);
    }
    return status;
}

static enum tokmap_status pipeline_decoder_end(struct tokenizer_decoder *decoder, struct text_buffer *text,
                                               struct tokmap_error *error)
{
    return text_decoding_end(((struct pipeline_decoder *)decoder)->decoding, text, error);
}

/* ---- tokens by name ---- */

/* Accepts the text itself ("<|endoftext|>"), or the name without its frame ("endoftext"; "s" for "<s>"). */
static uint64_t pipeline_special(const struct tokenizer *tokenizer, const char *name)
{
    const struct added_tokens *added = ((const struct pipeline *)tokenizer)->parts.added;
    const size_t wanted = strlen(name);
    for (size_t skip = 0; skip < 3; skip++)
        for (size_t i = 0; i < added_tokens_count(added); i++) {
            const struct added_token *token = added_tokens_at(added, i);
            const uint8_t *text = token->text;
            const size_t bytes = token->bytes;
            const bool framed = skip == 0 || (bytes > 2 * skip && text[0] == '<' && text[bytes - 1] == '>' &&
                                              (skip == 1 || (text[1] == '|' && text[bytes - 2] == '|')));
            if (framed && bytes == wanted + 2 * skip && !memcmp(text + skip, name, wanted))
                return token->id;
        }
    return TOKMAP_NO_ID;
}

static void pipeline_added_at(const struct tokenizer *tokenizer, uint64_t index, struct tokmap_added_token *added)
{
    const struct added_token *token = added_tokens_at(((const struct pipeline *)tokenizer)->parts.added, (size_t)index);
    const uint32_t flags = (uint32_t)token->lstrip | (uint32_t)token->rstrip << 1 | (uint32_t)token->single_word << 2;
    *added = (struct tokmap_added_token){
        sizeof *added, (const char *)token->text, token->bytes, token->id, token->special, flags};
}

/* ---- making ---- */

static uint64_t pipeline_cut_at(const struct tokenizer *tokenizer, const char *text, uint64_t count)
{
    const struct pipeline *own = (const struct pipeline *)tokenizer;
    return tokenizer->info.cuts ? pipeline_cut(&own->cuts, (const uint8_t *)text, (size_t)count) : 0;
}

static enum tokmap_status pipeline_share(struct tokenizer **shared, const struct tokenizer *tokenizer,
                                         enum tokmap_special special, struct tokmap_error *error);

static const struct tokenizer_kind pipeline_kind = {
    .close = pipeline_close,
    .share = pipeline_share,
    .state_new = pipeline_state_new,
    .state_free = pipeline_state_free,
    .state_stop = pipeline_state_stop,
    .encode = pipeline_encode,
    .encode_marked = pipeline_encode_marked,
    .offsets = pipeline_offsets,
    .decoder_new = pipeline_decoder_new,
    .decoder_free = pipeline_decoder_free,
    .decoder_begin = pipeline_decoder_begin,
    .decoder_add = pipeline_decoder_add,
    .decoder_end = pipeline_decoder_end,
    .token = pipeline_token,
    .special = pipeline_special,
    .added_at = pipeline_added_at,
    .cut = pipeline_cut_at,
};

static void info_fill(struct pipeline *own)
{
    struct tokenizer_info *info = &own->head.info;
    const struct pipeline_parts *parts = &own->parts;
    info->name = parts->name;
    info->form = parts->form;
    info->note = parts->note;
    info->scanner = parts->scanner;
    info->code_cuts = parts->code_cuts;
    info->frame = *parts->frame ? parts->frame : NULL;
    info->framed_eod = parts->framed_eod;
    info->vocabulary = parts->vocabulary;
    info->width = own->wide ? 4 : 2;
    info->eod_id = parts->eod == PIPELINE_NO_ID ? TOKMAP_NO_ID : parts->eod;
    info->bos_id = parts->bos == PIPELINE_NO_ID ? TOKMAP_NO_ID : parts->bos;
    info->ids_per_byte_most = (uint32_t)pipeline_parts_ids_per_byte(parts);
    info->added = added_tokens_count(parts->added);
    for (size_t i = 0; i < info->added; i++)
        info->specials += added_tokens_at(parts->added, i)->special;
    static const uint8_t none[16];
    const uint8_t recognizes =
        own->special == TOKMAP_SPECIAL_RECOGNIZE; /* the ids with 'error' are those with 'text' */
    const struct hash_part all[] = {{parts->fingerprint, 16}, {&recognizes, 1}, {parts->found, 16}};
    hash128_store(hash128_parts(all, recognizes && memcmp(parts->found, none, 16) ? 3 : 2), info->fingerprint);
}

static void pipeline_fill(struct pipeline *own, enum tokmap_special special)
{
    own->head.kind = &pipeline_kind;
    own->special = special;
    own->wide = own->parts.vocabulary > 65536;
    const bool specials = special != TOKMAP_SPECIAL_TEXT;
    own->raw_pass = added_tokens_any(own->parts.added, ADDED_RAW, specials);
    own->normalized_pass = added_tokens_any(own->parts.added, ADDED_NORMALIZED, specials);
    info_fill(own);
    own->head.info.cuts = pipeline_cuts_find(&own->cuts, &own->parts, specials);
}

static enum tokmap_status pipeline_share(struct tokenizer **shared, const struct tokenizer *tokenizer,
                                         enum tokmap_special special, struct tokmap_error *error)
{
    struct pipeline *own = calloc(1, sizeof *own);
    if (!own)
        return error_set_memory(error, "a tokenizer", sizeof *own);
    own->parts = ((const struct pipeline *)tokenizer)->parts;
    own->borrowed = true;
    pipeline_fill(own, special);
    *shared = &own->head;
    return TOKMAP_OK;
}

/* Gives the parts of a vocabulary that has no decoder one that joins the bytes of tokens, and takes off the space that
 * encoding has put before the text. Does nothing if parts->decoder_given. */
static void pipeline_decoder_make(struct pipeline_parts *parts)
{
    struct text_decoder *decoder = &parts->decoder;
    if (parts->decoder_given)
        return;
    assert(!decoder->count);
    decoder->steps[decoder->count++] = (struct decode_step){.kind = DECODE_LOSSY};
    if (parts->engine->kind->puts_space && parts->engine->kind->puts_space(parts->engine))
        decoder->steps[decoder->count++] = (struct decode_step){.kind = DECODE_STRIP, .character = ' ', .start = 1};
}

enum tokmap_status pipeline_new(struct tokenizer **tokenizer, struct pipeline_parts *parts, enum tokmap_special special,
                                const char *path, struct tokmap_error *error)
{
    assert(parts->engine && parts->vocabulary);
    struct pipeline *own = calloc(1, sizeof *own);
    *tokenizer = NULL;
    if (!own || pipeline_parts_ids_per_byte(parts) > IDS_PER_BYTE_LIMIT) {
        const enum tokmap_status status =
            own ? error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                            "this tokenizer is not supported: its normalizer can turn one byte of text into more than "
                            "%d tokens",
                            IDS_PER_BYTE_LIMIT)
                : error_set_memory(error, "a tokenizer", sizeof *own);
        free(own);
        pipeline_parts_free(parts);
        return status;
    }
    own->parts = *parts;
    memset(parts, 0, sizeof *parts);
    pipeline_decoder_make(&own->parts);
    pipeline_fill(own, special);
    *tokenizer = &own->head;
    return TOKMAP_OK;
}
