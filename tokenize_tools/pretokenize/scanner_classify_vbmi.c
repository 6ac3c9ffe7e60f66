/* scanner_classify_vbmi.c - the same as scanner_classify.c with AVX-512 with VBMI and VBMI2: one vector of 64 bytes per
 * step. */
#include "scanner_classify.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

/* Returns the classes of the bytes of characters that have more than one byte. If all characters with a first byte have
 * the same classes (most scripts), a table of first bytes gives them for the whole block at once, and shifted copies
 * spread them to the following bytes. Only the other characters are looked up one by one. *carry holds the classes of
 * the character that began in the previous block, and afterwards of the last character of this one. */
static inline __m512i wide_bits(const struct scan_tables *tables, const uint8_t *block, __m512i bytes, uint64_t wide,
                                uint64_t start, uint8_t *carry)
{
    static const uint8_t before[64] __attribute__((aligned(64))) = {
        63, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
        21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42,
        43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62};
    const uint64_t leads = wide & start;
    const __m512i found = _mm512_maskz_permutexvar_epi8(leads, bytes, _mm512_loadu_si512(tables->leads));
    const uint64_t sure = _mm512_movepi8_mask(found), rest = leads & ~sure;
    const __m512i back = _mm512_load_si512(before);
    const __m512i one = _mm512_permutexvar_epi8(back, found), two = _mm512_permutexvar_epi8(back, one);
    const uint64_t second = sure << 1 & ~start, third = sure << 2 & ~start & ~(leads << 1);
    const uint64_t fourth = sure << 3 & ~start & ~(leads << 1) & ~(leads << 2); /* occurs only in invalid UTF-8 */
    uint8_t single[68];
    __m512i bits = _mm512_set1_epi8((char)*carry);
    if (rest) {
        _mm512_storeu_si512(single, bits);
        single[64] = *carry;
        scan_wide_bits(single, tables, block, rest);
        bits = _mm512_loadu_si512(single);
    }
    bits = _mm512_mask_mov_epi8(bits, sure, found);
    bits = _mm512_mask_mov_epi8(bits, second, one);
    bits = _mm512_mask_mov_epi8(bits, third, two);
    bits = _mm512_mask_mov_epi8(bits, fourth, _mm512_permutexvar_epi8(back, two));
    if (leads >> 61) {
        uint8_t all[64];
        _mm512_storeu_si512(all, bits);
        *carry = all[63 - _lzcnt_u64(leads)] & 127;
    }
    return _mm512_and_si512(bits, _mm512_set1_epi8(127));
}

void scan_classify_vbmi(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text, size_t count,
                        size_t readable)
{
    const __m512i low = _mm512_loadu_si512(tables->ascii), high = _mm512_loadu_si512(tables->ascii + 64);
    __m512i all = _mm512_setzero_si512();
    uint64_t all_quotes = 0;
    uint8_t carry = 0;
    for (size_t at = 0, word = 0; at < count; at += 64, word++) {
        uint8_t padded[64 + 4];
        const uint8_t *block = text + at;
        if (__builtin_expect(at + sizeof padded > readable, 0)) {
            memset(padded, 0, sizeof padded);
            memcpy(padded, block, readable - at < sizeof padded ? readable - at : sizeof padded);
            block = padded;
        }
        const __m512i bytes = _mm512_loadu_si512(block);
        __m512i bits = _mm512_permutex2var_epi8(low, bytes, high);
        const uint64_t wide = _mm512_movepi8_mask(bytes);
        const uint64_t start = _mm512_cmpgt_epi8_mask(bytes, _mm512_set1_epi8(-65));
        if (wide)
            bits = _mm512_mask_mov_epi8(bits, wide, wide_bits(tables, block, bytes, wide, start, &carry));
        SCAN_ROW(masks->tall)[word] = _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8((char)0xE0));
        const uint64_t quote = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\''));
        masks->wide_words[word / 64] |= (uint64_t)(wide != 0) << (word % 64);
        SCAN_ROW(masks->start)[word] = start;
        SCAN_ROW(masks->blank)[word] = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(' '));
        SCAN_ROW(masks->quote)[word] = quote;
        all_quotes |= quote;
        all = _mm512_or_si512(all, bits);
#pragma GCC unroll 8
        for (int kind = 0; kind < SCAN_KINDS; kind++)
            SCAN_ROW(masks->kind[kind])[word] = _mm512_test_epi8_mask(bits, _mm512_set1_epi8((char)(1 << kind)));
    }
    masks->any_quote |= all_quotes;
    for (int kind = 0; kind < SCAN_KINDS; kind++)
        masks->any[kind] |= _mm512_test_epi8_mask(all, _mm512_set1_epi8((char)(1 << kind)));
}

#endif
