/* SPDX-License-Identifier: MIT */
/* pipeline_decoder.c - finds what each id stands for, and passes it to the steps of the vocabulary's decoder. */
#include "pipeline_decoder.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"

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

bool pipeline_parts_token(const struct pipeline_parts *parts, uint32_t id, const uint8_t **bytes, uint32_t *count)
{
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
    bool wide; /* ids have 4 bytes, otherwise 2 */
    struct text_decoding *decoding;
    struct bytes_buffer spelled; /* the characters that stand for the bytes of a token, or the reverse */
};

void pipeline_decoder_free(struct tokenizer_decoder *decoder)
{
    struct pipeline_decoder *own = (struct pipeline_decoder *)decoder;
    text_decoding_free(own->decoding);
    bytes_free(&own->spelled);
    free(own);
}

enum tokmap_status pipeline_decoder_new(struct tokenizer_decoder **decoder, const struct tokenizer *tokenizer,
                                        const struct pipeline_parts *parts, bool wide, bool specials,
                                        struct tokmap_error *error)
{
    struct pipeline_decoder *made = calloc(1, sizeof *made);
    *decoder = NULL;
    if (!made)
        return error_set_memory(error, "decoding", sizeof *made);
    made->head = (struct tokenizer_decoder){tokenizer, specials, 0};
    made->parts = parts;
    made->wide = wide;
    const enum tokmap_status status = text_decoding_new(&made->decoding, &parts->decoder, &made->head.replaced, error);
    if (status)
        pipeline_decoder_free(&made->head);
    else
        *decoder = &made->head;
    return status;
}

void pipeline_decoder_begin(struct tokenizer_decoder *decoder, bool resumed)
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

enum tokmap_status pipeline_decoder_add(struct tokenizer_decoder *decoder, const void *tokens, uint64_t count,
                                        struct text_buffer *text, struct tokmap_error *error)
{
    struct pipeline_decoder *own = (struct pipeline_decoder *)decoder;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        const uint8_t *token = (const uint8_t *)tokens + i * (own->wide ? 4 : 2);
        status = id_decode(own, own->wide ? load32(token) : load16(token), text, error);
    }
    return status;
}

enum tokmap_status pipeline_decoder_end(struct tokenizer_decoder *decoder, struct text_buffer *text,
                                        struct tokmap_error *error)
{
    return text_decoding_end(((struct pipeline_decoder *)decoder)->decoding, text, error);
}

void pipeline_decoder_make(struct pipeline_parts *parts)
{
    struct text_decoder *decoder = &parts->decoder;
    if (parts->decoder_given)
        return;
    assert(!decoder->count);
    decoder->steps[decoder->count++] = (struct decode_step){.kind = DECODE_LOSSY};
    if (parts->engine->kind->puts_space && parts->engine->kind->puts_space(parts->engine))
        decoder->steps[decoder->count++] = (struct decode_step){.kind = DECODE_STRIP, .character = ' ', .start = 1};
}
