/* SPDX-License-Identifier: MIT */
/*
 * byte_tokenizer.c - the byte tokenizer. It needs no file, encodes and decodes every text exactly, and a document can
 * be cut between any two characters.
 */
#include <stdlib.h>
#include <string.h>

#include "byte_tokenizer.h"

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "text/utf8.h"
#include "tokenizer_kind.h"
#include "widen.h"

#define BYTES_EOD 256
#define BYTES_VOCABULARY 257
#define BYTES_EOD_NAME "<|endoftext|>"

/* Everything that determines the ids. Its hash is the fingerprint, which indexes contain, so this text must never
 * change. */
static const char definition[] = "tokmap tokenizer bytes 1: ids 0-255 bytes, 256 " BYTES_EOD_NAME;

struct bytes_tokenizer {
    struct tokenizer head;
    uint8_t values[256]; /* 0 to 255: what the ids stand for */
};

struct bytes_state {
    struct tokenizer_state head;
    widen_function *widen;
};

static void bytes_close(struct tokenizer *tokenizer)
{
    free(tokenizer);
}

static enum tokmap_status bytes_state_new(struct tokenizer_state **state, const struct tokenizer *tokenizer,
                                          struct tokmap_error *error)
{
    struct bytes_state *made = malloc(sizeof *made);
    *state = NULL;
    if (!made)
        return error_set_memory(error, "the state of a tokenizer", sizeof *made);
    made->head.tokenizer = tokenizer;
    made->widen = widen_choose();
    *state = &made->head;
    return TOKMAP_OK;
}

static void bytes_state_free(struct tokenizer_state *state)
{
    free(state);
}

static enum tokmap_status bytes_encode(struct tokenizer_state *state, const struct tokenizer_batch *batch,
                                       struct tokenizer_out *out, struct tokmap_error *error)
{
    const struct bytes_state *own = (const struct bytes_state *)state;
    const enum tokmap_status status = tokenizer_check_capacity(batch, out, 1, error);
    if (status)
        return status;
    uint16_t *into = out->tokens;
    uint64_t at = 0;
    uint32_t largest = 0;
    for (uint64_t i = 0; i < batch->count; i++) {
        const struct tokmap_text *text = &batch->documents[i];
        if (out->has_prefix && !(batch->resumed && i == 0)) {
            into[at++] = (uint16_t)out->prefix;
            largest = out->prefix > largest ? out->prefix : largest;
        }
        const uint32_t found = own->widen(into + at, (const uint8_t *)text->bytes, text->count);
        largest = found > largest ? found : largest;
        at += text->count;
        if (out->has_suffix && !(batch->unfinished && i + 1 == batch->count)) {
            into[at++] = (uint16_t)out->suffix;
            largest = out->suffix > largest ? out->suffix : largest;
        }
        out->ends[i] = at;
    }
    out->count = at;
    out->largest = largest;
    return TOKMAP_OK;
}

static enum tokmap_status bytes_offsets(struct tokenizer_state *state, const struct tokmap_text *text,
                                        enum tokenizer_where where, const void *ids, uint64_t count, uint64_t *begins,
                                        uint64_t *ends, struct tokmap_error *error)
{
    uint64_t at = 0;
    while (at < count && at < text->count && load16((const uint8_t *)ids + 2 * at) == (uint8_t)text->bytes[at]) {
        if (begins)
            begins[at] = at;
        if (ends)
            ends[at] = at + 1;
        at++;
    }
    return at == count && at == text->count
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                           "the %" PRIu64 " ids are not those of the text, from ids[%" PRIu64 "] on; pass the ids that "
                           "this tokenizer made of this text",
                           count, at);
}

static enum tokmap_status bytes_decoder_new(struct tokenizer_decoder **decoder, const struct tokenizer *tokenizer,
                                            bool specials, struct tokmap_error *error)
{
    *decoder = malloc(sizeof **decoder);
    if (!*decoder)
        return error_set_memory(error, "decoding", sizeof **decoder);
    **decoder = (struct tokenizer_decoder){tokenizer, specials, 0};
    return TOKMAP_OK;
}

static void bytes_decoder_free(struct tokenizer_decoder *decoder)
{
    free(decoder);
}

static enum tokmap_status bytes_decode(struct tokenizer_decoder *decoder, const void *tokens, uint64_t count,
                                       struct text_buffer *text, struct tokmap_error *error)
{
    for (uint64_t done = 0; done < count;) {
        /* Most ids become one byte. The name of a special token is longer: room for it is reserved when it occurs. */
        const uint64_t part = min64(count - done, 4096);
        enum tokmap_status status = text_buffer_reserve(text, part, error);
        if (status)
            return status;
        for (const uint64_t end = done + part; done < end; done++) {
            const uint32_t id = load16((const uint8_t *)tokens + 2 * done);
            if (id < 256) {
                text->bytes[text->count++] = (char)id;
                continue;
            }
            if (id != BYTES_EOD)
                return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                                 "id %" PRIu32 " is not in the vocabulary of the tokenizer 'bytes' (0 to %d); decode "
                                 "these ids with the tokenizer that made them",
                                 id, BYTES_EOD);
            if (!decoder->specials)
                continue;
            const uint64_t name_bytes = sizeof BYTES_EOD_NAME - 1;
            status = text_buffer_reserve(text, name_bytes + (end - done), error);
            if (status)
                return status;
            memcpy(text->bytes + text->count, BYTES_EOD_NAME, name_bytes);
            text->count += name_bytes;
        }
    }
    return TOKMAP_OK;
}

static bool bytes_token(const struct tokenizer *tokenizer, uint64_t id, const uint8_t **bytes, uint32_t *count)
{
    *bytes = id < 256 ? &((const struct bytes_tokenizer *)tokenizer)->values[id] : (const uint8_t *)BYTES_EOD_NAME;
    *count = id < 256 ? 1 : sizeof BYTES_EOD_NAME - 1;
    return id <= BYTES_EOD;
}

static uint64_t bytes_special(const struct tokenizer *tokenizer, const char *name)
{
    static const char *const names[] = {BYTES_EOD_NAME, "endoftext", "eod"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i]))
            return BYTES_EOD;
    return TOKMAP_NO_ID;
}

static void bytes_added_at(const struct tokenizer *tokenizer, uint64_t index, struct tokmap_added_token *added)
{
    *added = (struct tokmap_added_token){sizeof *added, BYTES_EOD_NAME, sizeof BYTES_EOD_NAME - 1, BYTES_EOD, 1, 0};
}

static uint64_t bytes_cut(const struct tokenizer *tokenizer, const char *text, uint64_t count)
{
    return utf8_cut(text, (size_t)count);
}

static const struct tokenizer_kind bytes_kind = {
    .close = bytes_close,
    .state_new = bytes_state_new,
    .state_free = bytes_state_free,
    .encode = bytes_encode,
    .offsets = bytes_offsets,
    .decoder_new = bytes_decoder_new,
    .decoder_free = bytes_decoder_free,
    .decoder_add = bytes_decode,
    .token = bytes_token,
    .special = bytes_special,
    .added_at = bytes_added_at,
    .cut = bytes_cut,
};

enum tokmap_status byte_tokenizer_open(struct tokenizer **tokenizer, struct tokmap_error *error)
{
    struct bytes_tokenizer *own = calloc(1, sizeof *own);
    if (!own)
        return error_set_memory(error, "a tokenizer", sizeof *own);
    for (unsigned i = 0; i < 256; i++)
        own->values[i] = (uint8_t)i;
    struct tokenizer *made = &own->head;
    made->kind = &bytes_kind;
    made->info.name = "bytes";
    made->info.vocabulary = BYTES_VOCABULARY;
    made->info.width = 2;
    made->info.eod_id = BYTES_EOD;
    made->info.bos_id = TOKMAP_NO_ID;
    made->info.ids_per_byte_most = 1;
    made->info.form = "built in";
    made->info.scanner = "none: each byte is a token";
    made->info.added = made->info.specials = 1;
    made->info.cuts = made->info.cut_anywhere = true;
    hash128_store(hash128(definition, sizeof definition - 1), made->info.fingerprint);
    *tokenizer = made;
    return TOKMAP_OK;
}
