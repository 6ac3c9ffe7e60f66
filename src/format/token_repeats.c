/* SPDX-License-Identifier: MIT */
/*
 * token_repeats.c - see token_repeats.h.
 *
 * zstd compares bytes at every position. A repeat of tokens begins and ends between tokens, so it is enough to look
 * there, at a half or a quarter of the positions, and the lengths, which are multiples of 2 or 4, take fewer bits.
 *
 * A first pass over the frame hashes the 8 bytes from each token on, and the first 4 of them, and notes for each token
 * the last earlier one with these 8 bytes, and with these 4. A second pass takes at each token the longer repeat of the
 * two last places with the same 8 bytes; else one of 4 bytes, unless the next token, of 2 bytes, begins one of 8. What
 * no earlier place has is a literal. For example, with tokens of 2 bytes:
 *
 *     position    0  1  2  3  4  5  6  7  8  9 10 11 12
 *     token       z  a  b  c  d  x  b  c  y  a  b  c  d
 *
 * At 6, the 4 bytes of b c are those at 2, and the 8 bytes from 7 on are new: 2 tokens from 4 before, after 6 literals.
 * At 9, the 8 bytes are those at 1: 4 tokens from 8 before, after the literal y.
 *
 * Position 0 stands for no place, so nothing repeats the first token. The longer a row of literals is, the more tokens
 * are passed over, because a text that has not repeated for long does not soon.
 */
#include "token_repeats.h"

#include <assert.h>

#include "common/bytes.h"

#define LONG 8      /* bytes that are hashed for long repeats */
#define TAIL 12     /* bytes at the end, where no repeat begins: enough for LONG at the next token */
#define PASS_OVER 6 /* so many bits of the bytes of literals do not count */
#define SHORT_FACTOR 0x9E3779B1u
#define LONG_FACTOR 0x9E3779B185EBCA87u

/* Forces a copy for each width, in which it is a constant. */
#define EACH_WIDTH static inline __attribute__((always_inline))

EACH_WIDTH void places_note(struct token_repeats *repeats, const uint8_t *tokens, size_t last, uint32_t width)
{
    memset(repeats->last_long, 0, sizeof repeats->last_long);
    memset(repeats->last_short, 0, sizeof repeats->last_short);
    for (size_t i = 0; i <= last; i++) {
        const uint64_t bytes = load64(tokens + i * width);
        uint16_t *last_long = &repeats->last_long[bytes * LONG_FACTOR >> (64 - TOKEN_REPEATS_LONG_BITS)];
        uint16_t *last_short = &repeats->last_short[(uint32_t)bytes * SHORT_FACTOR >> (32 - TOKEN_REPEATS_SHORT_BITS)];
        const bool long_same = load64(tokens + (size_t)*last_long * width) == bytes;
        const bool short_same = load32(tokens + (size_t)*last_short * width) == (uint32_t)bytes;
        repeats->before_long[i] = long_same ? *last_long : 0;
        repeats->before_short[i] = short_same ? *last_short : 0;
        *last_long = *last_short = (uint16_t)i;
    }
}

/* Returns how many bytes at two places are the same, of which the first `bytes` are known to be. The last 7 bytes of a
 * frame may count as different. */
EACH_WIDTH size_t same_bytes(const uint8_t *at, const uint8_t *from, size_t bytes, const uint8_t *end)
{
    for (; at + bytes + sizeof(uint64_t) <= end; bytes += sizeof(uint64_t)) {
        const uint64_t other = load64(at + bytes) ^ load64(from + bytes);
        if (other)
            return bytes + (size_t)__builtin_ctzll(other) / 8;
    }
    return bytes;
}

/* Returns the repeat of the last place before token i that has the same `bytes` bytes, or of the one before it if it is
 * longer; short repeats are rarely longer there. Its length is 0 if there is no such place. */
EACH_WIDTH ZSTD_Sequence repeat_find(const uint16_t *before, size_t bytes, const uint8_t *tokens, size_t i,
                                     uint32_t width, const uint8_t *end)
{
    const size_t first = before[i], second = bytes == LONG ? before[first] : 0;
    const uint8_t *at = tokens + i * width;
    const size_t length = first ? same_bytes(at, tokens + first * width, bytes, end) : 0;
    const size_t other = second ? same_bytes(at, tokens + second * width, bytes, end) : 0;
    const size_t most = other > length ? other : length;
    return (ZSTD_Sequence){.offset = (uint32_t)((i - (other > length ? second : first)) * width),
                           .matchLength = (uint32_t)(most - most % width)};
}

EACH_WIDTH size_t find(struct token_repeats *repeats, const uint8_t *tokens, size_t bytes, uint32_t width)
{
    const uint8_t *end = tokens + bytes, *literals = tokens;
    const size_t last = bytes > TAIL ? (bytes - TAIL) / width : 0;
    size_t count = 0;
    if (last)
        places_note(repeats, tokens, last, width);
    for (size_t i = 1; i < last;) {
        ZSTD_Sequence found = repeat_find(repeats->before_long, LONG, tokens, i, width, end);
        if (!found.matchLength) {
            found = repeat_find(repeats->before_short, TOKEN_REPEATS_SHORT, tokens, i, width, end);
            if (found.matchLength && width == 2 && repeats->before_long[i + 1])
                found = repeat_find(repeats->before_long, LONG, tokens, ++i, width, end);
        }
        found.litLength = (uint32_t)(tokens + i * width - literals);
        if (found.matchLength) {
            repeats->list[count++] = found;
            i += found.matchLength / width;
            literals = tokens + i * width;
        } else {
            i += 1 + (found.litLength >> PASS_OVER);
        }
    }
    repeats->list[count++] = (ZSTD_Sequence){.litLength = (uint32_t)(end - literals)};
    return count;
}

size_t token_repeats_find(struct token_repeats *repeats, const uint8_t *tokens, size_t bytes, uint32_t width)
{
    assert(bytes && bytes <= FRAME_BYTES && (width == 2 || width == 4));
    return width == 2 ? find(repeats, tokens, bytes, 2) : find(repeats, tokens, bytes, 4);
}
