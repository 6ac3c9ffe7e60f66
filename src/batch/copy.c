/* SPDX-License-Identifier: MIT */
/* copy.c - the kernels in plain C, and the choice among all variants. */
#include "copy.h"

#include <stddef.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"

static uint32_t largest16(const void *from, uint64_t count)
{
    return largest_token(from, 2, count);
}

static uint32_t largest32(const void *from, uint64_t count)
{
    return largest_token(from, 4, count);
}

static uint32_t copy16(void *into, const void *from, uint64_t count)
{
    memcpy(into, from, count * 2);
    return largest16(into, count);
}

static uint32_t copy32(void *into, const void *from, uint64_t count)
{
    memcpy(into, from, count * 4);
    return largest32(into, count);
}

/* Writes behind what it reads: token i + 1 of a `from` that is the second half of `into` begins at or after the end of
 * token i in `into`. */
static uint32_t widen16(void *into, const void *from, uint64_t count)
{
    uint32_t top = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t id = load16((const char *)from + i * 2);
        store32((char *)into + i * 4, id);
        top = id > top ? id : top;
    }
    return top;
}

static const struct copy_kernels scalar = {.name = "scalar",
                                           .copy16 = copy16,
                                           .copy32 = copy32,
                                           .widen16 = widen16,
                                           .largest16 = largest16,
                                           .largest32 = largest32};

extern const struct copy_kernels copy_avx2, copy_avx512;

const struct copy_kernels *copy_variant(unsigned number)
{
    return CPU_KERNELS(number, &copy_avx512, &copy_avx2, &scalar);
}
