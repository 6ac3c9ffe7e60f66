/* SPDX-License-Identifier: MIT */
/* char_map.c - what becomes of single characters; see char_map.h. */
#include "char_map.h"

#include "platform/os.h"
#include "text/code_point.h"

static bool map_run(int map, uint32_t code, uint32_t *end)
{
    const struct case_range *range;
    bool has;
    switch ((enum char_map)map) {
    case CHAR_MAP_LOWER:
        range = code_find(case_ranges, sizeof *range, CASE_RANGES, code);
        *end = !range ? CODES : range->first > code ? range->first : code + 1;
        return code_lower(code) != code;
    case CHAR_MAP_BERT_CLEAN:
        has = code_set_run(&code_sets[CODE_BERT_CONTROL], code, end);
        if (code > 0x3000) /* no white space is above it */
            return has;
        *end = code + 1;
        return has || (code_is_space(code) && code != ' ');
    case CHAR_MAP_BERT_CHINESE:
        *end = (code | 15) + 1; /* all ranges have whole blocks of 16 */
        return code_is_chinese(code);
    case CHAR_MAP_BERT_MARKS:
        return code_set_run(&code_sets[CODE_BERT_MARKS], code, end);
    case CHAR_MAP_MARKS:
        return code_set_run(&code_sets[CODE_MARKS], code, end);
    case CHAR_MAP_NMT:
    case CHAR_MAPS:
    default:
        return code_set_run(&code_sets[CODE_NMT], code, end);
    }
}

const struct code_bits *char_map_set(enum char_map map)
{
    static struct code_bits sets[CHAR_MAPS];
    static bool made[CHAR_MAPS];
    os_process_lock();
    if (!made[map])
        code_bits_add_runs(&sets[map], map_run, (int)map);
    made[map] = true;
    os_process_unlock();
    return &sets[map];
}

size_t char_map_put(enum char_map map, uint8_t *into, uint32_t code)
{
    if (map == CHAR_MAP_LOWER) {
        const size_t bytes = code_point_put(into, code_lower(code));
        return bytes + (code == 0x130 ? code_point_put(into + bytes, 0x307) : 0);
    }
    *into = ' ';
    if (map == CHAR_MAP_BERT_CHINESE) {
        const size_t bytes = 1 + code_point_put(into + 1, code);
        into[bytes] = ' ';
        return bytes + 1;
    }
    return (map == CHAR_MAP_NMT && !code_set_has(CODE_NMT_REMOVED, code)) ||
           (map == CHAR_MAP_BERT_CLEAN && !code_set_has(CODE_BERT_CONTROL, code));
}
