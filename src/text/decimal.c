/* SPDX-License-Identifier: MIT */
#include "decimal.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"

bool decimal_read(const char **text, const char *end, uint64_t *number)
{
    const char *at = *text;
    uint64_t value = 0;
    assert(at && (!end || at <= end));
    for (; at != end && decimal_is_digit(*at); at++)
        if (mul_overflows(value, 10, &value) || add_overflows(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at == *text)
        return false;
    *text = at;
    *number = value;
    return true;
}

bool decimal_parse(const char *text, size_t count, uint64_t *number)
{
    const char *at = text;
    uint64_t value;
    if (!decimal_read(&at, text + count, &value) || at != text + count)
        return false;
    *number = value;
    return true;
}

/* Writes two digits at a time, because a division by 100 costs as much as one by 10. */
size_t decimal_write(uint64_t number, char text[DECIMAL_DIGITS_MOST])
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char reversed[DECIMAL_DIGITS_MOST];
    size_t at = sizeof reversed;
    while (number >= 100) {
        at -= 2;
        memcpy(reversed + at, pairs + number % 100 * 2, 2);
        number /= 100;
    }
    if (number >= 10) {
        at -= 2;
        memcpy(reversed + at, pairs + number * 2, 2);
    } else {
        reversed[--at] = (char)('0' + number);
    }
    memcpy(text, reversed + at, sizeof reversed - at);
    return sizeof reversed - at;
}

bool decimal_parse_point(const char *text, size_t count, uint32_t most, uint64_t *number, uint32_t *decimals)
{
    const char *point = memchr(text, '.', count);
    size_t whole = point ? (size_t)(point - text) : count;
    size_t after = point ? count - whole - 1 : 0;
    if (whole + after == 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!decimal_is_digit(text[i]) && text + i != point)
            return false;
    while (after > 0 && point[after] == '0')
        after--;
    if (after > most)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < whole + after; i++) {
        const unsigned digit = (unsigned)((i < whole ? text[i] : point[1 + i - whole]) - '0');
        if (mul_overflows(value, 10, &value) || add_overflows(value, digit, &value))
            return false;
    }
    *number = value;
    *decimals = (uint32_t)after;
    return true;
}

bool decimal_parse_tokens(const char *text, uint64_t *tokens)
{
    static const char suffixes[] = "KkMBGT";
    static const uint32_t zeros[] = {3, 3, 6, 9, 9, 12};
    size_t length = strlen(text);
    uint32_t scale = 0, decimals;
    uint64_t number;
    if (length == 0)
        return false;
    const char *suffix = strchr(suffixes, text[length - 1]);
    if (suffix) {
        scale = zeros[suffix - suffixes];
        length--;
    }
    if (!decimal_parse_point(text, length, scale, &number, &decimals))
        return false;
    for (; decimals < scale; decimals++)
        if (mul_overflows(number, 10, &number))
            return false;
    *tokens = number;
    return true;
}
