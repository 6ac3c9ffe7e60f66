/* SPDX-License-Identifier: MIT */
/* graphemes.c - the rules of Unicode Standard Annex #29; the names in comments are those of the rules. */
#include "graphemes.h"

#include <assert.h>
#include <stdbool.h>

#include "text/code_point.h"

static enum grapheme_class class_at(const uint8_t *text, size_t *bytes)
{
    const uint32_t code = code_point_get(text, bytes);
    return (enum grapheme_class)grapheme_blocks[grapheme_first[code >> 6]][code & 63];
}

static bool is_control(enum grapheme_class class)
{
    return class >= GRAPHEME_CONTROL && class <= GRAPHEME_LF;
}

static bool is_extend(enum grapheme_class class)
{
    return class >= GRAPHEME_EXTEND && class <= GRAPHEME_EXTEND_ONLY;
}

/* Returns whether two characters belong together, whatever is before them. */
static bool joins(enum grapheme_class left, enum grapheme_class right)
{
    if (is_control(left) || is_control(right))
        return left == GRAPHEME_CR && right == GRAPHEME_LF; /* GB3, GB4, GB5 */
    if (is_extend(right) || right == GRAPHEME_ZWJ || right == GRAPHEME_SPACING || left == GRAPHEME_PREPEND)
        return true;        /* GB9, GB9a, GB9b */
    if (left == GRAPHEME_L) /* GB6 */
        return right == GRAPHEME_L || right == GRAPHEME_V || right == GRAPHEME_LV || right == GRAPHEME_LVT;
    if (left == GRAPHEME_LV || left == GRAPHEME_V) /* GB7 */
        return right == GRAPHEME_V || right == GRAPHEME_T;
    return (left == GRAPHEME_LVT || left == GRAPHEME_T) && right == GRAPHEME_T; /* GB8 */
}

size_t grapheme_end(const uint8_t *text, size_t at, size_t count)
{
    size_t bytes;
    assert(at < count);
    enum grapheme_class left = class_at(text + at, &bytes);
    /* What may come before the next character, of the rules that look at more than two: a pictograph with marks, and a
     * joiner after it; a consonant with marks, and a linker among them. */
    bool pictograph = left == GRAPHEME_PICTOGRAPH, joined = false;
    bool consonant = left == GRAPHEME_CONSONANT, linked = false;
    for (at += bytes; at < count; at += bytes) {
        const enum grapheme_class right = class_at(text + at, &bytes);
        if (!joins(left, right) && !(joined && right == GRAPHEME_PICTOGRAPH) && /* GB11 */
            !(linked && right == GRAPHEME_CONSONANT))                           /* GB9c */
            return at;
        joined = pictograph && right == GRAPHEME_ZWJ;
        pictograph = right == GRAPHEME_PICTOGRAPH || (pictograph && is_extend(right));
        const bool continues =
            consonant && (right == GRAPHEME_EXTEND || right == GRAPHEME_LINKER || right == GRAPHEME_ZWJ);
        linked = continues && (linked || right == GRAPHEME_LINKER);
        consonant = continues || right == GRAPHEME_CONSONANT;
        left = right;
    }
    return count;
}

size_t grapheme_begin(const uint8_t *text, size_t from, size_t at)
{
    size_t bytes;
    while (at > from) {
        size_t before = at;
        while ((text[--before] & 0xC0) == 0x80)
            ;
        const enum grapheme_class left = class_at(text + before, &bytes), right = class_at(text + at, &bytes);
        const bool longer = left == GRAPHEME_ZWJ || is_extend(left);
        if (!joins(left, right) && !(longer && (right == GRAPHEME_PICTOGRAPH || right == GRAPHEME_CONSONANT)))
            return at;
        at = before;
    }
    return from;
}
