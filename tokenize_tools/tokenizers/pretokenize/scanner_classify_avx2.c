/* SPDX-License-Identifier: MIT */
/*
 * scanner_classify_avx2.c - the same as scanner_classify.c with AVX2: two vectors of 32 bytes per step.
 *
 * ASCII. AVX2 looks 32 bytes up in a table of 16 entries, and ASCII has 128. So the bits of a table stand for the eight
 * rows of 16 bytes that ASCII has: by the upper half of a byte, the bit of its row; and for each class, by the lower
 * half, the bits of those rows where that byte has the class. A byte has the class if the first bit is among the
 * others. Example: digits are row 3, lower halves 0 to 9. '7' is 0x37, whose row has bit 3, and entry 7 of the table of
 * numbers has bit 3 as well. Bytes above 127 get the row FF, which is never among the others. Each class costs time, so
 * the usual rules, with four classes, have a loop of their own.
 *
 * Characters of more than one byte. Most scripts have long runs of characters of one class, so the first byte tells the
 * class if the second byte is in one of two runs (struct scan_runs). Japanese and Chinese text has characters that
 * begin with E3, where the second byte tells the class if the third one is in a run. Both are shuffles and comparisons
 * of 32 bytes, and the few characters that are left are looked up one by one. Then there is a word for each class with
 * the first bytes of its characters, and shifts spread them over the bytes that follow.
 */
#include "scanner_classify.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* The classes that ASCII, and other characters, have under the usual rules; those with LETTERS_CASED; and DeepSeek's.
 */
#define ASCII_USUAL (SCAN_LETTER | SCAN_NUMBER | SCAN_SPACE | SCAN_NEWLINE)
#define WIDE_USUAL (SCAN_LETTER | SCAN_NUMBER | SCAN_SPACE)
#define ASCII_CASED (SCAN_UPPER | SCAN_LOWER | SCAN_NUMBER | SCAN_SPACE | SCAN_NEWLINE | SCAN_SLASH)
#define WIDE_CASED (SCAN_UPPER | SCAN_LOWER | WIDE_USUAL | SCAN_EXTRA)
#define ASCII_DEEPSEEK (ASCII_USUAL | SCAN_EXTRA)
#define WIDE_DEEPSEEK WIDE_CASED

/* Returns the bits 7 of 64 bytes. */
INLINE uint64_t both(__m256i a, __m256i b)
{
    uint64_t bits = (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
    __asm__("" : "+r"(bits)); /* keeps compilers from moving several of these words back to a vector register */
    return bits;
}

INLINE __m256i load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

/* Returns a table of 16 entries in both halves of a register. */
INLINE __m256i row_at(const uint8_t row[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)row));
}

/* Returns `classes` where the next byte, of which the lower six bits are in `next`, is in the run, else 0. */
INLINE __m256i in_run(__m256i classes, __m256i next, __m256i from, __m256i more)
{
    const __m256i distance = _mm256_sub_epi8(next, from);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_min_epu8(distance, more), distance), classes);
}

/* Looks up lower halves of bytes in one of two tables: in the second where bit 7 of `which` is set. */
INLINE __m256i of_two(const uint8_t a[16], const uint8_t b[16], __m256i lower, __m256i which)
{
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(row_at(a), lower), _mm256_shuffle_epi8(row_at(b), lower), which);
}

/* Returns 128 | classes for first bytes of characters of two bytes that are in a run, else 0. Other bytes give a
 * meaningless result. */
INLINE __m256i classes_of_two(const struct scan_tables *tables, __m256i bytes, __m256i next)
{
    const struct scan_runs *const a = &tables->by_lead[0], *const b = &tables->by_lead[1];
    const __m256i lower = _mm256_and_si256(bytes, _mm256_set1_epi8(15)), bit4 = _mm256_slli_epi16(bytes, 3);
    __m256i found = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (int r = 0; r < 2; r++)
        found = _mm256_or_si256(found, in_run(of_two(a->classes[r], b->classes[r], lower, bit4), next,
                                              of_two(a->from[r], b->from[r], lower, bit4),
                                              of_two(a->more[r], b->more[r], lower, bit4)));
    return found;
}

/* Does the same for beginnings of characters that only differ in the lower half of their last byte, which `bytes`
 * has. */
INLINE __m256i classes_of_runs(const struct scan_runs *runs, __m256i bytes, __m256i next)
{
    const __m256i lower = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    __m256i found = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (int r = 0; r < 2; r++)
        found = _mm256_or_si256(found, in_run(_mm256_shuffle_epi8(row_at(runs->classes[r]), lower), next,
                                              _mm256_shuffle_epi8(row_at(runs->from[r]), lower),
                                              _mm256_shuffle_epi8(row_at(runs->more[r]), lower)));
    return found;
}

/* Does the same for all characters of three bytes: by the first byte, or by the second one if that is not enough. */
INLINE __m256i classes_of_three(const struct scan_tables *tables, __m256i bytes, __m256i second)
{
    const __m256i e = _mm256_set1_epi8((char)0xE0), high = _mm256_set1_epi8((char)0xF0);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bytes, high), e),
                            classes_of_runs(&tables->by_lead[2], bytes, second));
}

/* Does the same for characters that begin with SCAN_KANA and a second byte below 0x90. kana: all bits of their first
 * bytes. */
INLINE __m256i classes_of_kana(const struct scan_tables *tables, __m256i kana, __m256i second, __m256i third)
{
    const __m256i near = _mm256_cmpgt_epi8(_mm256_set1_epi8(16), second);
    return _mm256_and_si256(_mm256_and_si256(kana, near), classes_of_runs(&tables->by_kana, second, third));
}

/* The classes of the characters of more than one byte that begin in a block of 64 bytes, at their first bytes. Other
 * bytes have a meaningless result. */
struct wide_classes {
    __m256i one, two;
};

/* Looks up the characters at `rest` one by one. */
static __attribute__((noinline)) struct wide_classes
look_up_rest(const struct scan_tables *tables, const uint8_t *block, uint64_t rest, struct wide_classes found)
{
    uint8_t bits[64] __attribute__((aligned(32)));
    _mm256_store_si256((__m256i *)(void *)bits, found.one);
    _mm256_store_si256((__m256i *)(void *)(bits + 32), found.two);
    for (; rest; rest = _blsr_u64(rest)) {
        const uint64_t p = _tzcnt_u64(rest);
        bits[p] = scan_class_at(tables, block + p);
    }
    return (struct wide_classes){_mm256_load_si256((const __m256i *)(const void *)bits),
                                 _mm256_load_si256((const __m256i *)(const void *)(bits + 32))};
}

/* leads: the first bytes; tall: those of characters of three or four bytes. Text seldom has scripts of two and of three
 * bytes in one block, so the branches are usually predicted. */
INLINE struct wide_classes look_up_wide(const struct scan_tables *tables, const uint8_t *block, __m256i one,
                                        __m256i two, uint64_t leads, uint64_t tall)
{
    const __m256i six = _mm256_set1_epi8(63);
    const __m256i next_one = _mm256_and_si256(load(block + 1), six), next_two = _mm256_and_si256(load(block + 33), six);
    struct wide_classes found = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    if (leads & ~tall) {
        const __m256i three = _mm256_set1_epi8((char)0xE0);
        found.one = _mm256_andnot_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(one, three), one),
                                        classes_of_two(tables, one, next_one));
        found.two = _mm256_andnot_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(two, three), two),
                                        classes_of_two(tables, two, next_two));
    }
    if (tall) {
        found.one = _mm256_or_si256(found.one, classes_of_three(tables, one, next_one));
        found.two = _mm256_or_si256(found.two, classes_of_three(tables, two, next_two));
        const __m256i lead = _mm256_set1_epi8((char)SCAN_KANA);
        const __m256i kana_one = _mm256_cmpeq_epi8(one, lead), kana_two = _mm256_cmpeq_epi8(two, lead);
        if (both(kana_one, kana_two)) {
            found.one = _mm256_or_si256(
                found.one, classes_of_kana(tables, kana_one, next_one, _mm256_and_si256(load(block + 2), six)));
            found.two = _mm256_or_si256(
                found.two, classes_of_kana(tables, kana_two, next_two, _mm256_and_si256(load(block + 34), six)));
        }
    }
    const uint64_t rest = leads & ~both(found.one, found.two);
    return rest ? look_up_rest(tables, block, rest, found) : found;
}

/* Bytes of a block that follow a first byte, for all classes. */
struct following {
    uint64_t by[3];  /* bit p: the first byte is 1, 2, or 3 bytes before p, and no other one is nearer */
    uint64_t before; /* they belong to the last character before this block */
};

INLINE struct following following_of(uint64_t wide, uint64_t leads)
{
    const uint64_t rest = wide & ~leads, near = leads << 1, far = leads << 2, farther = leads << 3;
    return (struct following){.by = {rest, rest & ~near, rest & ~near & ~far},
                              .before = rest & ~near & ~far & ~farther};
}

/* Returns the bytes of the characters that begin at `first`. *carry: 1 if the character that the block before ends with
 * is one of them; afterwards, the same of this block. */
INLINE uint64_t spread(uint64_t first, const struct following *following, uint64_t *carry)
{
    const uint64_t all = first | (first << 1 & following->by[0]) | (first << 2 & following->by[1]) |
                         (first << 3 & following->by[2]) | (-*carry & following->before);
    *carry = all >> 63;
    return all;
}

/* ascii, others: the classes that characters of one byte, and of more, may have; constants in each call. */
INLINE void classify(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text, size_t count,
                     size_t readable, uint32_t ascii, uint32_t others)
{
    const __m256i rows =
        _mm256_broadcastsi128_si256(_mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -128, 64, 32, 16, 8, 4, 2, 1));
    const __m256i halves = _mm256_set1_epi8(15), blank = _mm256_set1_epi8(' '), mark = _mm256_set1_epi8('\'');
    uint64_t any[SCAN_KINDS] = {0}, carry[SCAN_KINDS] = {0}, any_quote = 0;
    for (size_t at = 0, word = 0; at < count; at += 64, word++) {
        uint8_t padded[SCAN_BLOCK];
        const uint8_t *block = scan_block_at(text + at, readable - at, padded);
        const __m256i one = load(block), two = load(block + 32);
        const __m256i row_one = _mm256_shuffle_epi8(rows, _mm256_and_si256(_mm256_srli_epi16(one, 4), halves));
        const __m256i row_two = _mm256_shuffle_epi8(rows, _mm256_and_si256(_mm256_srli_epi16(two, 4), halves));
        const uint64_t wide = both(one, two), quote = both(_mm256_cmpeq_epi8(one, mark), _mm256_cmpeq_epi8(two, mark));
        uint64_t found[SCAN_KINDS] = {0};
#pragma GCC unroll 8
        for (int kind = 0; kind < SCAN_KINDS; kind++)
            if (ascii >> kind & 1) {
                const __m256i table = row_at(tables->ascii_rows[kind]);
                const __m256i in_one = _mm256_and_si256(_mm256_shuffle_epi8(table, one), row_one);
                const __m256i in_two = _mm256_and_si256(_mm256_shuffle_epi8(table, two), row_two);
                found[kind] = both(_mm256_cmpeq_epi8(in_one, row_one), _mm256_cmpeq_epi8(in_two, row_two));
            }
        SCAN_ROW(masks->blank)[word] = both(_mm256_cmpeq_epi8(one, blank), _mm256_cmpeq_epi8(two, blank));
        SCAN_ROW(masks->quote)[word] = quote;
        any_quote |= quote;
        uint64_t start = ~(uint64_t)0, tall = 0;
        if (wide) {
            const __m256i before_start = _mm256_set1_epi8(-65), three = _mm256_set1_epi8((char)0xE0);
            start = both(_mm256_cmpgt_epi8(one, before_start), _mm256_cmpgt_epi8(two, before_start));
            tall = both(_mm256_cmpeq_epi8(_mm256_max_epu8(one, three), one),
                        _mm256_cmpeq_epi8(_mm256_max_epu8(two, three), two));
            const uint64_t leads = wide & start;
            const struct wide_classes classes = look_up_wide(tables, block, one, two, leads, tall);
            const struct following following = following_of(wide, leads);
            masks->wide_words[word / 64] |= (uint64_t)1 << (word % 64);
#pragma GCC unroll 8
            for (int kind = 0; kind < SCAN_KINDS; kind++)
                if (others >> kind & 1) {
                    const uint64_t first = leads & both(_mm256_slli_epi16(classes.one, 7 - kind),
                                                        _mm256_slli_epi16(classes.two, 7 - kind));
                    if (first | carry[kind]) /* most blocks have characters of one or two classes */
                        found[kind] |= spread(first, &following, &carry[kind]);
                }
        }
        SCAN_ROW(masks->start)[word] = start;
        SCAN_ROW(masks->tall)[word] = tall;
#pragma GCC unroll 8
        for (int kind = 0; kind < SCAN_KINDS; kind++)
            if ((ascii | others) >> kind & 1) {
                SCAN_ROW(masks->kind[kind])[word] = found[kind];
                any[kind] |= found[kind];
            }
    }
    masks->any_quote |= any_quote;
    for (int kind = 0; kind < SCAN_KINDS; kind++) {
        masks->any[kind] |= any[kind];
        if (!((ascii | others) >> kind & 1))
            memset(SCAN_ROW(masks->kind[kind]), 0, (count + 63) / 64 * sizeof(uint64_t));
    }
}

void scan_classify_avx2(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text, size_t count,
                        size_t readable)
{
    const uint32_t ascii = tables->ascii_kinds, others = tables->wide_kinds;
    if (!(ascii & ~ASCII_USUAL) && !(others & ~WIDE_USUAL))
        classify(masks, tables, text, count, readable, ASCII_USUAL, WIDE_USUAL);
    else if (!(ascii & ~ASCII_CASED) && !(others & ~WIDE_CASED))
        classify(masks, tables, text, count, readable, ASCII_CASED, WIDE_CASED);
    else if (!(ascii & ~ASCII_DEEPSEEK) && !(others & ~WIDE_DEEPSEEK))
        classify(masks, tables, text, count, readable, ASCII_DEEPSEEK, WIDE_DEEPSEEK);
    else
        classify(masks, tables, text, count, readable, (1u << SCAN_KINDS) - 1, SCAN_SLASH - 1);
}

#endif
