/* SPDX-License-Identifier: MIT */
/*
 * shingles.c - see shingles.h.
 *
 * A table has what each character below U+10000 becomes, if that is one character, nothing, a blank, or a digit. All
 * others take the slow way, with searches in the tables of Unicode: the rest of the characters, sigmas, whose lower
 * case depends on what is beside them, and characters that become several, such as Korean syllables.
 */
#include "shingles.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "common/hash.h"
#include "text/code_point.h"
#include "unicode/code_sets.h"
#include "unicode/nfc_tables.h"

#define GROWTH 4     /* most bytes of words from one byte of text, and a blank */
#define CODES_MOST 8 /* that one character becomes; Unicode has at most 4 */

/* Values of the table that are no characters; others are what is added to the word. */
enum { FOLD_SLOW = 0xFFFF, FOLD_NOTHING = 0xFFFE, FOLD_DIGIT = 0xFFFD, FOLD_BLANK = GRAM_BLANK };

struct shingle_table {
    gram_hashes_kernel *hashes;
    uint8_t map[128]; /* for word_grams.h */
    uint16_t fold[0x10000];
};

/* ---- characters ---- */

/* Punctuation of datatrove, outside of ASCII; ascending. */
static const uint16_t wide_punctuation[] = {0xAB,   0xB4,   0xBB,   0x2013, 0x2014, 0x2019, 0x201C, 0x201D, 0x201E,
                                            0x2026, 0x2236, 0x2501, 0x25BA, 0x3001, 0x3002, 0x3008, 0x3009, 0x300A,
                                            0x300B, 0x300C, 0x300D, 0x3010, 0x3011, 0xFF01, 0xFF05, 0xFF08, 0xFF09,
                                            0xFF0C, 0xFF0E, 0xFF11, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF5E};

static bool is_blank(uint32_t code)
{
    if (code < 0x80)
        return code <= ' ' || code == 0x7F || strchr("!/:&(\\#%,;+^]~';{|[=-`*.?$>})@_\"<", (int)code) != NULL;
    if (code < 0xA0 || code_is_space(code))
        return true;
    for (size_t i = 0; i < sizeof wide_punctuation / sizeof wide_punctuation[0]; i++)
        if (wide_punctuation[i] == code)
            return true;
    return false;
}

/* Decomposes a character, and keeps what is no mark. Returns the number of characters. */
static uint32_t code_decompose(uint32_t code, uint32_t into[CODES_MOST])
{
    uint32_t count = 0;
    if (code - 0xAC00u < 11172) { /* Korean syllables: two or three letters, by arithmetic */
        const uint32_t index = code - 0xAC00u;
        into[count++] = 0x1100 + index / 588;
        into[count++] = 0x1161 + index / 28 % 21;
        if (index % 28)
            into[count++] = 0x11A7 + index % 28;
        return count;
    }
    uint32_t parts_count = 0;
    const uint32_t *parts = nfc_decomposition(code, &parts_count);
    if (!parts) {
        into[0] = code;
        return !code_set_has(CODE_MN, code);
    }
    for (uint32_t i = 0; i < parts_count; i++)
        if (!code_set_has(CODE_MN, parts[i])) {
            assert(count < CODES_MOST);
            into[count++] = parts[i];
        }
    return count;
}

/* Returns what a character becomes, as in the table. FOLD_SLOW: the *count characters of `into`. */
static uint16_t code_fold(uint32_t code, uint32_t into[CODES_MOST], uint32_t *count)
{
    *count = 0;
    if (code_set_has(CODE_ND, code))
        return FOLD_DIGIT;
    if (is_blank(code))
        return FOLD_BLANK;
    *count = code_decompose(lower_case(code), into);
    if (!*count)
        return FOLD_NOTHING;
    return *count == 1 && into[0] < FOLD_DIGIT ? (uint16_t)into[0] : FOLD_SLOW;
}

struct shingle_table *shingle_table_new(void)
{
    struct shingle_table *table = malloc(sizeof *table);
    uint32_t codes[CODES_MOST], count;
    if (!table)
        return NULL;
    table->hashes = gram_hashes_plain;
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX512))
        table->hashes = gram_hashes_avx512;
#endif
    for (uint32_t code = 0; code < 0x10000; code++)
        table->fold[code] = code == LOWER_SIGMA ? FOLD_SLOW : code_fold(code, codes, &count);
    for (uint32_t code = 0; code < 0x80; code++)
        table->map[code] = table->fold[code] < 0x80 ? (uint8_t)table->fold[code] : GRAM_OTHER;
    return table;
}

void shingle_table_free(struct shingle_table *table)
{
    free(table);
}

/* ---- words ---- */

void gram_hashes_plain(const uint8_t *words, const uint64_t *begins, uint32_t each, uint32_t count, uint64_t *hashes)
{
    for (uint32_t i = 0; i < count; i++)
        hashes[i] = xxh64(words + begins[i], (size_t)(begins[i + each] - 1 - begins[i]));
}

static bool grams_take(void *user, const uint8_t *words, const uint64_t *begins, uint32_t count)
{
    struct shingle_scan *scan = user;
    scan->table->hashes(words, begins, scan->words_each, count, scan->shingles);
    scan->found(scan->user, scan->shingles, count);
    return true;
}

static uint16_t fold_at(const struct shingle_table *table, const uint8_t *text, uint64_t count, uint64_t at,
                        size_t *bytes)
{
    uint32_t codes[CODES_MOST], made;
    if (at >= count)
        return FOLD_NOTHING;
    const uint32_t code = code_point_get(text + at, bytes);
    return code < 0x10000 ? table->fold[code] : code_fold(code, codes, &made);
}

/* Returns the end of the digits that begin at `at`. */
static uint64_t digits_end(const struct shingle_table *table, const uint8_t *text, uint64_t count, uint64_t at)
{
    size_t bytes = 0;
    while (fold_at(table, text, count, at, &bytes) == FOLD_DIGIT)
        at += bytes;
    return at;
}

/* Returns the end of the number that begins at `at`: 1 and 1.5 are numbers, and 1.5.2 are two. */
static uint64_t number_end(const struct shingle_table *table, const uint8_t *text, uint64_t count, uint64_t at)
{
    const uint64_t whole = digits_end(table, text, count, at);
    size_t bytes = 0;
    if (whole == count)
        return whole;
    const uint32_t point = code_point_get(text + whole, &bytes);
    const bool is_point =
        point == '.' || point == ',' || point == 0x60C || point == 0x66B || (point >= 0x2396 && point <= 0x2398);
    if (!is_point)
        return whole;
    const uint64_t end = digits_end(table, text, count, whole + bytes);
    return end == whole + bytes ? whole : end;
}

/* Adds a character that is not one of ASCII's letters and blanks. Returns where the next one begins. */
static uint64_t character_add(struct shingle_scan *scan, uint8_t **to, const uint8_t *text, uint64_t count, uint64_t at)
{
    uint32_t codes[CODES_MOST] = {0}, made = 1;
    size_t bytes = 0;
    const uint32_t code = code_point_get(text + at, &bytes);
    uint16_t fold = code < 0x10000 ? scan->table->fold[code] : FOLD_SLOW;
    codes[0] = fold;
    if (code == LOWER_SIGMA)
        codes[0] = lower_sigma_is_final(text, count, at) ? 0x3C2 : 0x3C3;
    else if (fold == FOLD_SLOW)
        fold = code_fold(code, codes, &made);
    if (fold == FOLD_DIGIT) {
        *(*to)++ = '0';
        return number_end(scan->table, text, count, at);
    }
    if (fold == FOLD_BLANK)
        *to = gram_word_end(&scan->grams, *to);
    else if (fold != FOLD_NOTHING)
        for (uint32_t i = 0; i < made; i++)
            *to += code_point_put(*to, codes[i]);
    return at + bytes;
}

static inline uint64_t character_take(void *user, uint8_t **to, const uint8_t *text, uint64_t count, uint64_t at)
{
    struct shingle_scan *scan = user;
    const uint16_t one = text[at] < 0x80 ? scan->table->fold[text[at]] : FOLD_SLOW;
    if (one == FOLD_BLANK)
        *to = gram_word_end(&scan->grams, *to);
    else if (one < 0x80)
        *(*to)++ = (uint8_t)one;
    else
        return character_add(scan, to, text, count, at);
    return at + 1;
}

static bool text_scan(struct shingle_scan *scan, const char *text, uint64_t count)
{
    return words_add(&scan->grams, scan->table->map, (const uint8_t *)text, count, GROWTH, character_take, scan);
}

bool shingles_find(struct shingle_scan *scan, const char *text, uint64_t bytes, const char *second,
                   uint64_t second_bytes)
{
    assert(scan->words_each && scan->words_each <= SHINGLE_WORDS_MOST);
    scan->grams.each = scan->words_each;
    scan->grams.take = grams_take;
    scan->grams.user = scan;
    const bool good = word_grams_begin(&scan->grams) && text_scan(scan, text, bytes) &&
                      (!second || text_scan(scan, second, second_bytes));
    if (good)
        word_grams_pass(&scan->grams);
    return good;
}

void shingle_scan_free(struct shingle_scan *scan)
{
    word_grams_free(&scan->grams);
}
