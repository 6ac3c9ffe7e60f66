/* SPDX-License-Identifier: MIT */
/* char_map.c - what becomes of single characters; see char_map.h. */
#include "char_map.h"

#include <assert.h>
#include <string.h>

#include "text/code_point.h"

static uint32_t lower(uint32_t code)
{
    uint32_t low = 0, high = CASE_RANGES;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (case_ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low < CASE_RANGES && case_ranges[low].first <= code);
    return code + (uint32_t)case_ranges[low].delta;
}

static bool nmt_removes(uint32_t code)
{
    for (uint32_t i = 0; i < NMT_REMOVED; i++)
        if (code >= nmt_removed[i].first && code <= nmt_removed[i].last)
            return true;
    return false;
}

size_t char_map_put(enum char_map map, uint8_t *into, uint32_t code)
{
    if (map == CHAR_MAP_LOWER) {
        if (code == 0x130) {
            memcpy(into, "i\xCC\x87", 3);
            return 3;
        }
        return code_point_put(into, lower(code));
    }
    *into = ' ';
    return map == CHAR_MAP_NMT && !nmt_removes(code);
}
