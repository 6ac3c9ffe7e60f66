/* SPDX-License-Identifier: MIT */
/*
 * nfc.c - finds the parts of a text that are not in NFC, and computes their NFC.
 *
 * The idea. The obvious way decomposes the whole text, sorts the marks, and composes again. But nearly every text is in
 * NFC already, so this code looks for the exceptions. A character is stable (kind 0) if neither it nor its place can
 * change because of what is before it: its combining class is 0, NFC does not replace it, and it does not compose with
 * a character before it. All of ASCII and most letters are stable. A run is a stable character and all characters after
 * it up to the next stable one. Normalization never crosses the borders of a run, so text outside of runs is skipped,
 * and each run is normalized by itself.
 *
 * Example: "cafe", U+0301 (combining acute), " x", then "q" with a dot above and a dot below in the wrong order.
 *
 *     character          c  a  f  e  U+0301  space  x  q  U+0307  U+0323
 *     combining class    0  0  0  0  230     0      0  0  230     220
 *     quick check        y  y  y  y  maybe   y      y  y  maybe   maybe
 *     runs                        [e U+0301]          [q U+0307 U+0323]
 *     decomposed                   e U+0301            q U+0307 U+0323
 *     marks sorted by class        e U+0301            q U+0323 U+0307
 *     composed                     U+00E9              q U+0323 U+0307      both differ: nfc_find returns them
 *
 * A run in which every character passes the quick check and the classes do not decrease is in NFC; it takes no further
 * work. Any other run is normalized and compared with the text, because "maybe" often means that nothing changes.
 *
 * Cost. Stable text costs one test of a bit per character, or with AVX-512 or AVX2 some instructions per 64 bytes
 * (nfc_quick.c), and ASCII one test per 64 bytes. A run of n marks costs O(n): marks are sorted by counting if there
 * are many, so a million marks in a row, which a hostile text can contain, are not slow.
 */
#include "nfc.h"

#include <assert.h>

#include "common/bytes.h"
#include "text/code_point.h"
#include "nfc_tables.h"

#define HANGUL_FIRST 0xAC00u
#define HANGUL_COUNT 11172u
#define LEAD_FIRST 0x1100u
#define VOWEL_FIRST 0x1161u
#define TAIL_FIRST 0x11A7u /* one before the first tail: tail number 0 means no tail */
#define LEADS 19u
#define VOWELS 21u
#define TAILS 28u

void nfc_scratch_trim(struct nfc_scratch *scratch)
{
    bytes_trim(&scratch->codes);
    bytes_trim(&scratch->sorted);
    bytes_trim(&scratch->made);
}

void nfc_scratch_free(struct nfc_scratch *scratch)
{
    bytes_free(&scratch->codes);
    bytes_free(&scratch->sorted);
    bytes_free(&scratch->made);
}

/* Returns the number of a character's kind; 0 if it is stable. */
static uint8_t kind_number(uint32_t code)
{
    return nfc_blocks[nfc_first[code >> 6]][code & 63];
}

/* Adds a code point with its combining class. */
static bool code_add(struct nfc_scratch *scratch, uint32_t code)
{
    const uint64_t entry = (uint64_t)nfc_kinds[kind_number(code)].combining_class << 32 | code;
    return bytes_append(&scratch->codes, &entry, sizeof entry);
}

/* Adds the full decomposition of a character. */
static bool decompose(struct nfc_scratch *scratch, uint32_t code)
{
    if (code - HANGUL_FIRST < HANGUL_COUNT) {
        const uint32_t index = code - HANGUL_FIRST;
        return code_add(scratch, LEAD_FIRST + index / (VOWELS * TAILS)) &&
               code_add(scratch, VOWEL_FIRST + index / TAILS % VOWELS) &&
               (index % TAILS == 0 || code_add(scratch, TAIL_FIRST + index % TAILS));
    }
    uint32_t count = 0;
    const uint32_t *parts = nfc_decomposition(code, &count);
    if (!parts)
        return code_add(scratch, code);
    for (uint32_t i = 0; i < count; i++)
        if (!code_add(scratch, parts[i]))
            return false;
    return true;
}

/* Returns the character that the two compose to, or 0. */
static uint32_t compose(uint32_t first, uint32_t second)
{
    if (first - LEAD_FIRST < LEADS && second - VOWEL_FIRST < VOWELS)
        return HANGUL_FIRST + ((first - LEAD_FIRST) * VOWELS + (second - VOWEL_FIRST)) * TAILS;
    if (first - HANGUL_FIRST < HANGUL_COUNT && (first - HANGUL_FIRST) % TAILS == 0 && second > TAIL_FIRST &&
        second < TAIL_FIRST + TAILS)
        return first + (second - TAIL_FIRST);
    uint32_t low = 0, high = NFC_PAIRS;
    const uint64_t wanted = (uint64_t)first << 32 | second;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (((uint64_t)nfc_pairs[middle].first << 32 | nfc_pairs[middle].second) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < NFC_PAIRS && nfc_pairs[low].first == first && nfc_pairs[low].second == second;
    return found ? nfc_pairs[low].whole : 0;
}

/* Sorts marks by combining class and keeps the order of marks of one class: few marks by insertion, many by
 * counting. */
static bool marks_sort(struct nfc_scratch *scratch, uint64_t *codes, size_t count)
{
    if (count <= 32) {
        for (size_t i = 1; i < count; i++) {
            const uint64_t moving = codes[i];
            size_t at = i;
            for (; at && codes[at - 1] >> 32 > moving >> 32; at--)
                codes[at] = codes[at - 1];
            codes[at] = moving;
        }
        return true;
    }
    size_t places[256] = {0}, next = 0;
    scratch->sorted.count = 0;
    if (!bytes_reserve(&scratch->sorted, count * sizeof *codes))
        return false;
    uint64_t *sorted = (uint64_t *)(void *)scratch->sorted.bytes;
    for (size_t i = 0; i < count; i++)
        places[codes[i] >> 32]++;
    for (size_t class = 0; class < 256; class ++) {
        const size_t marks = places[class];
        places[class] = next;
        next += marks;
    }
    for (size_t i = 0; i < count; i++)
        sorted[places[codes[i] >> 32]++] = codes[i];
    memcpy(codes, sorted, count * sizeof *codes);
    return true;
}

/* Sorts the marks between characters of class 0. */
static bool run_order(struct nfc_scratch *scratch, uint64_t *codes, size_t count)
{
    for (size_t at = 0; at < count;) {
        size_t end = at;
        while (end < count && codes[end] >> 32)
            end++;
        if (!marks_sort(scratch, codes + at, end - at))
            return false;
        at = end + 1;
    }
    return true;
}

/* Composes in place and returns the number of characters that are left. A mark composes with the last character of
 * class 0 unless a mark in between has the same or a higher class. */
static size_t run_compose(uint64_t *codes, size_t count)
{
    size_t made = 0, starter = SIZE_MAX;
    uint32_t last = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t code = (uint32_t)codes[i], class = (uint32_t)(codes[i] >> 32);
        if (starter != SIZE_MAX && (starter + 1 == made || last < class)) {
            const uint32_t whole = compose((uint32_t)codes[starter], code);
            if (whole) {
                codes[starter] = whole;
                continue;
            }
        }
        if (!class)
            starter = made;
        last = class;
        codes[made++] = codes[i];
    }
    return made;
}

/* Writes the NFC of a run to scratch->made. */
static bool run_normalize(struct nfc_scratch *scratch, const uint8_t *run, size_t count)
{
    scratch->codes.count = scratch->made.count = 0;
    for (size_t at = 0, bytes; at < count; at += bytes)
        if (!decompose(scratch, code_point_get(run + at, &bytes)))
            return false;
    uint64_t *codes = (uint64_t *)(void *)scratch->codes.bytes;
    size_t codes_count = scratch->codes.count / sizeof *codes;
    if (!run_order(scratch, codes, codes_count))
        return false;
    codes_count = run_compose(codes, codes_count);
    assert(codes_count > 0 || count == 0);
    if (!bytes_reserve(&scratch->made, codes_count * 4))
        return false;
    for (size_t i = 0; i < codes_count; i++)
        scratch->made.count += code_point_put(scratch->made.bytes + scratch->made.count, (uint32_t)codes[i]);
    return true;
}

static inline bool is_ascii_32(const uint8_t *text)
{
    return !((load64(text) | load64(text + 8) | load64(text + 16) | load64(text + 24)) & UINT64_C(0x8080808080808080));
}

/* Returns the offset of the first character from `at` on that is not stable, or `count`. */
static size_t next_unstable_one(const uint8_t *text, size_t at, size_t count)
{
    while (at < count) {
        const uint8_t lead = text[at];
        if (lead < 0x80) {
            while (count - at >= 64 && is_ascii_32(text + at) && is_ascii_32(text + at + 32))
                at += 64;
            while (at < count && text[at] < 0x80)
                at++;
        } else if (lead < 0xE0) {
            if (nfc_masks[lead & 31] >> (text[at + 1] & 63) & 1)
                break;
            at += 2;
        } else if (lead < 0xF0) {
            if (nfc_masks[(lead & 15) << 6 | (text[at + 1] & 63)] >> (text[at + 2] & 63) & 1)
                break;
            at += 3;
        } else {
            if (nfc_is_unstable(text + at))
                break;
            at += 4;
        }
    }
    return at;
}

/* A block of 64 bytes whose unstable characters are known. */
struct block {
    size_t at;
    uint64_t unstable; /* bits of their first bytes */
};

/* Does the same with nfc_quick.h, if the processor has it. *block: the last block that it found, for the next call. */
static size_t next_unstable(const struct nfc_quick *quick, const uint8_t *text, size_t at, size_t count,
                            struct block *block)
{
    if (!quick->find)
        return next_unstable_one(text, at, count);
    if (at - block->at < 64) {
        const uint64_t rest = block->unstable >> (at - block->at);
        if (rest)
            return at + (size_t)__builtin_ctzll(rest);
        at = block->at + 64;
    }
    const uint64_t found = quick->find(quick, text, &at, count);
    if (found) {
        *block = (struct block){at, found};
        return at + (size_t)__builtin_ctzll(found);
    }
    while (at < count && (text[at] & 0xC0) == 0x80) /* the rest of a character that began in the last block */
        at++;
    return next_unstable_one(text, at, count);
}

size_t nfc_find(struct nfc_scratch *scratch, const uint8_t *text, size_t at, size_t count, size_t *end)
{
    struct block block = {(size_t)0 - 64, 0};
    assert(at <= count);
    if (!scratch->ready) {
        nfc_quick_init(&scratch->quick, cpu_variant_best());
        scratch->ready = true;
    }
    while (at < count) {
        const size_t from = at;
        size_t bytes;
        at = next_unstable(&scratch->quick, text, at, count, &block);
        if (at >= count)
            break;
        size_t starter = at; /* the character before it is stable */
        while (starter > from && (--starter, (text[starter] & 0xC0) == 0x80))
            ;
        bool doubtful = false;
        uint32_t last = 0;
        uint8_t number = kind_number(code_point_get(text + at, &bytes));
        do {
            const struct nfc_kind kind = nfc_kinds[number];
            doubtful |= kind.quick_check != NFC_YES || (kind.combining_class && kind.combining_class < last);
            last = kind.combining_class;
            at += bytes;
            number = at < count && text[at] >= 0x80 ? kind_number(code_point_get(text + at, &bytes)) : 0;
        } while (number);
        if (!doubtful)
            continue;
        if (!run_normalize(scratch, text + starter, at - starter)) {
            scratch->lacks_memory = true;
            break;
        }
        if (scratch->made.count != at - starter || memcmp(scratch->made.bytes, text + starter, at - starter)) {
            *end = at;
            return starter;
        }
    }
    *end = count;
    return count;
}

bool nfc_append(struct nfc_scratch *scratch, struct bytes_buffer *into, const uint8_t *text, size_t count)
{
    size_t end;
    for (size_t at = 0; at < count; at = end) {
        const size_t first = nfc_find(scratch, text, at, count, &end);
        if (scratch->lacks_memory || !bytes_append(into, text + at, first - at) ||
            (first < count && !bytes_append(into, scratch->made.bytes, scratch->made.count)))
            return false;
    }
    return true;
}
