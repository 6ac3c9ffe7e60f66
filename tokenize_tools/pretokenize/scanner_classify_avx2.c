/* scanner_classify_avx2.c - the same as scanner_classify.c with AVX2: two vectors of 32 bytes per step. */
#include "scanner_classify.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

/* Looks up 32 bytes in a table of 128 entries that is split into 8 rows of 16. steps[0] is row 0, and steps[r] the
 * difference (xor) of rows r - 1 and r. A shuffle gives 0 for an index with bit 7 set, so subtracting 16 for each row
 * lets a byte take part until its own row has come, and the differences add up to that row. Example: 0x2A takes
 * row 0, then row 0 ^ row 1, then row 1 ^ row 2, each at index 0x0A, which is row 2 in the end; minus 0x30, it is
 * negative. Bytes above 127 give a meaningless result. */
static inline __m256i look_up(const __m256i steps[8], __m256i bytes)
{
    const __m256i sixteen = _mm256_set1_epi8(16);
    __m256i found = _mm256_shuffle_epi8(steps[0], bytes);
#pragma GCC unroll 8
    for (int row = 1; row < 8; row++) {
        bytes = _mm256_sub_epi8(bytes, sixteen);
        found = _mm256_xor_si256(found, _mm256_shuffle_epi8(steps[row], bytes));
    }
    return found;
}

static inline uint64_t both(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

void scan_classify_avx2(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text, size_t count,
                        size_t readable)
{
    __m256i steps[8], row_before = _mm256_setzero_si256(), any = _mm256_setzero_si256();
    for (int i = 0; i < 8; i++) {
        const __m256i row =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(tables->ascii + 16 * i)));
        steps[i] = _mm256_xor_si256(row, row_before);
        row_before = row;
    }
    const __m256i blank = _mm256_set1_epi8(' '), mark = _mm256_set1_epi8('\''), before_start = _mm256_set1_epi8(-65);
    const __m256i tall = _mm256_set1_epi8((char)0xE0);
    uint8_t carry = 0;
    for (size_t at = 0, word = 0; at < count; at += 64, word++) {
        uint8_t padded[64 + 4];
        const uint8_t *block = text + at;
        if (at + sizeof padded > readable) {
            memset(padded, 0, sizeof padded);
            memcpy(padded, block, readable - at < sizeof padded ? readable - at : sizeof padded);
            block = padded;
        }
        const __m256i one = _mm256_loadu_si256((const __m256i *)(const void *)block);
        const __m256i two = _mm256_loadu_si256((const __m256i *)(const void *)(block + 32));
        __m256i bits_one = look_up(steps, one), bits_two = look_up(steps, two);
        const uint64_t wide = both(one, two);
        const uint64_t start = both(_mm256_cmpgt_epi8(one, before_start), _mm256_cmpgt_epi8(two, before_start));
        if (wide) {
            uint8_t found[68];
            memset(found, carry, sizeof found); /* a character that began in the previous block */
            scan_wide_bits(found, tables, block, wide & start);
            const __m256i found_one = _mm256_loadu_si256((const __m256i *)(const void *)found);
            const __m256i found_two = _mm256_loadu_si256((const __m256i *)(const void *)(found + 32));
            bits_one = _mm256_blendv_epi8(bits_one, found_one, one);
            bits_two = _mm256_blendv_epi8(bits_two, found_two, two);
            carry = found[64];
        }
        SCAN_ROW(masks->tall)
        [word] = both(_mm256_cmpeq_epi8(_mm256_max_epu8(one, tall), one),
                      _mm256_cmpeq_epi8(_mm256_max_epu8(two, tall), two));
        const uint64_t quote = both(_mm256_cmpeq_epi8(one, mark), _mm256_cmpeq_epi8(two, mark));
        masks->wide_words[word / 64] |= (uint64_t)(wide != 0) << (word % 64);
        SCAN_ROW(masks->start)[word] = start;
        SCAN_ROW(masks->blank)[word] = both(_mm256_cmpeq_epi8(one, blank), _mm256_cmpeq_epi8(two, blank));
        SCAN_ROW(masks->quote)[word] = quote;
        masks->any_quote |= quote;
        any = _mm256_or_si256(any, _mm256_or_si256(bits_one, bits_two));
#pragma GCC unroll 8
        for (int kind = SCAN_KINDS - 1; kind >= 0; kind--)
            SCAN_ROW(masks->kind[kind])
        [word] = both(_mm256_slli_epi16(bits_one, 7 - kind), _mm256_slli_epi16(bits_two, 7 - kind));
    }
    for (int kind = 0; kind < SCAN_KINDS; kind++)
        masks->any[kind] |= (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(any, 7 - kind));
}

#endif
