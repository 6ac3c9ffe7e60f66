/* json_fast_vbmi.c - see json_fast.h. */
#include "json_fast.h"

#if defined(__x86_64__)

#include <immintrin.h>

struct block {
    __m512i bytes;
    uint64_t slashes; /* bit i: byte i is a backslash that begins an escape */
    uint64_t values;  /* bit i: byte i is the second byte of an escape */
    uint32_t count;   /* bytes that can be handled: 63 if the last one begins an escape, else 64 */
};

/* In a run of backslashes every second one is the second byte of an escape, so the runs are walked from the left. They
 * are rare. */
static inline __attribute__((always_inline)) struct block block_load(const char *at)
{
    struct block block = {.bytes = _mm512_loadu_si512(at), .count = 64};
    uint64_t slashes = _mm512_cmpeq_epi8_mask(block.bytes, _mm512_set1_epi8('\\'));
    if (__builtin_expect((slashes & slashes << 1) != 0, 0)) {
        uint64_t begin = 0;
        for (uint64_t rest = slashes; rest;) {
            const uint64_t first = rest & (0 - rest);
            begin |= first;
            rest &= ~(first | first << 1);
        }
        slashes = begin;
    }
    if (slashes >> 63)
        block.count = 63;
    block.slashes = slashes;
    block.values = slashes << 1;
    return block;
}

const char *json_skip_plain_vbmi(const char *at, const char *end, bool *escaped)
{
    const __m512i low = _mm512_loadu_si512(json_escape_values), high = _mm512_loadu_si512(json_escape_values + 64);
    while (end - at > 64) {
        const struct block block = block_load(at);
        uint64_t stops = (_mm512_cmpeq_epi8_mask(block.bytes, _mm512_set1_epi8('"')) & ~block.values) |
                         _mm512_cmple_epu8_mask(block.bytes, _mm512_set1_epi8(0x1f));
        if (block.slashes) {
            const __m512i values = _mm512_permutex2var_epi8(low, block.bytes, high);
            const uint64_t good = _mm512_test_epi8_mask(values, values) & ~_mm512_movepi8_mask(block.bytes);
            stops |= (block.values & ~good) >> 1;
        }
        const uint32_t plain = stops ? (uint32_t)_tzcnt_u64(stops) : block.count;
        *escaped |= (_bzhi_u64(block.slashes, plain)) != 0;
        at += plain;
        if (stops)
            break;
    }
    return at;
}

void json_unescape_plain_vbmi(char **into, const char **at, const char *end)
{
    const __m512i low = _mm512_loadu_si512(json_escape_values), high = _mm512_loadu_si512(json_escape_values + 64);
    while (end - *at > 64) {
        const struct block block = block_load(*at);
        const uint64_t longer = _mm512_mask_cmpeq_epi8_mask(block.values, block.bytes, _mm512_set1_epi8('u'));
        const uint32_t count = longer ? (uint32_t)_tzcnt_u64(longer) - 1 : block.count;
        const uint64_t kept = _bzhi_u64(~block.slashes, count);
        const __m512i bytes =
            _mm512_mask_blend_epi8(block.values, block.bytes, _mm512_permutex2var_epi8(low, block.bytes, high));
        const uint32_t left = (uint32_t)_mm_popcnt_u64(kept);
        _mm512_mask_storeu_epi8(*into, _bzhi_u64(~(uint64_t)0, left), _mm512_maskz_compress_epi8(kept, bytes));
        *into += left;
        *at += count;
        if (longer)
            break;
    }
}

#endif
