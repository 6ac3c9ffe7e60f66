/* SPDX-License-Identifier: MIT */
/* bytes.h - loads and stores at any alignment (little-endian), arithmetic that detects overflow, and rounding. */
#ifndef TOKMAP_COMMON_BYTES_H
#define TOKMAP_COMMON_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tokmap maps little-endian files in place: big-endian machines are not supported"
#endif

static inline uint16_t load16(const void *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint32_t load32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint64_t load64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void store16(void *into, uint16_t value)
{
    memcpy(into, &value, sizeof value);
}

static inline void store32(void *into, uint32_t value)
{
    memcpy(into, &value, sizeof value);
}

static inline void store64(void *into, uint64_t value)
{
    memcpy(into, &value, sizeof value);
}

/* Return true if the result does not fit in 64 bits; *result is then meaningless. */
static inline bool add_overflows(uint64_t a, uint64_t b, uint64_t *result)
{
    return __builtin_add_overflow(a, b, result);
}

static inline bool mul_overflows(uint64_t a, uint64_t b, uint64_t *result)
{
    return __builtin_mul_overflow(a, b, result);
}

/* Return the sum or the product, or UINT64_MAX if it overflows. */
static inline uint64_t add_capped(uint64_t a, uint64_t b)
{
    return add_overflows(a, b, &a) ? UINT64_MAX : a;
}

static inline uint64_t mul_capped(uint64_t a, uint64_t b)
{
    return mul_overflows(a, b, &a) ? UINT64_MAX : a;
}

/* Round to a multiple of `power`, which is a power of two. For round_up() the value must be at most UINT64_MAX - power.
 */
static inline uint64_t round_up(uint64_t value, uint64_t power)
{
    return (value + power - 1) & ~(power - 1);
}

static inline uint64_t round_down(uint64_t value, uint64_t power)
{
    return value & ~(power - 1);
}

static inline uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the value of a hexadecimal digit of either case, or -1. */
static inline int hex_digit(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

static inline uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns the largest of `count` tokens of `width` bytes, 2 or 4, or 0 without tokens. */
static inline uint32_t largest_token(const void *tokens, uint32_t width, uint64_t count)
{
    const uint8_t *at = tokens;
    uint16_t narrow = 0;
    uint32_t wide = 0;
    for (uint64_t i = 0; width == 2 && i < count; i++) {
        const uint16_t token = load16(at + 2 * i);
        narrow = token > narrow ? token : narrow;
    }
    for (uint64_t i = 0; width != 2 && i < count; i++) {
        const uint32_t token = load32(at + 4 * i);
        wide = token > wide ? token : wide;
    }
    return width == 2 ? narrow : wide;
}

/* a / b rounded up, without overflow; b > 0. */
static inline uint64_t div_ceil(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* a * b / c rounded down, with a product of 128 bits; c > 0, and the result must fit in 64 bits. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return product >> 64 ? (uint64_t)(product / c) : (uint64_t)product / c; /* the second one is an instruction */
}

/* Returns the last of `count` structs, in the order of a number of theirs, whose number is at most `value`; 0 if none
 * is. number: of the first struct. bytes: of a struct. */
static inline uint64_t last_at_most(const uint64_t *number, size_t bytes, uint64_t count, uint64_t value)
{
    uint64_t first = 0, last = count;
    while (last - first > 1) {
        const uint64_t middle = first + (last - first) / 2;
        if (load64((const uint8_t *)number + middle * bytes) <= value)
            first = middle;
        else
            last = middle;
    }
    return first;
}

#endif
