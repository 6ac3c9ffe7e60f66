/* SPDX-License-Identifier: MIT */
/*
 * copy_lanes.h - the kernels of copy.h with vectors of any width. A file that includes it has defined COPY_KERNELS, the
 * name of the table, and COPY_NAME, the name in it.
 *
 * The last vector of a copy ends where the tokens end, and overlaps the one before. Masked stores, the obvious way,
 * cost some processors (AMD's Zen 4) as much as many whole vectors; rows of short extents spent a tenth of their time
 * there.
 */
#ifndef TOKMAP_BATCH_COPY_LANES_H
#define TOKMAP_BATCH_COPY_LANES_H

#include <string.h>

#include "common/bytes.h"
#include "common/lanes.h"
#include "copy.h"

extern const struct copy_kernels COPY_KERNELS;

enum { ROUND_BYTES = 128, ROUND_VECTORS = ROUND_BYTES / LANES_BYTES };

#if LANES_BYTES == 64
/* Copies a number of bytes from `least` to twice that number. */
#define COPY_OVERLAPPED(into, from, bytes, least)                                                                      \
    (memcpy(into, from, least), memcpy((into) + (bytes) - (least), (from) + (bytes) - (least), least))

/* Finds the largest of tokens that are less than a vector, and copies what the maximum has seen. */
LANES_INLINE uint32_t take_few(char *to, const char *from, uint64_t bytes, bool wide, bool copies)
{
    const lanes64 tokens = (lanes64)_mm512_maskz_loadu_epi8(~(uint64_t)0 >> (64 - bytes), from);
    if (copies) {
        char few[LANES_BYTES];
        lanes_store(few, tokens);
        if (bytes >= 32)
            COPY_OVERLAPPED(to, few, bytes, 32);
        else if (bytes >= 16)
            COPY_OVERLAPPED(to, few, bytes, 16);
        else if (bytes >= 8)
            COPY_OVERLAPPED(to, few, bytes, 8);
        else if (bytes >= 4)
            COPY_OVERLAPPED(to, few, bytes, 4);
        else
            memcpy(to, few, 2);
    }
    return lanes_largest_id(tokens, wide);
}
#else
LANES_INLINE uint32_t take_few(char *to, const char *from, uint64_t bytes, bool wide, bool copies)
{
    uint32_t largest = 0;
    for (uint64_t at = 0; at < bytes; at += wide ? 4 : 2) {
        const uint32_t id = wide ? load32(from + at) : load16(from + at);
        if (copies && wide)
            store32(to + at, id);
        else if (copies)
            store16(to + at, (uint16_t)id);
        largest = id > largest ? id : largest;
    }
    return largest;
}
#endif

/* Returns the larger ones of `top` and a vector of tokens, which is copied if `copies`. */
LANES_INLINE lanes64 take_vector(lanes64 top, char *to, const char *from, uint64_t at, bool wide, bool copies)
{
    const lanes64 tokens = lanes_load(from + at);
    if (copies)
        lanes_store(to + at, tokens);
    return lanes_larger_ids(top, tokens, wide);
}

/* Finds the largest of some bytes of tokens, and copies them if `copies`. Each round handles ROUND_VECTORS vectors with
 * maxima of their own, so that they do not wait for each other. What is copied is what the maximum has seen, because a
 * file may change meanwhile. */
LANES_INLINE uint32_t take_vectors(char *to, const char *from, uint64_t bytes, bool wide, bool copies)
{
    lanes64 top[ROUND_VECTORS] = {{0}};
    uint64_t at = 0, left = bytes;
    if (bytes < LANES_BYTES)
        return bytes ? take_few(to, from, bytes, wide, copies) : 0;
    for (; left >= ROUND_BYTES; left -= ROUND_BYTES, at += ROUND_BYTES) {
#pragma GCC unroll 4
        for (uint64_t v = 0; v < ROUND_VECTORS; v++)
            top[v] = take_vector(top[v], to, from, at + LANES_BYTES * v, wide, copies);
    }
#pragma GCC unroll 3
    for (int v = 1; v < ROUND_VECTORS; v++) {
        if (left < LANES_BYTES)
            break;
        top[v] = take_vector(top[v], to, from, at, wide, copies);
        left -= LANES_BYTES;
        at += LANES_BYTES;
    }
    if (left)
        top[0] = take_vector(top[0], to, from, bytes - LANES_BYTES, wide, copies);
#pragma GCC unroll 4
    for (int v = 1; v < ROUND_VECTORS; v++)
        top[0] = lanes_larger_ids(top[0], top[v], wide);
    return lanes_largest_id(top[0], wide);
}

static uint32_t lanes_copy16(void *into, const void *from, uint64_t count)
{
    return take_vectors(into, from, count * 2, false, true);
}

static uint32_t lanes_copy32(void *into, const void *from, uint64_t count)
{
    return take_vectors(into, from, count * 4, true, true);
}

static uint32_t lanes_largest16(const void *from, uint64_t count)
{
    return take_vectors(NULL, from, count * 2, false, false);
}

static uint32_t lanes_largest32(const void *from, uint64_t count)
{
    return take_vectors(NULL, from, count * 4, true, false);
}

/* Widens tokens. Each vector is loaded before one is stored, and the stores end where the tokens that were not loaded
 * begin or before: see widen16() in copy.c. The last vector overlaps the one before, so it is loaded first. */
static uint32_t lanes_widen16(void *into, const void *from, uint64_t count)
{
    enum { LANES = LANES_BYTES / 4 };
    const char *at = from;
    char *to = into;
    lanes64 top[2] = {{0}}, last = {0};
    uint64_t left = count;
    if (count >= LANES)
        last = lanes_load_widened(at + (count - LANES) * 2);
    for (; left >= 2 * LANES; left -= 2 * LANES, at += LANES_BYTES, to += 2 * LANES_BYTES) {
        const lanes64 one = lanes_load_widened(at), two = lanes_load_widened(at + LANES_BYTES / 2);
        lanes_store(to, one);
        lanes_store(to + LANES_BYTES, two);
        top[0] = lanes_larger_ids(top[0], one, true);
        top[1] = lanes_larger_ids(top[1], two, true);
    }
    if (left >= LANES) {
        const lanes64 one = lanes_load_widened(at);
        lanes_store(to, one);
        top[0] = lanes_larger_ids(top[0], one, true);
    }
    if (count >= LANES) {
        lanes_store((char *)into + (count - LANES) * 4, last);
        top[0] = lanes_larger_ids(top[0], last, true);
        return lanes_largest_id(lanes_larger_ids(top[0], top[1], true), true);
    }
#if LANES_BYTES == 64
    const __mmask16 few = (__mmask16)((1u << count) - 1);
    const __m512i tokens = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(few, from));
    _mm512_mask_storeu_epi32(into, few, tokens);
    return _mm512_reduce_max_epu32(tokens);
#else
    uint32_t largest = 0;
    for (; left; left--, at += 2, to += 4) {
        const uint32_t id = load16(at);
        store32(to, id);
        largest = id > largest ? id : largest;
    }
    return largest;
#endif
}

const struct copy_kernels COPY_KERNELS = {.name = COPY_NAME,
                                          .copy16 = lanes_copy16,
                                          .copy32 = lanes_copy32,
                                          .widen16 = lanes_widen16,
                                          .largest16 = lanes_largest16,
                                          .largest32 = lanes_largest32};

#endif
