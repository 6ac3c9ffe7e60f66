/* SPDX-License-Identifier: MIT */
/*
 * token_repeats.c - see token_repeats.h.
 *
 * zstd compares bytes at every position. A repeat of tokens begins and ends between tokens, so it is enough to look
 * there, at a half or a quarter of the positions, and the lengths, which are multiples of 2 or 4, take fewer bits.
 *
 * A first pass over the frame hashes the 8 bytes from each token on, and the first 4 of them, and notes for each token
 * the last earlier one with the same hash. A second pass takes at each token the longer repeat of the two last places
 * with the same 8 bytes; else one of 4 bytes, unless the next token, of 2 bytes, begins one of 8. What no earlier place
 * has is a literal. For example, with tokens of 2 bytes:
 *
 *     position    0  1  2  3  4  5  6  7  8  9 10 11
 *     token       a  b  c  d  x  b  c  y  a  b  c  d
 *
 * At 5, the 4 bytes of b c are those at 1, and the 8 bytes from 6 on are new: 2 tokens from 4 before, after 5 literals.
 * At 8, the 8 bytes are those at 0: 4 tokens from 8 before, after the literal y.
 *
 * The first token is never compared, so position 0 stands for no place, too: bytes are always compared, not hashes. The
 * longer a row of literals is, the more tokens are passed over, because what does not repeat is rarely short.
 */
#include "token_repeats.h"

#include <assert.h>

#include "common/bytes.h"

#define LONG 8          /* bytes that are hashed for long repeats */
#define TAIL 12         /* bytes at the end, where no repeat begins: enough for LONG at the next token */
#define PASS_OVER 6     /* so many bits of the bytes of literals do not count */
#define SHORT_FACTOR 0x9E3779B1u
#define LONG_FACTOR 0x9E3779B185EBCA87u

struct repeat {
    size_t bytes; /* 0: there is none */
    const uint8_t *from;
};

static inline __attribute__((always_inline)) void places_note(struct token_repeats *repeats, const uint8_t *tokens, size_t last, uint32_t width)
{
    memset(repeats->last_long, 0, sizeof repeats->last_long);
    memset(repeats->last_short, 0, sizeof repeats->last_short);
    for (size_t i = 0; i <= last; i++) {
        const uint64_t bytes = load64(tokens + i * width);
        uint16_t *last_long = &repeats->last_long[bytes * LONG_FACTOR >> (64 - TOKEN_REPEATS_LONG_BITS)];
        uint16_t *last_short =
            &repeats->last_short[(uint32_t)bytes * SHORT_FACTOR >> (32 - TOKEN_REPEATS_SHORT_BITS)];
        repeats->before_long[i] = *last_long;
        repeats->before_short[i] = *last_short;
        *last_long = *last_short = (uint16_t)i;
    }
}

/* Returns how many bytes are the same, where `bytes` are. */
static inline __attribute__((always_inline)) size_t same_bytes(const uint8_t *at, const uint8_t *from, size_t bytes, const uint8_t *end)
{
    for (; at + bytes + 8 <= end; bytes += 8) {
        const uint64_t other = load64(at + bytes) ^ load64(from + bytes);
        if (other)
            return bytes + (size_t)__builtin_ctzll(other) / 8;
    }
    while (at + bytes < end && at[bytes] == from[bytes])
        bytes++;
    return bytes;
}

static inline __attribute__((always_inline)) struct repeat long_find(const struct token_repeats *repeats, const uint8_t *tokens, size_t i, uint32_t width,
                               const uint8_t *end)
{
    const uint8_t *at = tokens + i * width, *from = tokens + (size_t)repeats->before_long[i] * width;
    const uint8_t *second = tokens + (size_t)repeats->before_long[repeats->before_long[i]] * width;
    if (load64(from) != load64(at))
        return (struct repeat){0, NULL};
    const size_t bytes = same_bytes(at, from, LONG, end);
    if (second == from || load64(second) != load64(at))
        return (struct repeat){bytes, from};
    const size_t more = same_bytes(at, second, LONG, end);
    return more > bytes ? (struct repeat){more, second} : (struct repeat){bytes, from};
}

static inline __attribute__((always_inline)) size_t find(struct token_repeats *repeats, const uint8_t *tokens, size_t bytes, uint32_t width)
{
    const uint8_t *end = tokens + bytes, *literals = tokens;
    const size_t last = bytes > TAIL ? (bytes - TAIL) / width : 0;
    size_t count = 0;
    if (last)
        places_note(repeats, tokens, last, width);
    for (size_t i = 1; i < last;) {
        struct repeat found = long_find(repeats, tokens, i, width, end);
        if (!found.bytes) {
            const uint8_t *at = tokens + i * width, *from = tokens + (size_t)repeats->before_short[i] * width;
            const uint64_t other = load64(at) ^ load64(from);
            if ((uint32_t)other) {
                i += 1 + ((size_t)(at - literals) >> PASS_OVER);
                continue;
            }
            found = (struct repeat){other ? (size_t)__builtin_ctzll(other) / 8 : LONG, from};
            const struct repeat next =
                width == 2 ? long_find(repeats, tokens, i + 1, width, end) : (struct repeat){0, NULL};
            if (next.bytes) {
                found = next;
                i++;
            }
        }
        const uint8_t *at = tokens + i * width;
        found.bytes -= found.bytes % width;
        repeats->list[count++] = (ZSTD_Sequence){.offset = (uint32_t)(at - found.from),
                                                 .litLength = (uint32_t)(at - literals),
                                                 .matchLength = (uint32_t)found.bytes};
        literals = at + found.bytes;
        i += found.bytes / width;
    }
    repeats->list[count++] = (ZSTD_Sequence){.litLength = (uint32_t)(end - literals)};
    return count;
}

size_t token_repeats_find(struct token_repeats *repeats, const uint8_t *tokens, size_t bytes, uint32_t width)
{
    assert(bytes && bytes <= FRAME_BYTES && (width == 2 || width == 4));
    return width == 2 ? find(repeats, tokens, bytes, 2) : find(repeats, tokens, bytes, 4);
}
