/* SPDX-License-Identifier: MIT */
/* json_fast.h - JSON strings 64 bytes at a time by AVX2 or AVX-512 (json_fast_avx2.c, json_fast_vbmi.c). These
 * functions handle nearly all of a long string; json_scan.c handles the rest, and everything on other processors. */
#ifndef TOKMAP_TEXT_JSON_FAST_H
#define TOKMAP_TEXT_JSON_FAST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu.h"

/* The character for which an escape of two bytes stands, by its second byte; 0 for a byte that cannot follow a
 * backslash, and for 'u', whose escape is longer. */
extern const char json_escape_values[256];

#if defined(__x86_64__)
/* Skips plain bytes and escapes of two bytes, from a position inside a string that is not directly after a backslash.
 * Stops at a quote, at a control character, at the backslash of any other escape, or when fewer than 65 bytes are left.
 * Sets *escaped if it has skipped an escape. */
const char *json_skip_plain_avx2(const char *at, const char *end, bool *escaped); /* only if cpu_has(CPU_AVX2) */
const char *json_skip_plain_vbmi(const char *at, const char *end, bool *escaped); /* only if cpu_has(CPU_VBMI) */

/* Returns the backslashes that begin an escape. In a run of backslashes every second one is the second byte of an
 * escape, so the runs are walked from the left. They are rare. */
static inline __attribute__((always_inline)) uint64_t slashes_begin(uint64_t slashes)
{
    if (__builtin_expect((slashes & slashes << 1) == 0, 1))
        return slashes;
    uint64_t begin = 0;
    for (uint64_t rest = slashes; rest;) {
        const uint64_t first = rest & (0 - rest);
        begin |= first;
        rest &= ~(first | first << 1);
    }
    return begin;
}

/* Moves *at over a block of 64 bytes whose escapes begin at the bits of `slashes`, or to the first bit of `stops`.
 * Returns false if there is one. */
static inline __attribute__((always_inline)) bool block_skip(const char **at, uint64_t *escapes, uint64_t slashes,
                                                             uint64_t stops)
{
    /* A branch, not a sum: the processor predicts it, and begins with the next block before it is done with this one.
     */
    if (__builtin_expect((stops | slashes >> 63) != 0, 0)) {
        const unsigned plain = stops ? (unsigned)__builtin_ctzll(stops) : 63;
        *escapes |= slashes & (((uint64_t)1 << plain) - 1);
        *at += plain;
        return !stops;
    }
    *escapes |= slashes;
    *at += 64;
    return true;
}

/* Decodes the same bytes of a string that has been read without a fault: moves them from *at to *into, which is not
 * after *at, and advances both. May leave more to the caller: json_unescape_plain_avx2() stops before the 64 bytes in
 * which one backslash follows another. */
void json_unescape_plain_avx2(char **into, const char **at, const char *end);
void json_unescape_plain_vbmi(char **into, const char **at, const char *end);

/* Returns true if this processor has one of the variants, and the functions of the best one. */
static inline bool json_has_fast(void)
{
    return cpu_has(CPU_AVX2);
}

static inline const char *json_skip_plain(const char *at, const char *end, bool *escaped)
{
    return cpu_has(CPU_VBMI) ? json_skip_plain_vbmi(at, end, escaped) : json_skip_plain_avx2(at, end, escaped);
}

static inline void json_unescape_plain(char **into, const char **at, const char *end)
{
    (cpu_has(CPU_VBMI) ? json_unescape_plain_vbmi : json_unescape_plain_avx2)(into, at, end);
}
#else
static inline bool json_has_fast(void)
{
    return false;
}
static inline const char *json_skip_plain(const char *at, const char *end, bool *escaped)
{
    return at;
}
static inline void json_unescape_plain(char **into, const char **at, const char *end)
{
}
#endif

#endif
