/* SPDX-License-Identifier: MIT */
/*
 * nfc.c - finds the parts of a text that are not in a normal form, and computes it for them. What follows explains NFC;
 * the other forms differ in the quick check, in what decomposes, and in that NFD and NFKD do not compose.
 *
 * The idea. The obvious way decomposes the whole text, sorts the marks, and composes again. But nearly every text is in
 * NFC already, so this code looks for the exceptions. A character is stable if neither it nor its place can
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
 * (code_search.c), and ASCII one test per 64 bytes. A run of n marks costs O(n): marks are sorted by counting if there
 * are many, so a million marks in a row, which a hostile text can contain, are not slow.
 */
#include "nfc.h"

#include <assert.h>
#include <stdlib.h>

#include "nfc_tables.h"
#include "platform/os.h"
#include "text/code_point.h"

#define HANGUL_FIRST 0xAC00u
#define HANGUL_COUNT 11172u
#define LEAD_FIRST 0x1100u
#define VOWEL_FIRST 0x1161u
#define TAIL_FIRST 0x11A7u /* one before the first tail: tail number 0 means no tail */
#define LEADS 19u
#define VOWELS 21u
#define TAILS 28u

#define PARTS_MOST 4u /* of a character that two others compose to */

/* The character that two others compose to. */
struct nfc_pair {
    uint64_t parts; /* the first of these << 32 | the second */
    uint32_t whole;
};

/* What follows from the generated tables, made once. */
static struct {
    struct code_bits unstable[NORMAL_FORMS];
    struct nfc_pair pairs[NFC_PAIRS]; /* ascending by parts; without Hangul */
    uint32_t pairs_count, added;
} tables;

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

static struct nfc_kind kind_of(uint32_t code)
{
    return nfc_kinds[nfc_blocks[nfc_first[code >> 6]][code & 63]];
}

/* Adds a code point with its combining class. */
static bool code_add(struct nfc_scratch *scratch, uint32_t code)
{
    const uint64_t entry = (uint64_t)kind_of(code).combining_class << 32 | code;
    return bytes_append(&scratch->codes, &entry, sizeof entry);
}

/* Sets the characters that a Hangul syllable decomposes to, and returns their number. */
static uint32_t hangul_parts(uint32_t code, uint32_t into[3])
{
    const uint32_t index = code - HANGUL_FIRST;
    into[0] = LEAD_FIRST + index / (VOWELS * TAILS);
    into[1] = VOWEL_FIRST + index / TAILS % VOWELS;
    into[2] = TAIL_FIRST + index % TAILS;
    return index % TAILS ? 3 : 2;
}

/* Returns the *count characters of the full decomposition of a character that is no Hangul syllable, or NULL. */
static const uint32_t *parts_of(enum normal_form form, uint32_t code, uint32_t *count)
{
    const uint32_t *parts = form >= FORM_NFKC ? nfc_spans_find(nfkc_spans, NFKC_SPANS, nfkc_parts, code, count) : NULL;
    return parts ? parts : nfc_decomposition(code, count);
}

/* Adds the full decomposition of a character. */
static bool decompose(struct nfc_scratch *scratch, uint32_t code)
{
    uint32_t count = 0, hangul[3];
    const uint32_t *parts = hangul;
    if (code - HANGUL_FIRST < HANGUL_COUNT)
        count = hangul_parts(code, hangul);
    else
        parts = parts_of(scratch->form, code, &count);
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
    uint32_t low = 0, high = tables.pairs_count;
    const uint64_t wanted = (uint64_t)first << 32 | second;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (tables.pairs[middle].parts < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tables.pairs_count && tables.pairs[low].parts == wanted ? tables.pairs[low].whole : 0;
}

/* Adds the pairs that compose to the characters of a span, each of the shorter characters' pairs having been added. */
static void pairs_add(const struct nfc_span *span)
{
    const uint32_t *parts = nfc_parts + span->parts;
    for (uint32_t code = span->first; code <= span->last; code++, parts += span->count) {
        if (kind_of(code).quick_check[FORM_NFC] == NFC_NO)
            continue;
        uint32_t first = parts[0];
        for (uint32_t i = 1; i + 1 < span->count; i++)
            first = compose(first, parts[i]);
        assert(tables.pairs_count < NFC_PAIRS);
        tables.pairs[tables.pairs_count + tables.added++] =
            (struct nfc_pair){(uint64_t)first << 32 | parts[span->count - 1], code};
    }
}

static int pair_compare(const void *a, const void *b)
{
    const uint64_t one = ((const struct nfc_pair *)a)->parts, two = ((const struct nfc_pair *)b)->parts;
    return one < two ? -1 : one > two;
}

static bool unstable_run(int form, uint32_t code, uint32_t *end)
{
    const struct nfc_kind kind = kind_of(code);
    const bool unstable = kind.combining_class || kind.quick_check[form];
    *end = code + 1;
    while (!unstable && *end < CODES && !nfc_first[*end >> 6]) /* this block has zeros only */
        *end = (*end | 63) + 1;
    return unstable;
}

static void tables_make(void)
{
    for (int form = 0; form < NORMAL_FORMS; form++)
        code_bits_add_runs(&tables.unstable[form], unstable_run, form);
    for (uint32_t count = 2; count <= PARTS_MOST; count++) {
        tables.added = 0;
        for (uint32_t i = 0; i < NFC_SPANS; i++)
            if (nfc_spans[i].count == count)
                pairs_add(&nfc_spans[i]);
        tables.pairs_count += tables.added;
        qsort(tables.pairs, tables.pairs_count, sizeof *tables.pairs, pair_compare);
    }
    assert(tables.pairs_count == NFC_PAIRS);
}

const struct code_bits *nfc_unstable(enum normal_form form)
{
    os_process_lock();
    if (!tables.pairs_count)
        tables_make();
    os_process_unlock();
    return &tables.unstable[form];
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

static bool composes(enum normal_form form)
{
    return form == FORM_NFC || form == FORM_NFKC;
}

/* Returns whether what a character decomposes to begins with one that nothing before it can change. */
static bool begins_run(enum normal_form form, uint32_t code)
{
    uint32_t count = 0;
    const uint32_t *parts = parts_of(form, code, &count);
    const struct nfc_kind kind = kind_of(parts ? parts[0] : code);
    return !kind.combining_class && (!composes(form) || kind.quick_check[FORM_NFC] != NFC_MAYBE);
}

/* Does what run_normalize does, if what the characters of the run decompose to is in order already and, for forms that
 * compose, if nothing of it composes. Returns false if it cannot. */
static bool run_simple(struct nfc_scratch *scratch, const uint8_t *run, size_t count)
{
    const enum normal_form form = scratch->form;
    const bool composing = composes(form);
    uint32_t last = 0;
    scratch->made.count = 0;
    for (size_t at = 0, bytes; at < count; at += bytes) {
        const uint32_t code = code_point_get(run + at, &bytes);
        uint32_t parts_count = 1;
        const uint32_t *parts = &code;
        uint32_t hangul[3];
        if (!bytes_reserve(&scratch->made, 4 * NFC_PARTS_MOST))
            return false;
        if (code - HANGUL_FIRST < HANGUL_COUNT) {
            if (!composing) {
                parts = hangul;
                parts_count = hangul_parts(code, hangul);
            }
        } else if (kind_of(code).quick_check[form] == NFC_NO) {
            parts = parts_of(form, code, &parts_count);
            if (!parts)
                return false;
        }
        uint8_t *into = scratch->made.bytes + scratch->made.count;
        for (uint32_t i = 0; i < parts_count; i++) {
            const struct nfc_kind kind = kind_of(parts[i]);
            if (composing ? kind.combining_class || kind.quick_check[FORM_NFC]
                          : kind.combining_class && kind.combining_class < last)
                return false;
            last = kind.combining_class;
            into += code_point_put(into, parts[i]);
        }
        scratch->made.count = (size_t)(into - scratch->made.bytes);
    }
    return true;
}

/* Writes the normal form of a run to scratch->made. */
static bool run_normalize(struct nfc_scratch *scratch, const uint8_t *run, size_t count)
{
    if (run_simple(scratch, run, count))
        return true;
    scratch->codes.count = scratch->made.count = 0;
    for (size_t at = 0, bytes; at < count; at += bytes)
        if (!decompose(scratch, code_point_get(run + at, &bytes)))
            return false;
    uint64_t *codes = (uint64_t *)(void *)scratch->codes.bytes;
    size_t codes_count = scratch->codes.count / sizeof *codes;
    if (!run_order(scratch, codes, codes_count))
        return false;
    if (composes(scratch->form))
        codes_count = run_compose(codes, codes_count);
    assert(codes_count > 0 || count == 0);
    if (!bytes_reserve(&scratch->made, codes_count * 4))
        return false;
    for (size_t i = 0; i < codes_count; i++)
        scratch->made.count += code_point_put(scratch->made.bytes + scratch->made.count, (uint32_t)codes[i]);
    return true;
}

size_t nfc_find(struct nfc_scratch *scratch, const uint8_t *text, size_t at, size_t count, size_t *end)
{
    const enum normal_form form = scratch->form;
    assert(at <= count);
    if (!scratch->ready) {
        code_search_init(&scratch->search, nfc_unstable(form), cpu_variant_best());
        scratch->ready = true;
    }
    if (!at)
        scratch->block = CODE_BLOCK_NONE;
    while (at < count) {
        const size_t from = at;
        size_t bytes;
        at = code_search_next(&scratch->search, text, at, count, &scratch->block);
        if (at >= count)
            break;
        size_t starter = at; /* the character before it is stable */
        while (starter > from && (--starter, (text[starter] & 0xC0) == 0x80))
            ;
        bool doubtful = false;
        uint32_t last = 0;
        uint32_t code = code_point_get(text + at, &bytes);
        struct nfc_kind kind = kind_of(code);
        do {
            doubtful |= kind.quick_check[form] != NFC_YES || (kind.combining_class && kind.combining_class < last);
            last = kind.combining_class;
            at += bytes;
            code = at < count && text[at] >= 0x80 ? code_point_get(text + at, &bytes) : 0;
            kind = kind_of(code);
        } while ((kind.combining_class | kind.quick_check[form]) && !(scratch->fine && begins_run(form, code)));
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
