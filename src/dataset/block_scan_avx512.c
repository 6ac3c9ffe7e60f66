/* SPDX-License-Identifier: MIT */
#include "block_scan_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Returns what a stripe adds to the accumulators. */
static inline __m512i stripe(__m512i data, __m512i key)
{
    __m512i keyed = _mm512_xor_si512(data, key);
    __m512i product = _mm512_mul_epu32(keyed, _mm512_srli_epi64(keyed, 32));
    __m512i swapped = _mm512_shuffle_epi32(data, (_MM_PERM_ENUM)0x4e);
    return _mm512_add_epi64(swapped, product);
}

static inline __m512i scramble(__m512i acc, __m512i key)
{
    __m512i prime = _mm512_set1_epi64(SCRAMBLE_PRIME);
    __m512i mixed = _mm512_xor_si512(_mm512_xor_si512(acc, _mm512_srli_epi64(acc, 47)), key);
    __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(mixed, 32), prime);
    return _mm512_add_epi64(_mm512_mul_epu32(mixed, prime), _mm512_slli_epi64(high, 32));
}

static inline __attribute__((always_inline)) uint64_t scan(uint64_t acc_stored[8], const uint8_t *tokens, size_t bytes,
                                                           bool wide, bool last, uint64_t (*pages)[8])
{
    const uint8_t *secret = (const uint8_t *)scan_secret;
    const __m512i start = _mm512_loadu_si512(scan_start);
    __m512i acc = _mm512_loadu_si512(acc_stored), page = start, largest = _mm512_setzero_si512();
    __m512i scramble_key = _mm512_loadu_si512(secret + SECRET_SCRAMBLE);
    for (size_t at = 0, round = 0; at < bytes; at += ROUND_BYTES, round++) {
        __m512i sum = _mm512_setzero_si512(), data = sum;
        for (size_t i = 0; i < 15; i++) {
            data = _mm512_loadu_si512(tokens + at + STRIPE_BYTES * i);
            largest = wide ? _mm512_max_epu32(largest, data) : _mm512_max_epu16(largest, data);
            sum = _mm512_add_epi64(sum, stripe(data, _mm512_loadu_si512(secret + 8 * i)));
        }
        data = _mm512_loadu_si512(tokens + at + STRIPE_BYTES * 15);
        largest = wide ? _mm512_max_epu32(largest, data) : _mm512_max_epu16(largest, data);
        /* The last stripe of a block or a page has another place in the secret, and no scramble after it. */
        const __m512i inner = _mm512_add_epi64(sum, stripe(data, _mm512_loadu_si512(secret + 8 * 15)));
        const __m512i outer = _mm512_add_epi64(sum, stripe(data, _mm512_loadu_si512(secret + SECRET_LAST)));
        if (last && at + ROUND_BYTES == bytes)
            acc = _mm512_add_epi64(acc, outer);
        else
            acc = scramble(_mm512_add_epi64(acc, inner), scramble_key);
        if (pages && round % PAGE_ROUNDS == PAGE_ROUNDS - 1) {
            _mm512_storeu_si512(pages[round / PAGE_ROUNDS], _mm512_add_epi64(page, outer));
            page = start;
        } else if (pages) {
            page = scramble(_mm512_add_epi64(page, inner), scramble_key);
        }
    }
    _mm512_storeu_si512(acc_stored, acc);
    if (wide)
        return _mm512_reduce_max_epu32(largest);
    __m512i high = _mm512_srli_epi32(largest, 16), low = _mm512_and_si512(largest, _mm512_set1_epi32(0xffff));
    return _mm512_reduce_max_epu32(_mm512_max_epu32(high, low));
}

uint64_t scan_part_avx512(uint64_t acc[8], const uint8_t *tokens, size_t bytes, uint32_t width, bool last,
                          uint64_t (*pages)[8])
{
    return width == 4 ? scan(acc, tokens, bytes, true, last, pages) : scan(acc, tokens, bytes, false, last, pages);
}
#endif
