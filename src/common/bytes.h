/* bytes.h - little-endian loads and stores at any alignment, checked arithmetic, rounding. */
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

/* True if the result does not fit; *result is then not to be used. */
static inline bool add_overflows(uint64_t a, uint64_t b, uint64_t *result)
{
    return __builtin_add_overflow(a, b, result);
}

static inline bool mul_overflows(uint64_t a, uint64_t b, uint64_t *result)
{
    return __builtin_mul_overflow(a, b, result);
}

/* power: of two. round_up: value must be at most UINT64_MAX - power. */
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

static inline uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ceil(a / b) without overflow; b > 0. */
static inline uint64_t div_ceil(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* floor(a * b / c) with a 128-bit product; c > 0 and the result must fit. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
    return (uint64_t)((unsigned __int128)a * b / c);
}

#endif
