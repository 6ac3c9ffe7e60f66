/*
 * id_kind.c - see id_kind.h. The loops work on groups in local arrays, since the caller's memory may have any
 * alignment, and are simple enough for the compiler to use vector instructions.
 */
#include "id_kind.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"

enum { GROUP = 256 };

bool id_kind_is_known(enum tokmap_id_kind kind)
{
    return (kind >= TOKMAP_ID_U8 && kind <= TOKMAP_ID_I64) || (kind >= TOKMAP_ID_U16 && kind <= TOKMAP_ID_U64);
}

uint32_t id_kind_bytes(enum tokmap_id_kind kind)
{
    switch (kind) {
    case TOKMAP_ID_U8:
    case TOKMAP_ID_I8:
        return 1;
    case TOKMAP_ID_U16:
    case TOKMAP_ID_I16:
        return 2;
    case TOKMAP_ID_U32:
    case TOKMAP_ID_I32:
        return 4;
    case TOKMAP_ID_U64:
    case TOKMAP_ID_I64:
        break;
    }
    return 8;
}

uint64_t id_kind_limit(enum tokmap_id_kind kind)
{
    const uint32_t bits = 8 * id_kind_bytes(kind);
    if (kind == TOKMAP_ID_U64)
        return UINT64_MAX;
    const bool negative = kind >= TOKMAP_ID_I8 && kind <= TOKMAP_ID_I64;
    return (uint64_t)1 << (negative ? bits - 1 : bits);
}

#define LARGEST(NAME, TYPE)                                                                                            \
    static uint64_t NAME(const uint8_t *from, uint64_t count)                                                          \
    {                                                                                                                  \
        TYPE in[GROUP], most[8] = {0};                                                                                 \
        uint64_t largest = 0;                                                                                          \
        for (uint64_t at = 0; at < count; at += GROUP) {                                                               \
            const uint64_t part = min64(count - at, GROUP);                                                            \
            memcpy(in, from + at * sizeof(TYPE), part * sizeof(TYPE));                                                 \
            memset(in + part, 0, (GROUP - part) * sizeof(TYPE));                                                       \
            for (int i = 0; i < GROUP; i += 8)                                                                         \
                for (int k = 0; k < 8; k++)                                                                            \
                    most[k] = in[i + k] > most[k] ? in[i + k] : most[k];                                               \
        }                                                                                                              \
        for (int k = 0; k < 8; k++)                                                                                    \
            largest = max64(largest, most[k]);                                                                         \
        return largest;                                                                                                \
    }
LARGEST(largest_8, uint8_t)
LARGEST(largest_16, uint16_t)
LARGEST(largest_32, uint32_t)
LARGEST(largest_64, uint64_t)

uint64_t id_kind_largest(enum tokmap_id_kind kind, const void *ids, uint64_t count)
{
    switch (id_kind_bytes(kind)) {
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

uint64_t id_kind_get(enum tokmap_id_kind kind, const void *ids, uint64_t at)
{
    const uint8_t *from = (const uint8_t *)ids + at * id_kind_bytes(kind);
    switch (id_kind_bytes(kind)) {
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

#define STORE(NAME, FROM, INTO)                                                                                        \
    static void NAME(const uint8_t *from, uint64_t count, uint8_t *into)                                               \
    {                                                                                                                  \
        FROM in[GROUP];                                                                                                \
        INTO out[GROUP];                                                                                               \
        for (uint64_t at = 0; at < count; at += GROUP) {                                                               \
            const uint64_t part = min64(count - at, GROUP);                                                            \
            memcpy(in, from + at * sizeof(FROM), part * sizeof(FROM));                                                 \
            for (uint64_t i = 0; i < part; i++)                                                                        \
                out[i] = (INTO)in[i];                                                                                  \
            memcpy(into + at * sizeof(INTO), out, part * sizeof(INTO));                                                \
        }                                                                                                              \
    }
STORE(store_8_as_16, uint8_t, uint16_t)
STORE(store_8_as_32, uint8_t, uint32_t)
STORE(store_16_as_32, uint16_t, uint32_t)
STORE(store_32_as_16, uint32_t, uint16_t)
STORE(store_64_as_16, uint64_t, uint16_t)
STORE(store_64_as_32, uint64_t, uint32_t)

void id_kind_store(enum tokmap_id_kind kind, const void *ids, uint64_t first, uint64_t count, uint32_t width,
                   void *into)
{
    const uint32_t bytes = id_kind_bytes(kind);
    if (!count)
        return;
    const uint8_t *from = (const uint8_t *)ids + first * bytes;
    assert(width == 2 || width == 4);
    if (bytes == width)
        memcpy(into, from, (size_t)(count * width));
    else if (bytes == 1)
        (width == 2 ? store_8_as_16 : store_8_as_32)(from, count, into);
    else if (bytes == 2)
        store_16_as_32(from, count, into);
    else if (bytes == 4)
        store_32_as_16(from, count, into);
    else
        (width == 2 ? store_64_as_16 : store_64_as_32)(from, count, into);
}
