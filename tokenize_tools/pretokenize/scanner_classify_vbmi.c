/* scanner_classify_vbmi.c - the same as scanner_classify.c with AVX-512 with VBMI and VBMI2: one vector of 64 bytes per
 * step. */
#include "scanner_classify.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

/* A block of 64 bytes, and the same moved by one and two bytes. */
struct block {
    const uint8_t *text;
    __m512i first, second, third;
};

/* Adds the classes of the character at text[at], and of those of `rest` that differ from it in their last byte only, to
 * *found. All of them are in one row of 64 bytes. Returns their bits. */
static inline uint64_t look_up(const struct scan_tables *tables, const struct block *block, uint64_t at, uint64_t rest,
                               __m512i *found)
{
    const uint8_t *bytes = block->text + at, *row = tables->two[bytes[0] & 31u];
    uint64_t same = _mm512_mask_cmpeq_epi8_mask(rest, block->first, _mm512_set1_epi8((char)bytes[0]));
    __m512i last = block->second;
    if (bytes[0] >= 0xE0) {
        uint32_t entry = class_first[(bytes[0] & 63u) << 6 | (bytes[1] & 63u)];
        same = _mm512_mask_cmpeq_epi8_mask(same, block->second, _mm512_set1_epi8((char)bytes[1]));
        last = block->third;
        if (bytes[0] >= 0xF0) {
            entry = class_middle[entry][bytes[2] & 63u];
            same = _mm512_mask_cmpeq_epi8_mask(same, block->third, _mm512_set1_epi8((char)bytes[2]));
            last = _mm512_loadu_si512(block->text + 3);
        }
        row = tables->blocks[entry];
    }
    *found = _mm512_mask_permutexvar_epi8(*found, same, last, _mm512_loadu_si512(row));
    return same;
}

/* Returns the bits of `rest` whose bytes are `one` or `other`. */
static inline uint64_t is_either(uint64_t rest, __m512i bytes, uint8_t one, uint8_t other)
{
    return _mm512_mask_cmpeq_epi8_mask(rest, bytes, _mm512_set1_epi8((char)one)) |
           _mm512_mask_cmpeq_epi8_mask(rest, bytes, _mm512_set1_epi8((char)other));
}

/* Where `same` is set, returns entry byte & 63 of `even` or of `odd`: of the latter if bit 0 of `chooses` is set. */
static inline __m512i of_two_rows(uint64_t same, __m512i chooses, __m512i byte, const uint8_t *even, const uint8_t *odd)
{
    /* Bits 0 to 5 of the index come from `byte` and bit 6 from `chooses`; bit 7 has no effect. */
    const __m512i index = _mm512_ternarylogic_epi64(_mm512_set1_epi8(63), byte, _mm512_slli_epi16(chooses, 6), 0xCA);
    return _mm512_maskz_permutex2var_epi8(same, _mm512_loadu_si512(even), index, _mm512_loadu_si512(odd));
}

/* Adds the classes of characters that are common in Chinese, Japanese, and Korean text to *found. Returns the bits of
 * `rest` that are left. No lookup waits for another, and there is no branch: look_up() would find the same groups, but
 * one or two at a time, and how many there are cannot be predicted. A row with an even byte and a row with an odd
 * byte are looked up together. */
static inline uint64_t look_up_common(const struct scan_tables *tables, const struct block *block, uint64_t rest,
                                      __m512i *found)
{
    const uint8_t *lead = scan_pair_leads, (*pairs)[64] = tables->pairs, (*rows)[64] = tables->rows;
    const __m512i chinese =
        of_two_rows(is_either(rest, block->first, lead[0], lead[1]), block->first, block->second, pairs[0], pairs[1]);
    const __m512i korean =
        of_two_rows(is_either(rest, block->first, lead[2], lead[3]), block->first, block->second, pairs[2], pairs[3]);
    const __m512i by_pair = _mm512_or_si512(chinese, korean);
    const uint64_t kana =
        _mm512_mask_cmplt_epu8_mask(_mm512_mask_cmpeq_epi8_mask(rest, block->first, _mm512_set1_epi8((char)SCAN_KANA)),
                                    _mm512_sub_epi8(block->second, _mm512_set1_epi8((char)0x80)), _mm512_set1_epi8(4));
    const uint64_t later = _mm512_mask_test_epi8_mask(kana, block->second, _mm512_set1_epi8(2));
    const uint64_t marks =
        _mm512_mask_cmpeq_epi8_mask(_mm512_mask_cmpeq_epi8_mask(rest, block->first, _mm512_set1_epi8((char)0xE2)),
                                    block->second, _mm512_set1_epi8((char)0x80)) |
        _mm512_mask_cmpeq_epi8_mask(_mm512_mask_cmpeq_epi8_mask(rest, block->first, _mm512_set1_epi8((char)0xEF)),
                                    block->second, _mm512_set1_epi8((char)0xBC));
    const __m512i by_row =
        _mm512_ternarylogic_epi64(of_two_rows(kana & ~later, block->second, block->third, rows[1], rows[2]),
                                  of_two_rows(later, block->second, block->third, rows[3], rows[4]),
                                  of_two_rows(marks, block->first, block->third, rows[0], rows[5]), 0xFE);
    *found = _mm512_ternarylogic_epi64(*found, by_pair, by_row, 0xFE);
    return rest & ~(uint64_t)_mm512_movepi8_mask(by_pair) & ~(kana | marks);
}

/* Adds the classes of characters of several bytes, whose first bytes are at the set bits of `rest`, to `found`. Of the
 * characters that are left after look_up_common(), a text of one script has few groups that differ in their last bytes
 * only. Two groups are looked up in each step, because the next step waits for what they leave. */
static inline __m512i look_up_all(const struct scan_tables *tables, const uint8_t *text, __m512i bytes, uint64_t rest,
                                  __m512i found)
{
    const struct block block = {text, bytes, _mm512_loadu_si512(text + 1), _mm512_loadu_si512(text + 2)};
    if (_mm512_mask_cmpge_epu8_mask(rest, bytes, _mm512_set1_epi8((char)0xE3)))
        rest = look_up_common(tables, &block, rest, &found);
    while (rest) {
        const uint64_t one = look_up(tables, &block, _tzcnt_u64(rest), rest, &found);
        rest &= ~(one | look_up(tables, &block, 63 - _lzcnt_u64(rest), rest, &found));
    }
    return found;
}

/* Returns the classes of the bytes of characters that have more than one byte. If all characters with a first byte have
 * the same classes (most scripts), a table of first bytes gives them for the whole block at once, and shifted copies
 * spread them to the following bytes. The other characters are looked up by groups. Each byte of *carry
 * holds the classes of the character that began in the previous block, and afterwards of the last character of this
 * one. */
static inline __m512i wide_bits(const struct scan_tables *tables, const uint8_t *block, __m512i bytes, uint64_t wide,
                                uint64_t start, __m512i *carry)
{
    static const uint8_t before[64] __attribute__((aligned(64))) = {
        63, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
        21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42,
        43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62};
    const uint64_t leads = wide & start;
    __m512i found = _mm512_maskz_permutexvar_epi8(leads, bytes, _mm512_loadu_si512(tables->leads));
    const uint64_t rest = leads & ~(uint64_t)_mm512_movepi8_mask(found);
    if (rest)
        found = look_up_all(tables, block, bytes, rest, found);
    const __m512i back = _mm512_load_si512(before);
    const __m512i one = _mm512_permutexvar_epi8(back, found), two = _mm512_permutexvar_epi8(back, one);
    const uint64_t second = leads << 1 & ~start, third = leads << 2 & ~start & ~(leads << 1);
    const uint64_t fourth = leads << 3 & ~start & ~(leads << 1) & ~(leads << 2);
    __m512i bits = _mm512_mask_mov_epi8(*carry, leads, found);
    bits = _mm512_mask_mov_epi8(bits, second, one);
    bits = _mm512_mask_mov_epi8(bits, third, two);
    bits = _mm512_mask_mov_epi8(bits, fourth, _mm512_permutexvar_epi8(back, two));
    if (leads >> 61)
        *carry = _mm512_permutexvar_epi8(_mm512_set1_epi8((char)(63 - _lzcnt_u64(leads))), found);
    return _mm512_and_si512(bits, _mm512_set1_epi8(127));
}

void scan_classify_vbmi(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text, size_t count,
                        size_t readable)
{
    const __m512i low = _mm512_loadu_si512(tables->ascii), high = _mm512_loadu_si512(tables->ascii + 64);
    __m512i all = _mm512_setzero_si512(), carry = all;
    uint64_t all_quotes = 0;
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
