/*
 * utf8_avx2.c - is it UTF-8, 32 bytes at a time, by the method of Keiser and Lemire ("Validating UTF-8 In Less Than One
 * Instruction Per Byte", 2020): what can be wrong between a byte and the one before it shows in three groups of four
 * bits, so three table look-ups, each giving the set of errors that its four bits allow, are enough: a bit that is in
 * all three is an error. Only whether second and third continuation bytes stand where they must is asked apart.
 */
#include "utf8_fast.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

enum {
    SHORT = 1 << 0,              /* a lead without its continuation */
    LONG = 1 << 1,               /* a continuation behind ASCII */
    OVERLONG_3 = 1 << 2,         /* e0 80..9f */
    LARGE = 1 << 3,              /* f4 90.., f5.. 90.. */
    SURROGATE = 1 << 4,          /* ed a0..bf */
    OVERLONG_2 = 1 << 5,         /* c0, c1 */
    OVERLONG_4 = 1 << 6,         /* f0 80..8f */
    LARGE_80 = 1 << 6,           /* f5.. 80..8f: shares a bit, since they differ in the low half of the lead */
    TWO = 1 << 7,                /* a continuation behind a continuation: an error unless a long sequence asks for it */
    ANY_LOW = SHORT | LONG | TWO /* that do not depend on the low half of the first byte */
};

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

static inline __m256i high_half(__m256i bytes)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
}

/* The bytes that stand `n` before each of `now`. */
#define BEFORE(now, before, n) _mm256_alignr_epi8(now, _mm256_permute2x128_si256(before, now, 0x21), 16 - (n))

/* Not zero where something is wrong. */
static inline __m256i block_check(__m256i now, __m256i before)
{
    const __m256i first_high =
        TWICE(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, (char)TWO, (char)TWO, (char)TWO, (char)TWO,
              SHORT | OVERLONG_2, SHORT, SHORT | OVERLONG_3 | SURROGATE, SHORT | LARGE | LARGE_80 | OVERLONG_4);
    const __m256i first_low = TWICE(
        (char)(ANY_LOW | OVERLONG_3 | OVERLONG_2 | OVERLONG_4), (char)(ANY_LOW | OVERLONG_2), (char)ANY_LOW,
        (char)ANY_LOW, (char)(ANY_LOW | LARGE), (char)(ANY_LOW | LARGE | LARGE_80), (char)(ANY_LOW | LARGE | LARGE_80),
        (char)(ANY_LOW | LARGE | LARGE_80), (char)(ANY_LOW | LARGE | LARGE_80), (char)(ANY_LOW | LARGE | LARGE_80),
        (char)(ANY_LOW | LARGE | LARGE_80), (char)(ANY_LOW | LARGE | LARGE_80), (char)(ANY_LOW | LARGE | LARGE_80),
        (char)(ANY_LOW | LARGE | LARGE_80 | SURROGATE), (char)(ANY_LOW | LARGE | LARGE_80),
        (char)(ANY_LOW | LARGE | LARGE_80));
    const __m256i second_high =
        TWICE(SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT,
              (char)(LONG | OVERLONG_2 | TWO | OVERLONG_3 | LARGE_80 | OVERLONG_4),
              (char)(LONG | OVERLONG_2 | TWO | OVERLONG_3 | LARGE), (char)(LONG | OVERLONG_2 | TWO | SURROGATE | LARGE),
              (char)(LONG | OVERLONG_2 | TWO | SURROGATE | LARGE), SHORT, SHORT, SHORT, SHORT);
    const __m256i one = BEFORE(now, before, 1), two = BEFORE(now, before, 2), three = BEFORE(now, before, 3);
    const __m256i wrong =
        _mm256_and_si256(_mm256_and_si256(_mm256_shuffle_epi8(first_high, high_half(one)),
                                          _mm256_shuffle_epi8(first_low, _mm256_and_si256(one, _mm256_set1_epi8(15)))),
                         _mm256_shuffle_epi8(second_high, high_half(now)));
    /* The top bit where two before stands a lead of three or four bytes, or three before one of four. */
    const __m256i asked = _mm256_or_si256(_mm256_subs_epu8(two, _mm256_set1_epi8((char)(0xe0 - 0x80))),
                                          _mm256_subs_epu8(three, _mm256_set1_epi8((char)(0xf0 - 0x80))));
    return _mm256_xor_si256(_mm256_and_si256(asked, _mm256_set1_epi8((char)0x80)), wrong);
}

/* Not zero where a sequence goes on behind these bytes. */
static inline __m256i open_end(__m256i bytes)
{
    const char all = (char)0xff;
    return _mm256_subs_epu8(bytes,
                            _mm256_setr_epi8(all, all, all, all, all, all, all, all, all, all, all, all, all, all, all,
                                             all, all, all, all, all, all, all, all, all, all, all, all, all, all,
                                             (char)(0xf0 - 1), (char)(0xe0 - 1), (char)(0xc0 - 1)));
}

bool utf8_valid_avx2(const char *bytes, size_t count)
{
    __m256i before = _mm256_setzero_si256(), wrong = before;
    size_t at = 0;
    for (; count - at >= 64; at += 64) {
        const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + at));
        const __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + at + 32));
        if (!_mm256_movemask_epi8(_mm256_or_si256(first, second))) {
            wrong = _mm256_or_si256(wrong, open_end(before));
        } else {
            wrong = _mm256_or_si256(wrong, block_check(first, before));
            wrong = _mm256_or_si256(wrong, block_check(second, first));
        }
        before = second;
    }
    /* What is left, behind it zeros: a sequence that is cut is then one that ASCII interrupts. */
    char rest[96] = {0};
    memcpy(rest, bytes + at, count - at);
    for (size_t i = 0; i < sizeof rest; i += 32) {
        const __m256i now = _mm256_loadu_si256((const __m256i *)(const void *)(rest + i));
        wrong = _mm256_or_si256(wrong, block_check(now, before));
        before = now;
    }
    return _mm256_testz_si256(wrong, wrong);
}
#else
typedef int utf8_avx2_is_for_x86_64;
#endif
