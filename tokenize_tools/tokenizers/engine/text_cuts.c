/* SPDX-License-Identifier: MIT */
/* text_cuts.c - see text_cuts.h. */
#include "text_cuts.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/bytes.h"
#include "text/code_point.h"
#include "unicode/code_sets.h"

static const struct text_cuts known[] = {{"kimi", 400000, 25000}, {"llama3", 400000, 25000}, {"llama4", 400000, 25000}};

const struct text_cuts *text_cuts_named(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(name, known[i].name))
            return &known[i];
    return NULL;
}

const char *text_cuts_names(void)
{
    return "kimi llama3 llama4";
}

/* Returns whether Python calls the character that begins at `at` white space, and the number of its bytes. */
static bool is_space(const uint8_t *at, size_t *bytes)
{
    *bytes = 1;
    if (*at < 0x80)
        return (*at >= 0x09 && *at <= 0x0D) || (*at >= 0x1C && *at <= 0x20);
    return code_is_space(code_point_get(at, bytes));
}

uint64_t text_cuts_part(const struct text_cuts *cuts, const char *text, uint64_t count, uint32_t *block)
{
    const uint8_t *bytes = (const uint8_t *)text;
    uint32_t run = 0;
    bool in_space = false;
    assert(count && *block);
    if (count <= *block && count <= cuts->run) { /* the usual case */
        *block -= (uint32_t)count;               /* what is left does not matter after the last part */
        return count;
    }
    for (uint64_t at = 0; at < count;) {
        size_t length;
        const bool space = is_space(bytes + at, &length);
        run = run && space == in_space ? run + 1 : 1;
        in_space = space;
        if (run > cuts->run)
            return at;
        at += length;
        if (!--*block) {
            *block = cuts->characters;
            return at;
        }
    }
    return count;
}

uint64_t text_cuts_block(const struct text_cuts *cuts, const char *text, uint64_t count)
{
    uint64_t found = 0;
    uint32_t characters = 0;
    for (uint64_t at = 0; at < count; at++) {
        if (((uint8_t)text[at] & 0xC0) == 0x80)
            continue;
        if (characters++ == cuts->characters) {
            found = at;
            characters = 1;
        }
    }
    return found;
}
