/* SPDX-License-Identifier: MIT */
/*
 * code_sets.c - which set a code point is in.
 *
 * The class of a character (classes.h) tells its category or leaves a few. The most frequent of these is the usual
 * one, and category_spans has the characters of the others: U+0301 is a mark and in no span, so it is Mn.
 */
#include "code_sets.h"

#include "classes.h"
#include "common/bytes.h"
#include "text/code_point.h"

#define BIT(name) (UINT32_C(1) << CODE_##name)
#define REST (BIT(ZS) | BIT(ZL) | BIT(ZP) | BIT(CC) | BIT(CF) | BIT(CO) | BIT(CN))

static const struct {
    uint32_t possible, usual; /* categories, as bits */
} class_categories[CLASS_KINDS] = {
    [CLASS_OTHER] = {REST, BIT(CN)},
    [CLASS_UPPER] = {BIT(LU), BIT(LU)},
    [CLASS_TITLE] = {BIT(LT), BIT(LT)},
    [CLASS_LOWER] = {BIT(LL), BIT(LL)},
    [CLASS_MODIFIER] = {BIT(LM), BIT(LM)},
    [CLASS_LETTER] = {BIT(LO), BIT(LO)},
    [CLASS_MARK] = {BIT(MN) | BIT(MC) | BIT(ME), BIT(MN)},
    [CLASS_NUMBER] = {BIT(ND) | BIT(NL) | BIT(NO), BIT(NO)},
    [CLASS_PUNCTUATION] = {BIT(PC) | BIT(PD) | BIT(PS) | BIT(PE) | BIT(PI) | BIT(PF) | BIT(PO), BIT(PO)},
    [CLASS_SYMBOL] = {BIT(SM) | BIT(SC) | BIT(SK) | BIT(SO), BIT(SO)},
    [CLASS_SPACE] = {REST, BIT(ZS)},
    [CLASS_NEWLINE] = {REST, BIT(ZS)},
};

/* Returns the block of classes.h that has the class of a code point at its last 6 bits, or at all places. */
static const uint8_t *block_of(uint32_t code)
{
    if (code < 0x800)
        return class_blocks[class_first[code]];
    const uint32_t first = class_first[code < 0x10000 ? 2048 + (code >> 6) : 3072 + (code >> 12)];
    return class_blocks[code < 0x10000 ? first : class_middle[first][code >> 6 & 63]];
}

static uint8_t class_of(uint32_t code)
{
    return (code < 0x80 ? class_ascii[code] : block_of(code)[code & 63]) & CLASS_KIND;
}

/* Returns the end of the code points after this one that have the same class, as far as whole blocks before `end` show
 * it. */
static uint32_t class_end(uint32_t code, uint32_t end)
{
    const uint8_t *block = code < 0x800 || code & 63 || end - code < 64 ? NULL : block_of(code);
    if (!block || memcmp(block, block + 1, 63) != 0)
        return code + 1;
    while ((code += 64) < end && block_of(code) == block)
        ;
    return code;
}

/* Returns whether the first of some ranges that ends at a code point or after it, or NULL, contains it. Reduces *end to
 * the next change. */
static inline bool contains(const uint32_t *range, uint32_t code, uint32_t *end)
{
    const bool has = range && range[0] <= code;
    if (range)
        *end = (uint32_t)min64(*end, has ? range[1] + 1 : range[0]);
    return has;
}

bool code_set_run(const struct code_set *set, uint32_t code, uint32_t *end)
{
    bool has = false;
    if (set->categories) {
        const uint8_t class = class_of(code);
        const uint32_t possible = class_categories[class].possible;
        uint32_t category = class_categories[class].usual;
        *end = class_end(code, *end);
        if ((set->categories & possible) != 0 && (~set->categories & possible) != 0) {
            const struct code_span *span = code_find(category_spans, sizeof *span, CATEGORY_SPANS, code);
            if (contains((const uint32_t *)span, code, end))
                category = UINT32_C(1) << span->number;
        }
        has = (set->categories & category) != 0;
    }
    return contains(code_find(set->others, sizeof *set->others, set->count, code), code, end) != has;
}

bool code_set_has(enum code_set_name name, uint32_t code)
{
    uint32_t end = code + 1;
    return code_set_run(&code_sets[name], code, &end);
}

uint8_t code_script(uint32_t code)
{
    const struct code_span *span = code_find(script_spans, sizeof *span, SCRIPT_SPANS, code);
    return span && span->first <= code ? span->number : SCRIPT_ANY;
}

uint32_t code_lower(uint32_t code)
{
    const struct case_range *range = code_find(case_ranges, sizeof *range, CASE_RANGES, code);
    /* A return of its own: in one condition with the next one, gcc 14 reads the delta of NULL. */
    if (!range || range->first > code)
        return code;
    return (code - range->first) % range->step ? code : code + (uint32_t)range->delta;
}

size_t code_spaces_trimmed(const uint8_t *text, size_t count)
{
    for (size_t end = count, at = end; end; end = at) {
        size_t bytes;
        do
            at--;
        while (at && (text[at] & 0xC0) == 0x80);
        if (!code_is_space(code_point_get(text + at, &bytes)))
            return end;
    }
    return 0;
}

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
