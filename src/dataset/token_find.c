/* SPDX-License-Identifier: MIT */
/*
 * token_find.c - see token_find.h.
 *
 * Groups of tokens are compared with the id in vectors: of 64 bytes, in vectors of 16, which every processor has, or of
 * 128 bytes, in vectors of 32, with AVX2. Only a group that has a match is searched token by token; with AVX2, a bit
 * mask of the matches says where. Documents are long compared with a group, so most groups cost a few cycles.
 */
#include "token_find.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/cpu.h"

typedef uint16_t eight16 __attribute__((vector_size(16)));
typedef uint32_t four32 __attribute__((vector_size(16)));
typedef uint64_t two64 __attribute__((vector_size(16)));

enum { GROUP_BYTES = 64 };

/* Returns whether a group has the id, which each element of `wanted` is. */
#define HAS(NAME, VECTOR)                                                                                              \
    static inline uint64_t NAME(const uint8_t *group, VECTOR wanted)                                                   \
    {                                                                                                                  \
        VECTOR a, b, c, d;                                                                                             \
        memcpy(&a, group, 16);                                                                                         \
        memcpy(&b, group + 16, 16);                                                                                    \
        memcpy(&c, group + 32, 16);                                                                                    \
        memcpy(&d, group + 48, 16);                                                                                    \
        const two64 any = (two64)((a == wanted) | (b == wanted) | (c == wanted) | (d == wanted));                      \
        return any[0] | any[1];                                                                                        \
    }
HAS(has16, eight16)
HAS(has32, four32)

static uint64_t find16(const uint8_t *tokens, uint64_t at, uint64_t count, uint16_t id)
{
    const eight16 wanted = (eight16){0} + id;
    while (at < count) {
        while (count - at >= GROUP_BYTES / 2 && !has16(tokens + 2 * at, wanted))
            at += GROUP_BYTES / 2;
        for (const uint64_t stop = min64(count, at + GROUP_BYTES / 2); at < stop; at++)
            if (load16(tokens + 2 * at) == id)
                return at;
    }
    return count;
}

static uint64_t find32(const uint8_t *tokens, uint64_t at, uint64_t count, uint32_t id)
{
    const four32 wanted = (four32){0} + id;
    while (at < count) {
        while (count - at >= GROUP_BYTES / 4 && !has32(tokens + 4 * at, wanted))
            at += GROUP_BYTES / 4;
        for (const uint64_t stop = min64(count, at + GROUP_BYTES / 4); at < stop; at++)
            if (load32(tokens + 4 * at) == id)
                return at;
    }
    return count;
}

uint64_t token_find(const uint8_t *tokens, uint32_t width, uint64_t from, uint64_t count, uint64_t id)
{
    assert(from <= count && (width == 2 || width == 4));
    if (id > (width == 2 ? UINT16_MAX : UINT32_MAX))
        return count;
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2))
        return token_find_avx2(tokens, width, from, count, (uint32_t)id);
#endif
    return width == 2 ? find16(tokens, from, count, (uint16_t)id) : find32(tokens, from, count, (uint32_t)id);
}
