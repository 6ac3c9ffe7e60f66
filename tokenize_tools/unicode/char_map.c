/* SPDX-License-Identifier: MIT */
/* char_map.c - what becomes of single characters; see char_map.h. */
#include "char_map.h"

#include <pthread.h>
#include <string.h>

#include "text/code_point.h"

static struct code_bits sets[CHAR_MAPS];

static bool map_run(int map, uint32_t code, uint32_t *end)
{
    if (map != CHAR_MAP_LOWER)
        return code_set_run(map == CHAR_MAP_MARKS ? CODE_MARKS : CODE_NMT, code, end);
    const struct case_range *range = code_find(case_ranges, sizeof *range, CASE_RANGES, code);
    *end = !range ? CODES : range->first > code ? range->first : code + 1;
    return code_lower(code) != code;
}

static void sets_make(void)
{
    for (int map = 0; map < CHAR_MAPS; map++)
        code_bits_add_runs(&sets[map], map_run, map);
}

const struct code_bits *char_map_set(enum char_map map)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, sets_make);
    return &sets[map];
}

size_t char_map_put(enum char_map map, uint8_t *into, uint32_t code)
{
    if (map == CHAR_MAP_LOWER) {
        if (code == 0x130) {
            memcpy(into, "i\xCC\x87", 3);
            return 3;
        }
        return code_point_put(into, code_lower(code));
    }
    *into = ' ';
    return map == CHAR_MAP_NMT && !code_set_has(CODE_NMT_REMOVED, code);
}
