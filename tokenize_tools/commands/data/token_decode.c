/* SPDX-License-Identifier: MIT */
#include "token_decode.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/visible.h"

#define PART 4096u /* tokens converted at a time */

/* Returns the index of the first token that the tokenizer does not have, or the number of tokens. */
static uint64_t unknown_find(const struct tokenizer *tokenizer, const struct token_list *list)
{
    const uint8_t *bytes;
    uint32_t count;
    uint64_t i = 0;
    while (i < list->count && tokenizer_token(tokenizer, id_load(list->tokens, list->width, i), &bytes, &count))
        i++;
    return i;
}

/* Converts up to PART tokens from `first` on, and decodes them. */
static enum tokmap_status part_decode(struct tokenizer_decoder *decoder, const struct tokenizer_info *info,
                                      const struct token_list *list, uint64_t first, struct text_buffer *text,
                                      struct tokmap_error *error)
{
    uint8_t part[4 * PART];
    const uint64_t count = min64(list->count - first, PART);
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t id = id_load(list->tokens, list->width, first + i);
        if (id >= info->vocabulary)
            return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                             "id %" PRIu32 " is not in the vocabulary of the tokenizer '%s'; decode these ids with the "
                             "tokenizer that made them",
                             id, info->name);
        if (info->width == 2)
            store16(part + 2 * i, (uint16_t)id);
        else
            store32(part + 4 * i, id);
    }
    return tokenizer_decoder_add(decoder, part, count, text, error);
}

enum tokmap_status token_decode(struct tokenizer_decoder *decoder, const struct tokenizer *tokenizer,
                                const struct token_list *list, struct text_buffer *text, uint64_t *unknown,
                                struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    if (list->width == info.width)
        status = tokenizer_decoder_add(decoder, list->tokens, list->count, text, error);
    else
        for (uint64_t first = 0; first < list->count && !status; first += PART)
            status = part_decode(decoder, &info, list, first, text, error);
    if (status == TOKMAP_ERROR_TOKEN)
        *unknown = unknown_find(tokenizer, list);
    return status;
}

enum tokmap_status token_decode_document(struct tokenizer_decoder *decoder, const struct tokenizer *tokenizer,
                                         const struct fim_marks *marks, struct fim_reader *reader,
                                         const struct token_list *list, struct text_buffer *text, uint64_t *unknown,
                                         struct tokmap_error *error)
{
    const uint8_t *tokens = list->tokens;
    fim_reader_begin(reader, marks);
    enum tokmap_status status = fim_reader_add(reader, list->tokens, list->width, list->count, error);
    if (!status)
        status = fim_reader_end(reader, error);
    tokenizer_decoder_begin(decoder, false);
    for (uint64_t i = 0; i < reader->count && !status; i++) {
        const uint64_t first = reader->extents[i].first_token;
        const struct token_list part = {tokens + first * list->width, list->width, reader->extents[i].tokens};
        status = token_decode(decoder, tokenizer, &part, text, unknown, error);
        *unknown += status ? first : 0;
    }
    return status ? status : tokenizer_decoder_end(decoder, text, error);
}

bool token_lists_equal(const struct token_list *a, const struct token_list *b)
{
    if (a->count != b->count)
        return false;
    if (a->width == b->width)
        return !a->count || !memcmp(a->tokens, b->tokens, (size_t)(a->count * a->width));
    for (uint64_t i = 0; i < a->count; i++)
        if (id_load(a->tokens, a->width, i) != id_load(b->tokens, b->width, i))
            return false;
    return true;
}

/* ---- one token ---- */

void token_quoted(const uint8_t *bytes, uint32_t count, FILE *file)
{
    (void)fputc('"', file);
    for (uint32_t at = 0, length; at < count; at += length) {
        bool plain;
        length = (uint32_t)visible_step((const char *)bytes + at, count - at, &plain);
        const uint8_t byte = bytes[at];
        if (byte == '\n' || byte == '\t' || byte == '\r')
            (void)fprintf(file, "\\%c", byte == '\n' ? 'n' : byte == '\t' ? 't' : 'r');
        else if (byte == '"' || byte == '\\')
            (void)fprintf(file, "\\%c", byte);
        else if (plain)
            (void)fwrite(bytes + at, 1, length, file);
        else
            for (uint32_t i = 0; i < length; i++)
                (void)fprintf(file, "\\x%02x", bytes[at + i]);
    }
    (void)fputc('"', file);
}
