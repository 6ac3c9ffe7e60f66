/* SPDX-License-Identifier: MIT */
/*
 * regex_kinds.c - computes which characters a pattern's sets distinguish, and translates patterns and texts.
 *
 * The ends of all ranges of all sets cut the code points into intervals. All characters of an interval belong to the
 * same sets, and intervals that belong to the same sets are one kind.
 */
#include "regex_kinds.h"

#include <assert.h>

#include "common/bytes_buffer.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"

/* A marker of a set in a pattern: this byte, then the number of the set as two bytes of 7 bits with bit 7 set.
 * regex_rewrite writes this byte only in markers, since it writes every character of a pattern as a set. */
#define SET_MARK 1
#define KINDS_MOST 256

/* ---- sets ---- */

void regex_sets_free(struct regex_sets *sets)
{
    free(sets->ranges);
    free(sets->ends);
    memset(sets, 0, sizeof *sets);
}

void regex_set_begin(struct regex_sets *sets)
{
    sets->range_count = sets->begun = sets->count ? sets->ends[sets->count - 1] : 0;
}

bool regex_set_range(struct regex_sets *sets, uint32_t first, uint32_t last)
{
    assert(first <= last && last < CODES);
    assert(sets->range_count == sets->begun || sets->ranges[sets->range_count - 1].last < first);
    if (!list_room(&sets->ranges, sets->range_count, &sets->range_room, sizeof *sets->ranges))
        return false;
    sets->ranges[sets->range_count++] = (struct code_range){first, last};
    return true;
}

static size_t set_start(const struct regex_sets *sets, uint32_t set)
{
    return set ? sets->ends[set - 1] : 0;
}

/* Returns the number of a set that has the same ranges as the one that is being made; sets->count if there is none. */
static uint32_t set_find(const struct regex_sets *sets)
{
    const size_t wanted = sets->range_count - sets->begun;
    for (uint32_t set = 0; set < sets->count; set++) {
        const size_t start = set_start(sets, set);
        if (sets->ends[set] - start == wanted &&
            (!wanted || !memcmp(sets->ranges + start, sets->ranges + sets->begun, wanted * sizeof *sets->ranges)))
            return set;
    }
    return sets->count;
}

bool regex_set_end(struct regex_sets *sets, struct bytes_buffer *pattern)
{
    const uint32_t set = set_find(sets);
    if (set == sets->count) {
        if (set == 1 << 14 || !list_room(&sets->ends, set, &sets->room, sizeof *sets->ends))
            return false;
        sets->ends[sets->count++] = sets->range_count;
    }
    const uint8_t mark[3] = {SET_MARK, (uint8_t)(0x80 | set >> 7), (uint8_t)(0x80 | (set & 127))};
    return bytes_append(pattern, mark, sizeof mark);
}

/* ---- kinds ---- */

struct intervals {
    uint32_t *starts; /* ascending; the last one is CODES */
    size_t count;     /* number of intervals, one less than starts */
    uint64_t *has;    /* `words` words per interval: bit i is 1 if the interval belongs to set i */
    size_t words;
    uint8_t *kinds;             /* by interval */
    size_t of_kind[KINDS_MOST]; /* the first interval of each kind */
    uint32_t kind_count;
};

static int by_number(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Computes the intervals and the sets that each belongs to. Returns false if memory is lacking. */
static bool intervals_make(struct intervals *intervals, const struct regex_sets *sets)
{
    const size_t total = set_start(sets, sets->count);
    uint32_t *starts = intervals->starts = malloc((2 * total + 2) * sizeof *starts);
    size_t count = 2, kept = 1;
    if (!starts)
        return false;
    starts[0] = 0;
    starts[1] = CODES;
    for (size_t i = 0; i < total; i++) {
        starts[count++] = sets->ranges[i].first;
        starts[count++] = sets->ranges[i].last + 1;
    }
    qsort(starts, count, sizeof *starts, by_number);
    for (size_t i = 1; i < count; i++)
        if (starts[i] != starts[kept - 1])
            starts[kept++] = starts[i];
    intervals->count = kept - 1;
    intervals->words = sets->count / 64 + 1;
    intervals->has = calloc(intervals->count * intervals->words, sizeof *intervals->has);
    intervals->kinds = malloc(intervals->count);
    if (!intervals->has || !intervals->kinds)
        return false;
    for (uint32_t set = 0; set < sets->count; set++) {
        size_t at = 0;
        for (size_t i = set_start(sets, set); i < sets->ends[set]; i++)
            for (; intervals->starts[at] <= sets->ranges[i].last; at++)
                if (intervals->starts[at] >= sets->ranges[i].first)
                    intervals->has[at * intervals->words + set / 64] |= UINT64_C(1) << set % 64;
    }
    return true;
}

/* Gives each interval its kind. Returns false if there are too many kinds. */
static bool intervals_number(struct intervals *intervals)
{
    const size_t bytes = intervals->words * sizeof *intervals->has;
    for (size_t i = 0; i < intervals->count; i++) {
        const uint64_t *has = intervals->has + i * intervals->words;
        uint32_t kind = 0;
        while (kind < intervals->kind_count &&
               memcmp(has, intervals->has + intervals->of_kind[kind] * intervals->words, bytes) != 0)
            kind++;
        if (kind == KINDS_MOST)
            return false;
        if (kind == intervals->kind_count)
            intervals->of_kind[intervals->kind_count++] = i;
        intervals->kinds[i] = (uint8_t)kind;
    }
    return true;
}

void regex_kinds_free(struct regex_kinds *kinds)
{
    free(kinds->blocks);
    kinds->blocks = NULL;
}

static bool block_add(struct regex_kinds *kinds, size_t number, const uint8_t block[256])
{
    uint32_t same = 0;
    while (same < kinds->block_count && memcmp(kinds->blocks[same], block, 256) != 0)
        same++;
    if (!list_room(&kinds->blocks, same, &kinds->block_room, sizeof *kinds->blocks))
        return false;
    if (same == kinds->block_count)
        memcpy(kinds->blocks[kinds->block_count++], block, 256);
    kinds->block_of[number] = (uint16_t)same;
    return true;
}

static uint8_t kind_of(const struct regex_kinds *kinds, uint32_t code)
{
    return kinds->blocks[kinds->block_of[code / 256]][code % 256];
}

static bool table_fill(struct regex_kinds *kinds, const struct intervals *intervals)
{
    size_t at = 0;
    for (size_t number = 0; number < CODES / 256; number++) {
        uint8_t block[256];
        if (number && intervals->starts[at + 1] >= 256 * (number + 1) && intervals->starts[at] <= 256 * (number - 1)) {
            kinds->block_of[number] = kinds->block_of[number - 1]; /* one interval covers it and the block before */
            continue;
        }
        for (uint32_t i = 0; i < 256; i++) {
            while (intervals->starts[at + 1] <= 256 * number + i)
                at++;
            block[i] = intervals->kinds[at];
        }
        if (!block_add(kinds, number, block))
            return false;
    }
    for (uint32_t code = 0; code < 128; code++)
        kinds->first[code] = kind_of(kinds, code);
    for (uint32_t byte = 0; byte < 256; byte++)
        kinds->mapped[byte] = kind_of(kinds, byte_character((uint8_t)byte));
    return true;
}

/* Writes the kinds of a set as a class, for example [\x00\x04\x05]; for a set without kinds, a class that matches
 * nothing. */
static bool set_write(struct bytes_buffer *into, const struct intervals *intervals, uint32_t set)
{
    static const char digits[] = "0123456789abcdef";
    bool any = false;
    if (!bytes_append(into, "[", 1))
        return false;
    for (uint32_t kind = 0; kind < intervals->kind_count; kind++) {
        const uint64_t *has = intervals->has + intervals->of_kind[kind] * intervals->words;
        if (!(has[set / 64] >> set % 64 & 1))
            continue;
        const char text[4] = {'\\', 'x', digits[kind >> 4], digits[kind & 15]};
        if (!bytes_append(into, text, sizeof text))
            return false;
        any = true;
    }
    return any ? bytes_append(into, "]", 1) : bytes_append(into, "^\\x00-\\xff]", 11);
}

static bool pattern_write(struct bytes_buffer *into, const struct intervals *intervals,
                          const struct bytes_buffer *pattern)
{
    for (size_t at = 0; at < pattern->count;) {
        const uint8_t *rest = pattern->bytes + at;
        const uint8_t *mark = memchr(rest, SET_MARK, pattern->count - at);
        const size_t plain = mark ? (size_t)(mark - rest) : pattern->count - at;
        if (!bytes_append(into, rest, plain))
            return false;
        at += plain;
        if (!mark)
            break;
        assert(at + 3 <= pattern->count); /* the whole marker */
        if (!set_write(into, intervals, (uint32_t)(mark[1] & 127) << 7 | (mark[2] & 127u)))
            return false;
        at += 3;
    }
    return true;
}

bool regex_kinds_make(struct regex_kinds *kinds, const struct regex_sets *sets, const struct bytes_buffer *pattern,
                      struct bytes_buffer *into, bool *too_many)
{
    struct intervals intervals;
    assert(!kinds->blocks && !kinds->block_count);
    memset(&intervals, 0, sizeof intervals);
    *too_many = false;
    bool good = intervals_make(&intervals, sets);
    if (good && !intervals_number(&intervals)) {
        *too_many = true;
        good = false;
    }
    good = good && table_fill(kinds, &intervals) && pattern_write(into, &intervals, pattern);
    free(intervals.starts);
    free(intervals.has);
    free(intervals.kinds);
    return good;
}

/* ---- texts ---- */

bool regex_kinds_of_text(const struct regex_kinds *kinds, const uint8_t *text, size_t count, struct bytes_buffer *into)
{
    if (!bytes_reserve(into, count))
        return false;
    uint8_t *to = into->bytes + into->count;
    for (const uint8_t *end = text + count; text < end;) {
        size_t bytes = 1;
        *to++ = *text < 0x80 ? kinds->first[*text] : kind_of(kinds, code_point_get(text, &bytes));
        text += bytes;
    }
    into->count = (size_t)(to - into->bytes);
    return true;
}

bool regex_kinds_of_bytes(const struct regex_kinds *kinds, const uint8_t *text, size_t count, struct bytes_buffer *into)
{
    if (!bytes_reserve(into, count))
        return false;
    for (size_t i = 0; i < count; i++)
        into->bytes[into->count + i] = kinds->mapped[text[i]];
    into->count += count;
    return true;
}
