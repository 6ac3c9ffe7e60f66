/* SPDX-License-Identifier: MIT */
/* token_decode.h - the tokens of a dataset in memory, and their text. Their width need not be that of the tokenizer's
 * ids. */
#ifndef TOKMAP_COMMANDS_DATA_TOKEN_DECODE_H
#define TOKMAP_COMMANDS_DATA_TOKEN_DECODE_H

#include <stdint.h>
#include <stdio.h>

#include "common/bytes.h"
#include "encode/fim.h"
#include "engine/tokenizer.h"

/* Returns the id of token i; `width` is its bytes, 2 or 4. */
static inline uint32_t id_load(const void *tokens, uint32_t width, uint64_t i)
{
    const uint8_t *token = (const uint8_t *)tokens + i * width;
    return width == 2 ? load16(token) : load32(token);
}

/* Stores tokens of 4 bytes as ones of 2, or of 2 as ones of 4. width: the new one. */
static inline void ids_convert(void *into, uint32_t width, const void *from, uint64_t count)
{
    uint8_t *to = into;
    const uint8_t *at = from, *end = at + count * (6 - width);
    for (; width == 2 && at < end; at += 4, to += 2)
        store16(to, (uint16_t)load32(at));
    for (; width == 4 && at < end; at += 2, to += 4)
        store32(to, load16(at));
}

/* Tokens in memory, little-endian, with any alignment. */
struct token_list {
    const void *tokens;
    uint32_t width; /* bytes of a token: 2 or 4 */
    uint64_t count;
};

/* tokenizer_decoder_add() for tokens of any width. decoder: one of `tokenizer`. With ERROR_TOKEN, *unknown is the index
 * of the first token that the tokenizer does not have. Statuses: as tokenizer_decoder_add(). */
enum tokmap_status token_decode(struct tokenizer_decoder *decoder, const struct tokenizer *tokenizer,
                                const struct token_list *list, struct text_buffer *text, uint64_t *unknown,
                                struct tokmap_error *error);

/* Decodes the tokens of a document in the order of its text, which `pack --fim` may have rearranged, and appends all of
 * it. marks: of the document's shard; reader: begins as zeros, and is freed by the caller. Statuses: as token_decode().
 */
enum tokmap_status token_decode_document(struct tokenizer_decoder *decoder, const struct tokenizer *tokenizer,
                                         const struct fim_marks *marks, struct fim_reader *reader,
                                         const struct token_list *list, struct text_buffer *text, uint64_t *unknown,
                                         struct tokmap_error *error);

/* Returns whether two lists have the same ids. */
bool token_lists_equal(const struct token_list *a, const struct token_list *b);

/* ---- one token ---- */

/* Writes the text of a token in quotes. What a terminal does not show as itself is escaped: control characters, and
 * bytes that are not UTF-8, such as parts of a character. */
void token_quoted(const uint8_t *bytes, uint32_t count, FILE *file);

#endif
