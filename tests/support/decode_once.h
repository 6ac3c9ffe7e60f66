/* SPDX-License-Identifier: MIT */
/* decode_once.h - decoding in one call, for tests: programs keep a decoder. */
#ifndef TESTS_SUPPORT_DECODE_ONCE_H
#define TESTS_SUPPORT_DECODE_ONCE_H

#include "engine/tokenizer.h"

/* Appends the text of `count` ids to *text. Statuses: those of the functions that it calls. */
static inline enum tokmap_status tokenizer_decode(const struct tokenizer *tokenizer, const void *tokens, uint64_t count,
                                                  bool specials, bool resumed, struct text_buffer *text,
                                                  struct tokmap_error *error)
{
    struct tokenizer_decoder *decoder;
    enum tokmap_status status = tokenizer_decoder_new(&decoder, tokenizer, specials, error);
    if (status)
        return status;
    tokenizer_decoder_begin(decoder, resumed);
    status = tokenizer_decoder_add(decoder, tokens, count, text, error);
    if (!status)
        status = tokenizer_decoder_end(decoder, text, error);
    tokenizer_decoder_free(decoder);
    return status;
}

#endif
