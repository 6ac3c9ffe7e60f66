/* SPDX-License-Identifier: MIT */
/*
 * id_type.c - see id_type.h. The loops go over blocks of a fixed number of ids, so that the compiler uses vector
 * instructions, and read and write elements of any alignment.
 *
 * The largest of 64-bit ids: SSE2 and AVX2 cannot compare them as unsigned numbers, but ids are smaller than 2^32. So
 * one loop finds the largest lower half, and the bitwise or of all ids. If that has a bit of an upper half, which is an
 * error of the caller, a slow loop finds the largest.
 */
#include "id_type.h"

#include <assert.h>
#include <string.h>

#include "bytes.h"

enum { BLOCK = 32 };

typedef uint8_t element8;
typedef uint16_t __attribute__((aligned(1), may_alias)) element16;
typedef uint32_t __attribute__((aligned(1), may_alias)) element32;
typedef uint64_t __attribute__((aligned(1), may_alias)) element64;

bool id_type_is_known(enum tokmap_id_type type)
{
    return (unsigned)type <= TOKMAP_ID_I8;
}

uint32_t id_type_bytes(enum tokmap_id_type type)
{
    static const uint8_t bytes[] = {4, 4, 2, 2, 8, 8, 1, 1};
    assert(id_type_is_known(type));
    return bytes[type];
}

const char *id_type_name(enum tokmap_id_type type)
{
    static const char *const names[] = {"U32", "I32", "U16", "I16", "U64", "I64", "U8", "I8"};
    assert(id_type_is_known(type));
    return names[type];
}

uint64_t id_type_limit(enum tokmap_id_type type)
{
    const bool has_sign = type & 1;
    return type == TOKMAP_ID_U64 ? UINT64_MAX : (uint64_t)1 << (8 * id_type_bytes(type) - has_sign);
}

/* A loop of BLOCK over most[], then the rest. */
#define LARGEST(NAME, ELEMENT, TYPE, EACH)                                                                             \
    static uint64_t NAME(const void *ids, uint64_t count)                                                              \
    {                                                                                                                  \
        const ELEMENT *from = ids;                                                                                     \
        TYPE most[BLOCK] = {0};                                                                                        \
        uint64_t seen = 0, largest = 0, at = 0;                                                                        \
        for (; at + BLOCK <= count; at += BLOCK)                                                                       \
            for (int k = 0; k < BLOCK; k++) {                                                                          \
                most[k] = (TYPE)from[at + k] > most[k] ? (TYPE)from[at + k] : most[k];                                 \
                EACH(from[at + k]);                                                                                    \
            }                                                                                                          \
        for (int k = 0; k < BLOCK; k++)                                                                                \
            largest = max64(largest, most[k]);                                                                         \
        for (uint64_t rest = at; rest < count; rest++)                                                                 \
            largest = max64(largest, from[rest]);                                                                      \
        for (at = seen >> 32 ? at : 0; at; at--)                                                                       \
            largest = max64(largest, from[at - 1]);                                                                    \
        return largest;                                                                                                \
    }
#define NOTHING(id) (void)0
#define COLLECT(id) seen |= (id)
LARGEST(largest_8, element8, uint8_t, NOTHING)
LARGEST(largest_16, element16, uint16_t, NOTHING)
LARGEST(largest_32, element32, uint32_t, NOTHING)
LARGEST(largest_64, element64, uint32_t, COLLECT)

uint64_t id_type_largest(enum tokmap_id_type type, const void *ids, uint64_t count)
{
    switch (id_type_bytes(type)) {
    case 1:
        return largest_8(ids, count);
    case 2:
        return largest_16(ids, count);
    case 4:
        return largest_32(ids, count);
    default:
        return largest_64(ids, count);
    }
}

uint64_t id_type_get(enum tokmap_id_type type, const void *ids, uint64_t at)
{
    const uint8_t *from = (const uint8_t *)ids + at * id_type_bytes(type);
    switch (id_type_bytes(type)) {
    case 1:
        return *from;
    case 2:
        return load16(from);
    case 4:
        return load32(from);
    default:
        return load64(from);
    }
}

int64_t id_type_signed(enum tokmap_id_type type, uint64_t id)
{
    const uint32_t shift = 64 - 8 * id_type_bytes(type);
    return (int64_t)(id << shift) >> shift;
}

#define STORE(FROM, INTO)                                                                                              \
    static void store_##FROM##_as_##INTO(const void *ids, uint64_t count, void *tokens)                                \
    {                                                                                                                  \
        const element##FROM *restrict from = ids;                                                                      \
        element##INTO *restrict into = tokens;                                                                         \
        uint64_t at = 0;                                                                                               \
        for (; at + BLOCK <= count; at += BLOCK)                                                                       \
            for (int k = 0; k < BLOCK; k++)                                                                            \
                into[at + k] = (element##INTO)from[at + k];                                                            \
        for (; at < count; at++)                                                                                       \
            into[at] = (element##INTO)from[at];                                                                        \
    }
#define STORES(FROM) STORE(FROM, 8) STORE(FROM, 16) STORE(FROM, 32) STORE(FROM, 64)
STORES(8)
STORES(16)
STORES(32)
STORES(64)

void id_type_store(enum tokmap_id_type type, const void *ids, uint64_t first, uint64_t count, uint32_t width,
                   void *into)
{
#define FROM(BITS)                                                                                                     \
    {                                                                                                                  \
        store_##BITS##_as_8, store_##BITS##_as_16, store_##BITS##_as_32, store_##BITS##_as_64                          \
    }
    static void (*const stores[4][4])(const void *, uint64_t, void *) = {FROM(8), FROM(16), FROM(32), FROM(64)};
    const uint32_t bytes = id_type_bytes(type);
    if (!count)
        return;
    const uint8_t *from = (const uint8_t *)ids + first * bytes;
    assert(width == 1 || width == 2 || width == 4 || width == 8);
    if (bytes == width)
        memcpy(into, from, (size_t)(count * width));
    else
        stores[__builtin_ctz(bytes)][__builtin_ctz(width)](from, count, into);
}
