/* SPDX-License-Identifier: MIT */
/* sp_cut_vbmi.c - cutting with AVX-512 (VBMI): 64 borders at once, by two lookups for each byte. */
#include "sp_cut.h"

#include "bpe/bpe_model.h"

#if defined(__x86_64__)

#include <immintrin.h>

struct tables {
    __m512i left[2][2], right[2][2]; /* [groups 0 to 7 or 8 to 15][half]: of the 128 bytes of ASCII */
    __m512i left_lead[3][2]; /* of first bytes from 0xC0 on: only those of characters of two, three, or four bytes */
    __m512i right_lead[2];
};

static inline void load_tables(struct tables *tables, const struct sp_cut_table *table)
{
    const uint64_t lengths[3] = {0x00000000FFFFFFFF, 0x0000FFFF00000000, 0xFFFF000000000000};
    for (int set = 0; set < 2; set++) {
        for (int half = 0; half < 2; half++) {
            tables->left[set][half] = _mm512_loadu_si512(table->left[set] + 64 * half);
            tables->right[set][half] = _mm512_loadu_si512(table->right[set] + 64 * half);
        }
        for (int length = 0; length < 3; length++)
            tables->left_lead[length][set] = _mm512_maskz_loadu_epi8(lengths[length], table->left[set] + 192);
        tables->right_lead[set] = _mm512_loadu_si512(table->right[set] + 192);
    }
}

/* Returns the 64 bytes that begin some bytes before those of `now`: how many is in `places`. */
static inline __m512i shifted(__m512i before, __m512i now, __m512i places)
{
    return _mm512_permutex2var_epi8(before, places, now);
}

/* Returns the borders that tokens may cross, with a bit for each byte inside a character too. */
static inline uint64_t joined_wide(const struct tables *tables, __m512i before, __m512i now, const __m512i places[4])
{
    const __m512i first = _mm512_set1_epi8((char)0xC0);
    uint64_t joined = 0;
    const __m512i previous = shifted(before, now, places[0]);
    const uint64_t ascii = ~_mm512_movepi8_mask(previous), ascii_now = ~_mm512_movepi8_mask(now);
    const uint64_t leads = _mm512_cmpge_epu8_mask(now, first);
    __m512i left[2], right[2];
    for (int set = 0; set < 2; set++) {
        left[set] = _mm512_maskz_permutex2var_epi8(ascii, tables->left[set][0], previous, tables->left[set][1]);
        right[set] = _mm512_maskz_permutex2var_epi8(ascii_now, tables->right[set][0], now, tables->right[set][1]);
        right[set] = _mm512_mask_permutexvar_epi8(right[set], leads, now, tables->right_lead[set]);
    }
    for (int length = 0; length < 3; length++) {
        const __m512i lead = shifted(before, now, places[length + 1]);
        const uint64_t are = _mm512_cmpge_epu8_mask(lead, first);
        for (int set = 0; set < 2; set++)
            left[set] =
                _mm512_or_si512(left[set], _mm512_maskz_permutexvar_epi8(are, lead, tables->left_lead[length][set]));
    }
    for (int set = 0; set < 2; set++)
        joined |= _mm512_test_epi8_mask(left[set], right[set]);
    return joined | (~ascii_now & ~leads); /* bytes inside characters */
}

/* Does the same if all bytes are ASCII, and the one before too. */
static inline uint64_t joined_ascii(const struct tables *tables, __m512i before, __m512i now, const __m512i places[4])
{
    const __m512i previous = shifted(before, now, places[0]);
    uint64_t joined = 0;
    for (int set = 0; set < 2; set++)
        joined |= _mm512_test_epi8_mask(_mm512_permutex2var_epi8(tables->left[set][0], previous, tables->left[set][1]),
                                        _mm512_permutex2var_epi8(tables->right[set][0], now, tables->right[set][1]));
    return joined;
}

/* sp_cut_tall() for eight borders at once. (It need not read edge_joins: tokens here consist of whole characters.) */
static inline uint64_t cut_tall(const struct bpe_model *joins, const uint8_t *text, size_t from, size_t readable,
                                uint64_t open, __m512i numbers)
{
    const __m512i eights = _mm512_and_si512(numbers, _mm512_set1_epi8(7)),
                  eighths = _mm512_and_si512(_mm512_srli_epi16(numbers, 3), _mm512_set1_epi8(7));
    const size_t rest = readable - from + 3, more = rest > 64 ? rest - 64 : 0;
    const uint64_t there = _bzhi_u64(from ? UINT64_MAX : ~(uint64_t)7, rest < 64 ? (uint32_t)rest : 64);
    const __m512i block = _mm512_maskz_loadu_epi8(there, text + from - 3),
                  next =
                      _mm512_maskz_loadu_epi8(_bzhi_u64(UINT64_MAX, more < 8 ? (uint32_t)more : 8), text + from + 61);
    const __m512i borders = _mm512_maskz_compress_epi8(open, numbers);
    const uint32_t count = (uint32_t)_mm_popcnt_u64(open);
    uint64_t cuts = 0;
    for (uint32_t i = 0; i < count; i += 8) {
        const __m512i at = _mm512_permutexvar_epi8(_mm512_add_epi8(eighths, _mm512_set1_epi8((char)i)), borders);
        __m512i six = _mm512_permutex2var_epi8(block, _mm512_add_epi8(at, eights), next);
        six = _mm512_and_si512(six, _mm512_set1_epi64(0xFFFFFFFFFFFF));
        const __m512i hash = _mm512_srli_epi64(
            _mm512_mullo_epi64(six, _mm512_set1_epi64((long long)0x9E3779B97F4A7C15u)), 64 - BPE_JOIN_BITS);
        const __m512i words = _mm512_i64gather_epi64(_mm512_srli_epi64(hash, 6), joins->joins, 8);
        const __m512i bits = _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_and_si512(hash, _mm512_set1_epi64(63)));
        cuts |= (uint64_t)_mm512_testn_epi64_mask(words, bits) << i;
    }
    return _pdep_u64(cuts, open);
}

bool sp_cut_vbmi(const struct sp_cut_table *table, const struct bpe_model *joins, const uint8_t *text, size_t count,
                 size_t readable, uint64_t *starts)
{
    static const uint8_t numbers[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    struct tables tables;
    const __m512i all = _mm512_load_si512(numbers);
    __m512i places[4], before = _mm512_setzero_si512();
    load_tables(&tables, table);
    for (int back = 1; back <= 4; back++)
        places[back - 1] = _mm512_add_epi8(all, _mm512_set1_epi8((char)(64 - back)));
    uint64_t was_wide = 0, marked = 0;
    for (size_t from = 0; from < count; from += 64) {
        const size_t bytes = count - from < 64 ? count - from : 64;
        const uint64_t valid = bytes == 64 ? UINT64_MAX : ((uint64_t)1 << bytes) - 1;
        const __m512i now = _mm512_maskz_loadu_epi8(valid, text + from);
        const uint64_t wide = _mm512_movepi8_mask(now);
        uint64_t joined;
        if (!(wide | was_wide)) {
            joined = joined_ascii(&tables, before, now, places);
        } else {
            joined = joined_wide(&tables, before, now, places);
            const __m512i tall = _mm512_set1_epi8((char)0xE0);
            if (table->tall) {
                const uint64_t open = joined & _mm512_cmpge_epu8_mask(now, tall) &
                                      _mm512_cmpge_epu8_mask(shifted(before, now, places[2]), tall);
                if (open)
                    joined &= ~cut_tall(joins, text, from, readable, open, all);
            }
            uint64_t marks = _mm512_cmpeq_epi8_mask(now, _mm512_set1_epi8((char)0xE2));
            for (; marks; marks &= marks - 1) {
                const size_t at = from + (size_t)__builtin_ctzll(marks);
                marked |= readable - at >= 3 && text[at + 1] == 0x96 && text[at + 2] == 0x81;
            }
        }
        starts[from / 64] = ~joined & valid;
        before = now;
        was_wide = wide;
    }
    starts[0] |= 1;
    return marked && table->marks;
}

#endif
