/* SPDX-License-Identifier: MIT */
/* code_point.h - converts one character between valid UTF-8 and its code point. Without checks, for loops that must be
 * fast. */
#ifndef TOKMAP_TEXT_CODE_POINT_H
#define TOKMAP_TEXT_CODE_POINT_H

#include <stddef.h>
#include <stdint.h>

#define CODES 0x110000u /* code points are below it */

/* Returns the code point of the character at `at` and stores the number of its bytes, all of which must be there and
 * valid. */
static inline uint32_t code_point_get(const uint8_t *at, size_t *bytes)
{
    const uint32_t lead = at[0];
    if (lead < 0x80) {
        *bytes = 1;
        return lead;
    }
    if (lead < 0xE0) {
        *bytes = 2;
        return (lead & 31) << 6 | (at[1] & 63u);
    }
    if (lead < 0xF0) {
        *bytes = 3;
        return (lead & 15) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u);
    }
    *bytes = 4;
    return (lead & 7) << 18 | (at[1] & 63u) << 12 | (at[2] & 63u) << 6 | (at[3] & 63u);
}

/* Returns the offset of the character that ends before `at`, which is above 0. */
static inline size_t code_point_before(const uint8_t *text, size_t at)
{
    do
        at--;
    while (at && (text[at] & 0xC0) == 0x80);
    return at;
}

/* Writes a character as UTF-8, 1 to 4 bytes, and returns their number. */
static inline size_t code_point_put(uint8_t *into, uint32_t code)
{
    if (code < 0x80) {
        into[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        into[0] = (uint8_t)(0xC0 | code >> 6);
        into[1] = (uint8_t)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        into[0] = (uint8_t)(0xE0 | code >> 12);
        into[1] = (uint8_t)(0x80 | (code >> 6 & 63));
        into[2] = (uint8_t)(0x80 | (code & 63));
        return 3;
    }
    into[0] = (uint8_t)(0xF0 | code >> 18);
    into[1] = (uint8_t)(0x80 | (code >> 12 & 63));
    into[2] = (uint8_t)(0x80 | (code >> 6 & 63));
    into[3] = (uint8_t)(0x80 | (code & 63));
    return 4;
}

#endif
