/* SPDX-License-Identifier: MIT */
/*
 * scanner_classify_vbmi.c - the same as scanner_classify.c with AVX-512 (VBMI, VBMI2, GFNI): one vector of 64 bytes per
 * step, and the masks of eight steps together.
 *
 * A lookup gives a byte of classes for each byte of text, and the masks are the same bits turned around. The obvious
 * way, a test and a store of its result for each class, took half of the time of this file on Zen 4, where each move
 * from a mask register takes two cycles. So the bits are turned as matrices, in four steps:
 *
 *   1. gf2p8affine multiplies matrices of 8 by 8 bits. Eight bytes of classes are a matrix, and multiplied by the unit
 *      vectors it is turned: byte k gets the bits of class k, in reverse order.
 *   2. A permutation puts the bytes k of a vector's eight matrices side by side: word k is the mask of class k.
 *   3. Of eight vectors, all words k are collected in one. Three times, pairs of vectors are dealt out: the even words
 *      of both to one vector, and the odd ones to another.
 *   4. Another multiplication of matrices puts the bits of each byte in order.
 *
 * Example: the text begins with "ab 1cd  ". With letters as class 2, numbers as class 3, and spaces as class 4, its
 * bytes of classes are 4 4 16 8 4 4 16 16. Turned, byte 2 is 11001100 from its highest bit on, so the letters are at 0,
 * 1, 4, and 5, and in order the byte is 0x33. It is the lowest byte of the mask of class 2 for this vector.
 */
#include "scanner_classify.h"

#if defined(__x86_64__)

#include <immintrin.h>

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

/* By first byte & 63: which group of look_up_common() has the character. They are the first bytes of pair_leads and
 * row_bytes in scanner_classify.c. */
enum { CHINESE = 1, KOREAN = 2, KANA = 4, MARKS = 8 };
static const uint8_t common_groups[64] = {[0x22] = MARKS,  [0x23] = KANA,   [0x24] = CHINESE, [0x29] = CHINESE,
                                          [0x2A] = KOREAN, [0x2D] = KOREAN, [0x2F] = MARKS};
/* The second byte of the characters of MARKS. */
static const uint8_t mark_seconds[64] = {[0x22] = 0x80, [0x2F] = 0xBC};

/* Returns, where `same` is set, entry byte & 63 of `even` or of `odd`: of the latter if bit 0 of `chooses` is set. */
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
    const uint8_t(*pairs)[64] = tables->pairs, (*rows)[64] = tables->rows;
    const __m512i group = _mm512_permutexvar_epi8(block->first, _mm512_loadu_si512(common_groups));
    const __m512i chinese = of_two_rows(_mm512_mask_test_epi8_mask(rest, group, _mm512_set1_epi8(CHINESE)),
                                        block->first, block->second, pairs[0], pairs[1]);
    const __m512i korean = of_two_rows(_mm512_mask_test_epi8_mask(rest, group, _mm512_set1_epi8(KOREAN)), block->first,
                                       block->second, pairs[2], pairs[3]);
    const __m512i by_pair = _mm512_or_si512(chinese, korean);
    const __mmask64 kana =
        _mm512_mask_cmplt_epu8_mask(_mm512_mask_test_epi8_mask(rest, group, _mm512_set1_epi8(KANA)),
                                    _mm512_sub_epi8(block->second, _mm512_set1_epi8((char)0x80)), _mm512_set1_epi8(4));
    const __mmask64 later = _mm512_mask_test_epi8_mask(kana, block->second, _mm512_set1_epi8(2));
    const __mmask64 marks =
        _mm512_mask_cmpeq_epi8_mask(_mm512_mask_test_epi8_mask(rest, group, _mm512_set1_epi8(MARKS)), block->second,
                                    _mm512_permutexvar_epi8(block->first, _mm512_loadu_si512(mark_seconds)));
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

/* Moves the bytes of x up by one, two, or three; the first ones come from anywhere. */
static inline __m512i up(__m512i x, uint32_t bytes)
{
    static const uint8_t numbers[64 + 3] = {61, 62, 63, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
                                            14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
                                            31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                            48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    return _mm512_permutexvar_epi8(_mm512_loadu_si512(numbers + 3 - bytes), x);
}

/* Returns the classes of the bytes of characters that have more than one byte. If all characters with a first byte have
 * the same classes (most scripts), a table of first bytes gives them for the whole block at once, and moved copies
 * spread them to the following bytes. The other characters are looked up by groups. A following byte gets the classes
 * of the nearest first byte before it, and `carry`, in each byte, has those of the last byte of the block before. */
static inline __m512i wide_bits(const struct scan_tables *tables, const uint8_t *block, __m512i bytes, __mmask64 leads,
                                __m512i carry)
{
    __m512i found = _mm512_maskz_permutexvar_epi8(leads, bytes, _mm512_loadu_si512(tables->leads));
    const __mmask64 rest = _kandn_mask64(_mm512_movepi8_mask(found), leads);
    if (rest)
        found = look_up_all(tables, block, bytes, rest, found);
    __m512i bits = _mm512_mask_mov_epi8(carry, _kshiftli_mask64(leads, 3), up(found, 3));
    bits = _mm512_mask_mov_epi8(bits, _kshiftli_mask64(leads, 2), up(found, 2));
    bits = _mm512_mask_mov_epi8(bits, _kshiftli_mask64(leads, 1), up(found, 1));
    bits = _mm512_mask_mov_epi8(bits, leads, found);
    return _mm512_and_si512(bits, _mm512_set1_epi8(127));
}

#define GROUP 8 /* words whose masks of classes are made together */

/* Writes the masks of all classes for GROUP words from number `word` on, in the four steps that the head of this file
 * describes. bits: the classes of each byte. */
static inline void store_kinds(struct scan_masks *masks, size_t word, const __m512i bits[GROUP])
{
    static const uint8_t turn[64] __attribute__((aligned(64))) = {
        0,  8,  16, 24, 32, 40, 48, 56, 1,  9,  17, 25, 33, 41, 49, 57, 2,  10, 18, 26, 34, 42,
        50, 58, 3,  11, 19, 27, 35, 43, 51, 59, 4,  12, 20, 28, 36, 44, 52, 60, 5,  13, 21, 29,
        37, 45, 53, 61, 6,  14, 22, 30, 38, 46, 54, 62, 7,  15, 23, 31, 39, 47, 55, 63};
    const __m512i diagonal = _mm512_set1_epi64((long long)0x8040201008040201), bytes = _mm512_load_si512(turn);
    const __m512i even = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), odd = _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1);
    __m512i x[GROUP], y[GROUP];
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++)
        x[i] = _mm512_permutexvar_epi8(bytes, _mm512_gf2p8affine_epi64_epi8(diagonal, bits[i], 0));
#pragma GCC unroll 3
    for (int step = 0; step < 3; step++) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            y[i] = _mm512_permutex2var_epi64(x[2 * i], even, x[2 * i + 1]);
            y[i + 4] = _mm512_permutex2var_epi64(x[2 * i], odd, x[2 * i + 1]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < GROUP; i++)
            x[i] = y[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i++)
        _mm512_storeu_si512(SCAN_ROW(masks->kind[i]) + word, _mm512_gf2p8affine_epi64_epi8(x[i], diagonal, 0));
}

void scan_classify_vbmi(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text, size_t count,
                        size_t readable)
{
    const __m512i low = _mm512_loadu_si512(tables->ascii), high = _mm512_loadu_si512(tables->ascii + 64);
    __m512i all = _mm512_setzero_si512(), carry = all, kinds[GROUP];
    __mmask64 quotes = 0;
    for (size_t at = 0, word = 0; at < count; at += 64, word++) {
        uint8_t padded[SCAN_BLOCK];
        const uint8_t *block = scan_block_at(text + at, readable - at, padded);
        const __m512i bytes = _mm512_loadu_si512(block);
        const __mmask64 wide = _mm512_movepi8_mask(bytes),
                        quote = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\''));
        __m512i bits = _mm512_permutex2var_epi8(low, bytes, high);
        if (wide) {
            const __mmask64 start = _mm512_cmpgt_epi8_mask(bytes, _mm512_set1_epi8(-65));
            const __m512i classes = wide_bits(tables, block, bytes, _kand_mask64(wide, start), carry);
            bits = _mm512_mask_mov_epi8(bits, wide, classes);
            carry = _mm512_permutexvar_epi8(_mm512_set1_epi8(63), _mm512_maskz_mov_epi8(wide, classes));
            SCAN_ROW(masks->start)[word] = start;
            SCAN_ROW(masks->tall)[word] = _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8((char)0xE0));
            masks->wide_words[word / 64] |= (uint64_t)1 << (word % 64);
        } else {
            SCAN_ROW(masks->start)[word] = ~(uint64_t)0;
            SCAN_ROW(masks->tall)[word] = 0;
        }
        SCAN_ROW(masks->blank)[word] = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(' '));
        SCAN_ROW(masks->quote)[word] = quote;
        quotes = _kor_mask64(quotes, quote);
        all = _mm512_or_si512(all, bits);
        kinds[word % GROUP] = bits;
        if (word % GROUP == GROUP - 1)
            store_kinds(masks, word + 1 - GROUP, kinds);
    }
    const size_t words = (count + 63) / 64;
    if (words % GROUP) {
        for (size_t i = words % GROUP; i < GROUP; i++)
            kinds[i] = _mm512_setzero_si512();
        store_kinds(masks, words - words % GROUP, kinds);
    }
    masks->any_quote |= quotes;
    for (int kind = 0; kind < SCAN_KINDS; kind++)
        masks->any[kind] |= _mm512_test_epi8_mask(all, _mm512_set1_epi8((char)(1 << kind)));
}

#endif
