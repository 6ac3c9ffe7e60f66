/* SPDX-License-Identifier: MIT */
/* tokenizer.c - passes calls on to the kind of a tokenizer, and holds what all kinds share. */
#include "tokenizer.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "tokenizer_kind.h"

enum tokmap_status tokenizer_share(struct tokenizer **shared, const struct tokenizer *tokenizer,
                                   enum tokmap_special special, struct tokmap_error *error)
{
    *shared = NULL;
    if (tokenizer->kind->share) {
        const enum tokmap_status status = tokenizer->kind->share(shared, tokenizer, special, error);
        if (!status)
            tokenizer_name_ends(*shared, tokenizer->info.eod_id, tokenizer->info.bos_id);
        return status;
    }
    return error_set_field(
        error, TOKMAP_ERROR_ARGUMENT, NULL, "special",
        " cannot be chosen, because the tokenizer '%s' finds no special tokens in text; leave it out",
        tokenizer->info.name);
}

void tokenizer_close(struct tokenizer *tokenizer)
{
    if (tokenizer)
        tokenizer->kind->close(tokenizer);
}

void tokenizer_name_ends(struct tokenizer *tokenizer, uint64_t eod_id, uint64_t bos_id)
{
    tokenizer->info.eod_id = eod_id;
    tokenizer->info.bos_id = bos_id;
}

struct tokenizer_info info_of_tokenizer(const struct tokenizer *tokenizer)
{
    return tokenizer->info;
}

static const struct tokenizer *innermost(const struct tokenizer *tokenizer)
{
    return tokenizer->inner ? tokenizer->inner : tokenizer;
}

uint64_t tokenizer_special(const struct tokenizer *tokenizer, const char *name)
{
    assert(name);
    tokenizer = innermost(tokenizer);
    return tokenizer->kind->special(tokenizer, name);
}

void tokenizer_added_at(const struct tokenizer *tokenizer, uint64_t index, struct tokmap_added_token *added)
{
    assert(index < tokenizer->info.added);
    tokenizer = innermost(tokenizer);
    tokenizer->kind->added_at(tokenizer, index, added);
}

uint64_t tokenizer_added_find(const struct tokenizer *tokenizer, const void *text, uint64_t bytes)
{
    struct tokmap_added_token added;
    for (uint64_t i = 0; i < tokenizer->info.added; i++) {
        tokenizer_added_at(tokenizer, i, &added);
        if (added.bytes == bytes && (!bytes || !memcmp(added.text, text, (size_t)bytes)))
            return added.id;
    }
    return TOKMAP_NO_ID;
}

uint64_t tokenizer_find(const struct tokenizer *tokenizer, const void *text, uint64_t bytes)
{
    const uint64_t added = tokenizer_added_find(tokenizer, text, bytes);
    const uint8_t *found;
    uint32_t count;
    if (added != TOKMAP_NO_ID)
        return added;
    for (uint64_t id = tokenizer->info.vocabulary; id-- > 0;)
        if (tokenizer_token(tokenizer, id, &found, &count) && count == bytes &&
            (!bytes || !memcmp(found, text, (size_t)bytes)))
            return id;
    return TOKMAP_NO_ID;
}

enum tokmap_status tokenizer_state_new(struct tokenizer_state **state, const struct tokenizer *tokenizer,
                                       struct tokmap_error *error)
{
    return tokenizer->kind->state_new(state, tokenizer, error);
}

void tokenizer_state_free(struct tokenizer_state *state)
{
    if (state)
        state->tokenizer->kind->state_free(state);
}

void tokenizer_state_stop(struct tokenizer_state *state, bool (*stop)(void *user), void *user)
{
    if (state->tokenizer->kind->state_stop)
        state->tokenizer->kind->state_stop(state, stop, user);
}

enum tokmap_status tokenizer_encode(struct tokenizer_state *state, const struct tokenizer_batch *batch,
                                    struct tokenizer_out *out, struct tokmap_error *error)
{
    assert(state->tokenizer->info.cuts || !batch->unfinished);
    assert(!batch->count || (batch->documents && out->ends));
    assert(out->tokens || !out->capacity);
    assert(state->tokenizer->info.width == 4 || !out->has_prefix || out->prefix <= UINT16_MAX);
    assert(state->tokenizer->info.width == 4 || !out->has_suffix || out->suffix <= UINT16_MAX);
    out->count = 0;
    out->largest = 0;
    out->failed = 0;
    return state->tokenizer->kind->encode(state, batch, out, error);
}

enum tokmap_status tokenizer_encode_marked(struct tokenizer_state *state, const struct tokmap_text *text,
                                           const struct tokenizer_mark *marks, uint64_t mark_count,
                                           struct tokenizer_out *out, struct tokenizer_place *places,
                                           struct tokmap_error *error)
{
    const struct tokenizer_batch batch = {.documents = text, .count = 1};
    assert(out->ends && (marks || !mark_count));
    for (uint64_t i = 0; i < mark_count; i++) {
        assert(marks[i].begin < marks[i].end && marks[i].end <= text->count);
        assert(i == 0 || marks[i].begin >= marks[i - 1].end);
    }
    if (!mark_count)
        return tokenizer_encode(state, &batch, out, error);
    out->count = out->largest = out->failed = 0;
    if (!state->tokenizer->kind->encode_marked)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the tokenizer '%s' has no special tokens; use one that has those of the text",
                         state->tokenizer->info.name);
    return state->tokenizer->kind->encode_marked(state, text, marks, mark_count, out, places, error);
}

enum tokmap_status tokenizer_decoder_new(struct tokenizer_decoder **decoder, const struct tokenizer *tokenizer,
                                         bool specials, struct tokmap_error *error)
{
    tokenizer = innermost(tokenizer);
    return tokenizer->kind->decoder_new(decoder, tokenizer, specials, error);
}

void tokenizer_decoder_free(struct tokenizer_decoder *decoder)
{
    if (decoder)
        decoder->tokenizer->kind->decoder_free(decoder);
}

void tokenizer_decoder_begin(struct tokenizer_decoder *decoder, bool resumed)
{
    if (decoder->tokenizer->kind->decoder_begin)
        decoder->tokenizer->kind->decoder_begin(decoder, resumed);
}

enum tokmap_status tokenizer_decoder_add(struct tokenizer_decoder *decoder, const void *tokens, uint64_t count,
                                         struct text_buffer *text, struct tokmap_error *error)
{
    assert(text->count <= text->capacity && (tokens || !count));
    return decoder->tokenizer->kind->decoder_add(decoder, tokens, count, text, error);
}

enum tokmap_status tokenizer_decoder_end(struct tokenizer_decoder *decoder, struct text_buffer *text,
                                         struct tokmap_error *error)
{
    const struct tokenizer_kind *kind = decoder->tokenizer->kind;
    assert(text->count <= text->capacity);
    const enum tokmap_status status = kind->decoder_end ? kind->decoder_end(decoder, text, error) : TOKMAP_OK;
    tokenizer_decoder_begin(decoder, false);
    return status;
}

uint64_t tokenizer_decoder_replaced(const struct tokenizer_decoder *decoder)
{
    return decoder->replaced;
}

bool tokenizer_token(const struct tokenizer *tokenizer, uint64_t id, const uint8_t **bytes, uint32_t *count)
{
    tokenizer = innermost(tokenizer);
    return id < tokenizer->info.vocabulary && tokenizer->kind->token(tokenizer, id, bytes, count);
}

uint64_t tokenizer_cut(const struct tokenizer *tokenizer, const char *text, uint64_t count)
{
    const uint64_t cut = tokenizer->kind->cut ? tokenizer->kind->cut(tokenizer, text, count) : 0;
    assert(cut <= count);
    return cut;
}

enum tokmap_status tokenizer_offsets(struct tokenizer_state *state, const struct tokmap_text *text,
                                     enum tokenizer_where where, const void *ids, uint64_t count, uint64_t *begins,
                                     uint64_t *ends, struct tokmap_error *error)
{
    assert((text->bytes || !text->count) && (ids || !count));
    const enum tokmap_status status =
        state->tokenizer->kind->offsets(state, text, where, ids, count, begins, ends, error);
    for (uint64_t i = 0; !status && i < count; i++) {
        assert(!begins || ((!i || begins[i - 1] <= begins[i]) && begins[i] <= (ends ? ends[i] : text->count)));
        assert(!ends || ((!i || ends[i - 1] <= ends[i]) && ends[i] <= text->count));
    }
    return status;
}

enum tokmap_status text_buffer_reserve(struct text_buffer *text, uint64_t more, struct tokmap_error *error)
{
    if (text->capacity - text->count >= more)
        return TOKMAP_OK;
    uint64_t wanted;
    if (add_overflows(text->count, more, &wanted) || wanted > SIZE_MAX / 2)
        return error_set_memory(error, "decoded text", more);
    wanted = max64(wanted, max64(4096, text->capacity + text->capacity / 2));
    char *grown = realloc(text->bytes, (size_t)wanted);
    if (!grown)
        return error_set_memory(error, "decoded text", wanted);
    text->bytes = grown;
    text->capacity = wanted;
    return TOKMAP_OK;
}

enum tokmap_status tokenizer_check_capacity(const struct tokenizer_batch *batch, const struct tokenizer_out *out,
                                            uint64_t ids_per_byte_most, struct tokmap_error *error)
{
    const uint64_t each = (uint64_t)out->has_prefix + (uint64_t)out->has_suffix;
    uint64_t wanted = 0, part;
    for (uint64_t i = 0; i < batch->count; i++)
        if (mul_overflows(batch->documents[i].count, ids_per_byte_most, &part) || add_overflows(part, each, &part) ||
            add_overflows(wanted, part, &wanted))
            wanted = UINT64_MAX;
    if (wanted > out->capacity)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "these documents may become %" PRIu64 " tokens, but there is room for %" PRIu64
                         "; encode fewer documents at once",
                         wanted, out->capacity);
    return TOKMAP_OK;
}
