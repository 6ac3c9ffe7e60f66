#include "block_scan_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

static inline __m256i load(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline __m256i half_stripe(__m256i acc, __m256i data, __m256i key)
{
    __m256i keyed = _mm256_xor_si256(data, key);
    __m256i product = _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
    __m256i swapped = _mm256_shuffle_epi32(data, 0x4e);
    return _mm256_add_epi64(acc, _mm256_add_epi64(swapped, product));
}

static inline __m256i scramble(__m256i acc, __m256i key)
{
    __m256i prime = _mm256_set1_epi64x(SCRAMBLE_PRIME);
    __m256i mixed = _mm256_xor_si256(_mm256_xor_si256(acc, _mm256_srli_epi64(acc, 47)), key);
    __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(mixed, 32), prime);
    return _mm256_add_epi64(_mm256_mul_epu32(mixed, prime), _mm256_slli_epi64(high, 32));
}

static inline __attribute__((always_inline)) uint64_t scan(uint64_t acc_stored[8], const uint8_t *tokens, size_t bytes,
                                                           bool wide, bool last)
{
    const uint8_t *secret = (const uint8_t *)scan_secret;
    __m256i acc0 = load((const uint8_t *)acc_stored), acc1 = load((const uint8_t *)(acc_stored + 4));
    __m256i largest0 = _mm256_setzero_si256(), largest1 = largest0;
    for (size_t at = 0; at < bytes; at += ROUND_BYTES) {
        bool end = last && at + ROUND_BYTES == bytes;
        for (size_t i = 0; i < 16; i++) {
            const uint8_t *data = tokens + at + STRIPE_BYTES * i;
            /* The block's last stripe has another place in the secret, and no scramble after it. */
            const uint8_t *key = secret + (end && i == 15 ? SECRET_LAST : 8 * i);
            __m256i data0 = load(data), data1 = load(data + 32);
            largest0 = wide ? _mm256_max_epu32(largest0, data0) : _mm256_max_epu16(largest0, data0);
            largest1 = wide ? _mm256_max_epu32(largest1, data1) : _mm256_max_epu16(largest1, data1);
            acc0 = half_stripe(acc0, data0, load(key));
            acc1 = half_stripe(acc1, data1, load(key + 32));
        }
        if (!end) {
            acc0 = scramble(acc0, load(secret + SECRET_SCRAMBLE));
            acc1 = scramble(acc1, load(secret + SECRET_SCRAMBLE + 32));
        }
    }
    _mm256_storeu_si256((__m256i *)(void *)acc_stored, acc0);
    _mm256_storeu_si256((__m256i *)(void *)(acc_stored + 4), acc1);
    uint32_t lanes[8], found = 0;
    __m256i largest = wide ? _mm256_max_epu32(largest0, largest1) : _mm256_max_epu16(largest0, largest1);
    if (!wide)
        largest =
            _mm256_max_epu32(_mm256_srli_epi32(largest, 16), _mm256_and_si256(largest, _mm256_set1_epi32(0xffff)));
    _mm256_storeu_si256((__m256i *)(void *)lanes, largest);
    for (int i = 0; i < 8; i++)
        found = lanes[i] > found ? lanes[i] : found;
    return found;
}

uint64_t scan_part_avx2(uint64_t acc[8], const uint8_t *tokens, size_t bytes, uint32_t width, bool last)
{
    return width == 4 ? scan(acc, tokens, bytes, true, last) : scan(acc, tokens, bytes, false, last);
}
#endif
