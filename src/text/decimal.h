/* SPDX-License-Identifier: MIT */
/* decimal.h - decimal numbers, as text and back. Only the digits 0 to 9 count: no sign, no spaces, no separators. */
#ifndef TOKMAP_TEXT_DECIMAL_H
#define TOKMAP_TEXT_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool decimal_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Reads the digits that start at *text and end before the first byte that is not a digit, at the latest at `end`. `end`
 * may be NULL if the text ends with a zero byte. On success stores the number and moves *text past the last digit.
 * Returns false, and changes neither, if there is no digit or the number does not fit. */
bool decimal_read(const char **text, const char *end, uint64_t *number);

/* Reads a text of `count` bytes that consists of digits only. Returns false, and leaves *number alone, if the text is
 * empty, contains any other byte, or stands for a number of 2^64 or more. */
bool decimal_parse(const char *text, size_t count, uint64_t *number);

/* Reads a text of `count` bytes that consists of digits with at most one point among or before them: "3", "0.25", ".5".
 * Zeros at the end after the point are dropped. The value is *number / 10^*decimals. Returns false, and leaves both
 * alone, if the text is no such number, if *number would be 2^64 or more, or if *decimals would be more than `most`. */
bool decimal_parse_point(const char *text, size_t count, uint32_t most, uint64_t *number, uint32_t *decimals);

/* Reads a number of tokens as people write it: digits, perhaps a point, and perhaps a suffix, K or k (10^3), M (10^6),
 * B or G (10^9), or T (10^12): "4096", "300B", "1.5T". Returns false, and leaves the result alone, if the text has
 * another form, or if the number is not whole or does not fit. */
bool decimal_parse_tokens(const char *text, uint64_t *tokens);

#define DECIMAL_DIGITS_MOST 20

/* Writes the digits of a number without a terminating zero byte and returns how many there are. Faster than printf by
 * an order of magnitude, for output that consists of numbers. */
size_t decimal_write(uint64_t number, char text[DECIMAL_DIGITS_MOST]);

#endif
