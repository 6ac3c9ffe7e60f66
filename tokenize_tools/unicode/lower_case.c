/* SPDX-License-Identifier: MIT */
/*
 * lower_case.c - see lower_case.h.
 *
 * Example: U+0100 to U+012F are pairs of an upper and a lower case letter. One range has them: first U+0100, last
 * U+012E, delta 1, step 2. U+0101 is in it by its number, but not by its step, so it stays as it is.
 */
#include "lower_case.h"

#include "lower_case_tables.h"
#include "text/code_point.h"

uint32_t lower_case(uint32_t code)
{
    size_t low = 0, high = LOWER_RANGES;
    if (code == 0x130)
        return 'i';
    if (code == LOWER_SIGMA)
        return 0x3C3;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (lower_ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == LOWER_RANGES || lower_ranges[low].first > code ||
        (code - lower_ranges[low].first) % lower_ranges[low].step)
        return code;
    return code + (uint32_t)lower_ranges[low].delta;
}

static bool ranges_have(const struct code_range *ranges, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].first <= code;
}

static bool is_ignored(uint32_t code)
{
    return ranges_have(lower_ignored, LOWER_IGNORED, code);
}

static bool is_cased(uint32_t code)
{
    return ranges_have(lower_cased, LOWER_CASED, code);
}

bool lower_sigma_is_final(const uint8_t *text, size_t count, size_t at)
{
    size_t bytes = 2;
    uint32_t code = 0;
    bool found = false;
    for (size_t before = at; before && !found;) {
        do
            before--;
        while (before && (text[before] & 0xC0) == 0x80);
        code = code_point_get(text + before, &bytes);
        found = !is_ignored(code);
    }
    if (!found || !is_cased(code))
        return false;
    for (size_t after = at + 2; after < count; after += bytes) {
        code = code_point_get(text + after, &bytes);
        if (!is_ignored(code))
            return !is_cased(code);
    }
    return true;
}
