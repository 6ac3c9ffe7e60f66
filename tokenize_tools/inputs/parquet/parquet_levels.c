/* SPDX-License-Identifier: MIT */
/* parquet_levels.c - see parquet_levels.h. */
#include "parquet_levels.h"

#include "common/bytes.h"

#define ENDS_EARLY "its levels or indexes end before its last value"
#define TOO_LARGE "a level is larger than the schema allows"
#define BLOCK 1024

void parquet_hybrid_begin(struct parquet_hybrid *hybrid, const uint8_t *bytes, uint64_t count, unsigned width)
{
    *hybrid = (struct parquet_hybrid){.at = bytes, .end = bytes + count, .width = width};
}

/* Reads the head of the next run. */
static const char *run_begin(struct parquet_hybrid *hybrid)
{
    uint64_t head = 0;
    unsigned shift = 0;
    if (hybrid->width > 32)
        return "its levels or indexes have more than 32 bits";
    for (;; shift += 7) {
        if (hybrid->at == hybrid->end)
            return ENDS_EARLY;
        if (shift > 28)
            return "a run of its levels or indexes has an impossible length";
        const uint8_t byte = *hybrid->at++;
        head |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    hybrid->packed = head & 1;
    hybrid->bit = 0;
    hybrid->left = head >> 1;
    if (hybrid->packed) {
        hybrid->left *= 8;
        return NULL;
    }
    const unsigned bytes = (hybrid->width + 7) / 8;
    if ((uint64_t)(hybrid->end - hybrid->at) < bytes)
        return ENDS_EARLY;
    hybrid->value = 0;
    for (unsigned i = 0; i < bytes; i++)
        hybrid->value |= (uint32_t)*hybrid->at++ << 8 * i;
    if (hybrid->width < 32 && hybrid->value >> hybrid->width)
        return "a run repeats a value that has too many bits";
    return NULL;
}

/* Takes values of a bit-packed run. The run must have them. */
static const char *packed_take(struct parquet_hybrid *hybrid, uint32_t *into, uint64_t count)
{
    const unsigned width = hybrid->width;
    const uint64_t bits = hybrid->bit + count * width, mask = width == 32 ? UINT32_MAX : ((uint64_t)1 << width) - 1;
    if (bits > (uint64_t)(hybrid->end - hybrid->at) * 8)
        return ENDS_EARLY;
    uint64_t bit = hybrid->bit, i = 0;
    /* A value has at most 32 bits and begins in the first byte of the 8 that are loaded. */
    for (; i < count && hybrid->end - hybrid->at >= (int64_t)(bit / 8 + 8); i++, bit += width)
        into[i] = (uint32_t)(load64(hybrid->at + bit / 8) >> bit % 8 & mask);
    for (; i < count; i++, bit += width) {
        uint64_t value = 0;
        for (unsigned k = 0; k < 5 && hybrid->at + bit / 8 + k < hybrid->end; k++)
            value |= (uint64_t)hybrid->at[bit / 8 + k] << 8 * k;
        into[i] = (uint32_t)(value >> bit % 8 & mask);
    }
    hybrid->at += bits / 8;
    hybrid->bit = (unsigned)(bits % 8);
    return NULL;
}

const char *parquet_hybrid_take(struct parquet_hybrid *hybrid, uint32_t *into, uint64_t count)
{
    while (count) {
        if (!hybrid->left) {
            const char *fault = run_begin(hybrid);
            if (fault)
                return fault;
            continue;
        }
        const uint64_t some = min64(count, hybrid->left);
        if (hybrid->packed) {
            const char *fault = packed_take(hybrid, into, some);
            if (fault)
                return fault;
        } else {
            for (uint64_t i = 0; i < some; i++)
                into[i] = hybrid->value;
        }
        into += some;
        count -= some;
        hybrid->left -= some;
    }
    return NULL;
}

bool parquet_hybrid_is_run(struct parquet_hybrid *hybrid, uint32_t value, uint64_t count)
{
    const struct parquet_hybrid before = *hybrid;
    bool is_run = count == 0;
    if (count && (hybrid->left || !run_begin(hybrid)))
        is_run = !hybrid->packed && hybrid->left >= count && hybrid->value == value;
    *hybrid = before;
    return is_run;
}

const char *parquet_levels_take(struct parquet_hybrid *hybrid, uint8_t *into, uint64_t count, uint8_t most)
{
    uint32_t block[BLOCK];
    for (uint64_t done = 0; done < count;) {
        const uint64_t some = min64(count - done, BLOCK);
        const char *fault = parquet_hybrid_take(hybrid, block, some);
        if (fault)
            return fault;
        uint32_t largest = 0;
        for (uint64_t i = 0; i < some; i++) {
            into[done + i] = (uint8_t)block[i];
            largest = largest > block[i] ? largest : block[i];
        }
        if (largest > most)
            return TOO_LARGE;
        done += some;
    }
    return NULL;
}

unsigned parquet_levels_width(uint8_t most)
{
    unsigned width = 0;
    while (most >> width)
        width++;
    return width;
}
