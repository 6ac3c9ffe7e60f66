/* SPDX-License-Identifier: MIT */
/* code_scripts.c - see code_scripts.h. */
#include "code_scripts.h"

uint8_t code_script(uint32_t code)
{
    uint32_t low = 0, high = SCRIPT_SPANS;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (script_spans[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < SCRIPT_SPANS && script_spans[low].first <= code ? script_spans[low].script : SCRIPT_ANY;
}
