/* SPDX-License-Identifier: MIT */
/* json_fast_vbmi.c - see json_fast.h. */
#include "json_fast.h"

#if defined(__x86_64__)

#include <immintrin.h>

const char *json_skip_plain_vbmi(const char *at, const char *end, bool *escaped)
{
    const __m512i low = _mm512_loadu_si512(json_escape_values), high = _mm512_loadu_si512(json_escape_values + 64);
    const __m512i none = _mm512_setzero_si512(), all = _mm512_set1_epi8((char)0x80);
    /* The highest bit of each byte that may follow a backslash, except u. */
    const __m512i low_follows = _mm512_maskz_mov_epi8(_mm512_cmpneq_epi8_mask(low, none), all);
    const __m512i high_follows = _mm512_maskz_mov_epi8(_mm512_cmpneq_epi8_mask(high, none), all);
    uint64_t escapes = 0;
    while (end - at > 64) {
        const __m512i bytes = _mm512_loadu_si512(at);
        const uint64_t slashes = slashes_begin(_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\\')));
        const uint64_t values = slashes << 1; /* the second bytes of escapes */
        const __m512i follows = _mm512_permutex2var_epi8(low_follows, bytes, high_follows);
        const uint64_t good = _mm512_movepi8_mask(_mm512_andnot_si512(bytes, follows)); /* and it is ASCII */
        const uint64_t stops = (_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('"')) & ~values) |
                               _mm512_cmple_epu8_mask(bytes, _mm512_set1_epi8(0x1f)) | (values & ~good) >> 1;
        if (!block_skip(&at, &escapes, slashes, stops))
            break;
    }
    *escaped |= escapes != 0;
    return at;
}

void json_unescape_plain_vbmi(char **into, const char **at, const char *end)
{
    const __m512i low = _mm512_loadu_si512(json_escape_values), high = _mm512_loadu_si512(json_escape_values + 64);
    const char *from = *at;
    char *to = *into;
    while (end - from > 64) {
        __m512i bytes = _mm512_loadu_si512(from);
        const uint64_t slashes = slashes_begin(_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\\')));
        const uint64_t values = slashes << 1;
        const uint64_t longer = _mm512_mask_cmpeq_epi8_mask(values, bytes, _mm512_set1_epi8('u'));
        bytes = _mm512_mask2_permutex2var_epi8(low, bytes, values, high);
        if (__builtin_expect((longer | slashes >> 63) != 0, 0)) {
            const uint32_t count = longer ? (uint32_t)_tzcnt_u64(longer) - 1 : 63;
            const uint64_t kept = _bzhi_u64(~slashes, count);
            const uint32_t left = (uint32_t)_mm_popcnt_u64(kept);
            _mm512_mask_storeu_epi8(to, _bzhi_u64(~(uint64_t)0, left), _mm512_maskz_compress_epi8(kept, bytes));
            to += left;
            from += count;
            if (longer)
                break;
            continue;
        }
        /* All 64 bytes are stored: those after the ones that stay are written over bytes that have been read. */
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(~slashes, bytes));
        to += 64 - _mm_popcnt_u64(slashes);
        from += 64;
    }
    *into = to;
    *at = from;
}

#endif
