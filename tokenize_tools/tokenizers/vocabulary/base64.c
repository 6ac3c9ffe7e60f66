/* SPDX-License-Identifier: MIT */
/* base64.c - decodes base64 as RFC 4648 defines it: padded, without line breaks, unused bits zero. */
#include "base64.h"

#include <stdbool.h>

/* The value of each character: 0 to 63 for a digit, 64 for '=', 255 for any other. */
#define NONE_4 255, 255, 255, 255
#define NONE_16 NONE_4, NONE_4, NONE_4, NONE_4
#define NONE_128 NONE_16, NONE_16, NONE_16, NONE_16, NONE_16, NONE_16, NONE_16, NONE_16
/* clang-format off */
static const uint8_t digit_values[256] = {
    NONE_16, NONE_16, NONE_4, NONE_4, 255, 255, 255, 62, 255, 255, 255, 63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 255, 255, 255, 64, 255, 255,
    255, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    255, NONE_4,
    255, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
    255, NONE_4,
    NONE_128,
};
/* clang-format on */

uint32_t base64_decode(uint8_t *into, const uint8_t *text, uint64_t count)
{
    uint32_t made = 0;
    if (!count || count % 4 || count > (1u << 24))
        return 0;
    for (uint64_t i = 0; i < count; i += 4) {
        const uint8_t a = digit_values[text[i]], b = digit_values[text[i + 1]], c = digit_values[text[i + 2]];
        const uint8_t d = digit_values[text[i + 3]];
        if (__builtin_expect((a | b | c | d) < 64, 1)) {
            into[made++] = (uint8_t)(a << 2 | b >> 4);
            into[made++] = (uint8_t)(b << 4 | c >> 2);
            into[made++] = (uint8_t)(c << 6 | d);
            continue;
        }
        const bool last = i + 4 == count;
        if ((a | b) > 63 || c > 64 || d > 64 || (c == 64 && d != 64) || (d == 64 && !last))
            return 0;
        if ((c == 64 && (b & 15)) || (c != 64 && d == 64 && (c & 3)))
            return 0; /* the unused bits of the last digit are not zero */
        into[made++] = (uint8_t)(a << 2 | b >> 4);
        if (c != 64)
            into[made++] = (uint8_t)(b << 4 | c >> 2);
        if (d != 64)
            into[made++] = (uint8_t)(c << 6 | d);
    }
    return made;
}
