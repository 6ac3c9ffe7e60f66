/* SPDX-License-Identifier: MIT */
#include "block_scan_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

static inline __m256i load(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline void store(uint64_t *into, __m256i value)
{
    _mm256_storeu_si256((__m256i *)(void *)into, value);
}

/* Returns what half a stripe adds to its accumulators. */
static inline __m256i half_stripe(__m256i data, __m256i key)
{
    __m256i keyed = _mm256_xor_si256(data, key);
    __m256i product = _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
    __m256i swapped = _mm256_shuffle_epi32(data, 0x4e);
    return _mm256_add_epi64(swapped, product);
}

static inline __m256i scramble(__m256i acc, __m256i key)
{
    __m256i prime = _mm256_set1_epi64x(SCRAMBLE_PRIME);
    __m256i mixed = _mm256_xor_si256(_mm256_xor_si256(acc, _mm256_srli_epi64(acc, 47)), key);
    __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(mixed, 32), prime);
    return _mm256_add_epi64(_mm256_mul_epu32(mixed, prime), _mm256_slli_epi64(high, 32));
}

/* The largest ids of both halves of the stripes. */
struct tops {
    __m256i of[2];
};

static inline __m256i top(__m256i a, __m256i b, bool wide)
{
    return wide ? _mm256_max_epu32(a, b) : _mm256_max_epu16(a, b);
}

/* Adds a round to one half of the accumulators: half 0 has the first 32 bytes of each stripe. end, page_end: the round
 * ends the block, or the page; page: NULL, or the half of the page's accumulators. */
static inline __attribute__((always_inline)) __m256i round_add(__m256i acc, __m256i *page, const uint8_t *tokens,
                                                               struct tops *tops, int half, bool wide, bool end,
                                                               bool page_end)
{
    const uint8_t *secret = (const uint8_t *)scan_secret + (size_t)32 * (size_t)half;
    const uint8_t *from = tokens + (size_t)32 * (size_t)half;
    const __m256i scramble_key = load(secret + SECRET_SCRAMBLE);
    __m256i sum = _mm256_setzero_si256(), data;
    for (size_t i = 0; i < 15; i++) {
        data = load(from + STRIPE_BYTES * i);
        tops->of[half] = top(tops->of[half], data, wide);
        sum = _mm256_add_epi64(sum, half_stripe(data, load(secret + 8 * i)));
    }
    data = load(from + STRIPE_BYTES * 15);
    tops->of[half] = top(tops->of[half], data, wide);
    /* The last stripe of a block or a page has another place in the secret, and no scramble after it. */
    const __m256i inner = _mm256_add_epi64(sum, half_stripe(data, load(secret + 8 * 15)));
    const __m256i outer = _mm256_add_epi64(sum, half_stripe(data, load(secret + SECRET_LAST)));
    if (page && page_end)
        *page = _mm256_add_epi64(*page, outer);
    else if (page)
        *page = scramble(_mm256_add_epi64(*page, inner), scramble_key);
    return end ? _mm256_add_epi64(acc, outer) : scramble(_mm256_add_epi64(acc, inner), scramble_key);
}

static inline __attribute__((always_inline)) uint64_t scan(uint64_t acc_stored[8], const uint8_t *tokens, size_t bytes,
                                                           bool wide, bool last, uint64_t (*pages)[8])
{
    __m256i acc0 = load((const uint8_t *)acc_stored), acc1 = load((const uint8_t *)(acc_stored + 4));
    const __m256i start0 = load((const uint8_t *)scan_start), start1 = load((const uint8_t *)(scan_start + 4));
    __m256i page0 = start0, page1 = start1;
    struct tops tops = {{_mm256_setzero_si256(), _mm256_setzero_si256()}};
    for (size_t at = 0, round = 0; at < bytes; at += ROUND_BYTES, round++) {
        const bool end = last && at + ROUND_BYTES == bytes, page_end = round % PAGE_ROUNDS == PAGE_ROUNDS - 1;
        acc0 = round_add(acc0, pages ? &page0 : NULL, tokens + at, &tops, 0, wide, end, page_end);
        acc1 = round_add(acc1, pages ? &page1 : NULL, tokens + at, &tops, 1, wide, end, page_end);
        if (pages && page_end) {
            store(pages[round / PAGE_ROUNDS], page0);
            store(pages[round / PAGE_ROUNDS] + 4, page1);
            page0 = start0;
            page1 = start1;
        }
    }
    store(acc_stored, acc0);
    store(acc_stored + 4, acc1);
    __m256i largest = top(tops.of[0], tops.of[1], wide);
    if (!wide)
        largest =
            _mm256_max_epu32(_mm256_srli_epi32(largest, 16), _mm256_and_si256(largest, _mm256_set1_epi32(0xffff)));
    uint32_t lanes[8], found = 0;
    _mm256_storeu_si256((__m256i *)(void *)lanes, largest);
    for (int i = 0; i < 8; i++)
        found = lanes[i] > found ? lanes[i] : found;
    return found;
}

uint64_t scan_part_avx2(uint64_t acc[8], const uint8_t *tokens, size_t bytes, uint32_t width, bool last,
                        uint64_t (*pages)[8])
{
    return width == 4 ? scan(acc, tokens, bytes, true, last, pages) : scan(acc, tokens, bytes, false, last, pages);
}
#endif
