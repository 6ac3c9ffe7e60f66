/* SPDX-License-Identifier: MIT */
/*
 * utf8_avx2.c - whether a text is UTF-8, 32 bytes at a time, by the method of Keiser and Lemire ("Validating UTF-8 In
 * Less Than One Instruction Per Byte", 2020).
 *
 * Nearly every error of UTF-8 shows in two neighboring bytes, and in three groups of four bits of them: the high and
 * the low half of the first byte, and the high half of the second. For each kind of error there is one bit (below).
 * Each group selects, by a table of 16 entries, the set of errors that its four bits allow. An error is present exactly
 * if its bit is in all three sets, so three table look-ups and two ANDs find all of them.
 *
 * Example: in ed a0 (a surrogate) the high half e allows SURROGATE and a few others, the low half d allows SURROGATE
 * and others, and the high half a of the second byte allows SURROGATE: the bit survives both ANDs. In ed 9f it does
 * not, because 9 does not allow it.
 *
 * What two bytes cannot show is whether third and fourth bytes of long sequences are where they must be, and only
 * there. Two comparisons with the bytes two and three positions before find that.
 */
#include "utf8.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

enum {
    SHORT = 1 << 0,      /* a first byte without a continuation byte after it */
    LONG = 1 << 1,       /* a continuation byte after ASCII */
    OVERLONG_3 = 1 << 2, /* e0 80..9f */
    LARGE = 1 << 3,      /* f4 90.., f5.. 90.. */
    SURROGATE = 1 << 4,  /* ed a0..bf */
    OVERLONG_2 = 1 << 5, /* c0, c1 */
    OVERLONG_4 = 1 << 6, /* f0 80..8f */
    LARGE_80 = 1 << 6, /* f5.. 80..8f: shares the bit of OVERLONG_4; the low half of the first byte tells them apart */
    TWO = 1 << 7,      /* a continuation byte after another: an error unless a long sequence needs it */
    ANY_LOW = SHORT | LONG | TWO /* errors that do not depend on the low half of the first byte */
};

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

static inline __m256i high_half(__m256i bytes)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
}

/* For each byte of `now`, the byte `n` positions before it; `before` is the vector before `now`. */
#define BEFORE(now, before, n) _mm256_alignr_epi8(now, _mm256_permute2x128_si256(before, now, 0x21), 16 - (n))

/* Nonzero bytes where there is an error. */
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
    /* The top bit is set where a sequence of three or four bytes begins two positions before, or one of four bytes
     * begins three positions before: only there must a continuation byte follow another. */
    const __m256i asked = _mm256_or_si256(_mm256_subs_epu8(two, _mm256_set1_epi8((char)(0xe0 - 0x80))),
                                          _mm256_subs_epu8(three, _mm256_set1_epi8((char)(0xf0 - 0x80))));
    return _mm256_xor_si256(_mm256_and_si256(asked, _mm256_set1_epi8((char)0x80)), wrong);
}

/* Nonzero if a sequence continues after these bytes. */
static inline __m256i open_end(__m256i bytes)
{
    const char all = (char)0xff;
    return _mm256_subs_epu8(bytes,
                            _mm256_setr_epi8(all, all, all, all, all, all, all, all, all, all, all, all, all, all, all,
                                             all, all, all, all, all, all, all, all, all, all, all, all, all, all,
                                             (char)(0xf0 - 1), (char)(0xe0 - 1), (char)(0xc0 - 1)));
}

static inline bool are_ascii_64(const char *bytes)
{
    const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)bytes);
    const __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + 32));
    return !_mm256_movemask_epi8(_mm256_or_si256(first, second));
}

bool utf8_valid_avx2(const char *bytes, size_t count)
{
    __m256i before = _mm256_setzero_si256(), wrong = before;
    size_t at = 0;
    while (count - at > 64 && are_ascii_64(bytes + at))
        at += 64;
    if (count >= 64 && count - at <= 64 && are_ascii_64(bytes + count - 64)) /* nearly every English text */
        return true;
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
    /* The rest is followed by zeros, so an incomplete sequence at the end becomes one that ASCII interrupts. */
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
