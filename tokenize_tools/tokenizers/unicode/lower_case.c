/* SPDX-License-Identifier: MIT */
/* lower_case.c - see lower_case.h. */
#include "lower_case.h"

#include "code_sets.h"
#include "text/code_point.h"

uint32_t lower_case(uint32_t code)
{
    return code_set_has(CODE_LOWER_LATER, code) ? code : code_lower(code);
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
        found = !code_set_has(CODE_CASE_IGNORED, code);
    }
    if (!found || !code_set_has(CODE_CASED, code))
        return false;
    for (size_t after = at + 2; after < count; after += bytes) {
        code = code_point_get(text + after, &bytes);
        if (!code_set_has(CODE_CASE_IGNORED, code))
            return !code_set_has(CODE_CASED, code);
    }
    return true;
}
