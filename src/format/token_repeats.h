/* SPDX-License-Identifier: MIT */
/* token_repeats.h - finds the tokens of a frame that repeat earlier ones of it, for zstd, which encodes what is found.
 * For one thread at a time. */
#ifndef TOKMAP_FORMAT_TOKEN_REPEATS_H
#define TOKMAP_FORMAT_TOKEN_REPEATS_H

#include <stddef.h>
#include <stdint.h>

#include "layout.h"
#include "platform/zstd_library.h"

#define TOKEN_REPEATS_LEVEL 6 /* of `tokmap seal`: at any other level, zstd finds what repeats */

#define TOKEN_REPEATS_LONG_BITS 14 /* of the hashes */
#define TOKEN_REPEATS_SHORT_BITS 15
#define TOKEN_REPEATS_SHORT 4 /* bytes of the shortest repeat */

/* The memory, about 480 KiB. */
struct token_repeats {
    ZSTD_Sequence list[FRAME_BYTES / TOKEN_REPEATS_SHORT + 1]; /* what token_repeats_find() found */
    uint16_t last_long[1 << TOKEN_REPEATS_LONG_BITS], last_short[1 << TOKEN_REPEATS_SHORT_BITS];
    uint16_t before_long[FRAME_BYTES / 2], before_short[FRAME_BYTES / 2];
};

/* Finds the repeats of `bytes` bytes of tokens, at least 1 and at most FRAME_BYTES, of 2 or 4 bytes each. Returns their
 * number in `list`, of which the last one has the bytes after all repeats, as ZSTD_sf_explicitBlockDelimiters asks. */
size_t token_repeats_find(struct token_repeats *repeats, const uint8_t *tokens, size_t bytes, uint32_t width);

#endif
