/* SPDX-License-Identifier: MIT */
/*
 * scanner_classify.c - the lookup tables, the portable implementation, and the choice of an implementation.
 *
 * ASCII bytes are looked up directly. Characters of more than one byte are looked up through the trie of classes.h,
 * whose entries are translated to the classes of the rules once, in scan_tables_init.
 */
#include <string.h>

#include "scanner_classify.h"

#include "common/bytes.h"

/* First bytes with which most characters are Chinese (E4, E9) or Korean, but not all characters have the same class;
 * and the first two bytes of most other characters in Chinese and Japanese text: its punctuation and kana.
 * scanner_classify_vbmi.c relies on the order of both tables. */
static const uint8_t pair_leads[SCAN_PAIRS] = {0xE4, 0xE9, 0xEA, 0xED};
static const uint8_t row_bytes[SCAN_ROWS][2] = {{0xE2, 0x80}, {0xE3, 0x80}, {0xE3, 0x81},
                                                {0xE3, 0x82}, {0xE3, 0x83}, {0xEF, 0xBC}};

/* Collects bit number `bit` of each of the 8 bytes into one byte. */
static uint64_t gather(uint64_t bytes, uint32_t bit)
{
    return ((bytes >> bit & 0x0101010101010101u) * 0x0102040810204080u) >> 56;
}

static void classify_block(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *block,
                           size_t word, uint8_t *carry)
{
    uint8_t bits[68];
    uint64_t start = 0, wide = 0, tall = 0, blank = 0, quote = 0;
    for (uint32_t i = 0; i < 64; i++) {
        bits[i] = tables->ascii[block[i] & 127];
        wide |= (uint64_t)(block[i] >> 7) << i;
        start |= (uint64_t)((block[i] & 0xC0) != 0x80) << i;
        tall |= (uint64_t)(block[i] >= 0xE0) << i;
        blank |= (uint64_t)(block[i] == ' ') << i;
        quote |= (uint64_t)(block[i] == '\'') << i;
    }
    if (wide) {
        uint8_t found[68];
        memset(found, *carry, sizeof found); /* the character that the previous block ends with */
        scan_wide_bits(found, tables, block, wide & start);
        for (uint32_t i = 0; i < 64; i++)
            if (wide >> i & 1)
                bits[i] = found[i];
        *carry = wide >> 63 ? found[63] : 0;
    }
    masks->wide_words[word / 64] |= (uint64_t)(wide != 0) << (word % 64);
    SCAN_ROW(masks->start)[word] = start;
    SCAN_ROW(masks->tall)[word] = tall;
    SCAN_ROW(masks->blank)[word] = blank;
    SCAN_ROW(masks->quote)[word] = quote;
    masks->any_quote |= quote;
    for (uint32_t kind = 0; kind < SCAN_KINDS; kind++) {
        uint64_t mask = 0;
        for (uint32_t i = 0; i < 8; i++) {
            uint64_t eight;
            memcpy(&eight, bits + 8 * i, 8);
            mask |= gather(eight, kind) << (8 * i);
        }
        SCAN_ROW(masks->kind[kind])[word] = mask;
        masks->any[kind] |= mask;
    }
}

void scan_classify_scalar(struct scan_masks *masks, const struct scan_tables *tables, const uint8_t *text, size_t count,
                          size_t readable)
{
    uint8_t carry = 0;
    for (size_t at = 0, word = 0; at < count; at += 64, word++) {
        uint8_t padded[SCAN_BLOCK];
        const uint8_t *block = scan_block_at(text + at, readable - at, padded);
        classify_block(masks, tables, block, word, &carry);
    }
}

/* Returns the classes (SCAN_...) that a character with the class `full` of classes.h has under these rules. */
static uint8_t class_bits(const struct split_rules *rules, uint8_t full)
{
    const bool cased = rules->letters == LETTERS_CASED;
    const uint8_t other = rules->deepseek ? SCAN_EXTRA : 0, upper = cased ? SCAN_UPPER : SCAN_LETTER;
    const uint8_t kinds[CLASS_KIND + 1] = {
        [CLASS_UPPER] = upper,
        [CLASS_TITLE] = upper,
        [CLASS_LOWER] = cased ? SCAN_LOWER : SCAN_LETTER,
        [CLASS_MODIFIER] = SCAN_LETTER,
        [CLASS_LETTER] = SCAN_LETTER,
        [CLASS_MARK] = cased                             ? SCAN_EXTRA
                       : rules->letters == LETTERS_MARKS ? SCAN_LETTER
                                                         : 0,
        [CLASS_NUMBER] = SCAN_NUMBER,
        [CLASS_PUNCTUATION] = other,
        [CLASS_SYMBOL] = other,
        [CLASS_SPACE] = SCAN_SPACE,
        [CLASS_NEWLINE] = SCAN_SPACE | SCAN_NEWLINE,
    };
    const uint8_t kind = full & CLASS_KIND;
    if (rules->deepseek && (full & CLASS_CJK))
        return kind >= CLASS_MODIFIER && kind <= CLASS_MARK ? SCAN_UPPER : SCAN_UPPER | SCAN_LOWER;
    return kinds[kind];
}

/* 128 | classes if all characters with this first byte have the same classes; otherwise 0. */
static uint8_t lead_bits(const struct scan_tables *tables, uint32_t lead)
{
    if (lead < 0xC2 || lead >= 0xF0)
        return 0;
    const uint16_t *blocks = class_first + ((lead & 63) << 6);
    const uint8_t bits = tables->blocks[blocks[63]][63];
    for (uint32_t second = 0; second < 64; second++)
        for (uint32_t last = 0; last < 64; last++)
            if (tables->blocks[blocks[second]][last] != bits)
                return 0;
    return 128 | bits;
}

/* Returns the row of the characters of three bytes that begin with these two. */
static const uint8_t *row_of(const struct scan_tables *tables, uint32_t lead, uint32_t second)
{
    return tables->blocks[class_first[(lead & 63) << 6 | (second & 63)]];
}

/* 128 | classes if all characters that begin with these two bytes have the same classes; otherwise 0. */
static uint8_t pair_bits(const struct scan_tables *tables, uint32_t lead, uint32_t second)
{
    const uint8_t *row = row_of(tables, lead, second);
    for (uint32_t last = 1; last < 64; last++)
        if (row[last] != row[0])
            return 0;
    return 128 | row[0];
}

/* Returns the length of the run of equal classes that begins at entry `at`; 0 if none begins there. A run at the end
 * continues at entry 0, where its rest also counts as one. */
static uint32_t run_at(const uint8_t classes[64], uint32_t at)
{
    uint32_t run = 0;
    if (!classes[at] || (at && classes[at - 1] == classes[at]))
        return 0;
    while (run < 64 && classes[(at + run) % 64] == classes[at])
        run++;
    return run;
}

/* Makes the `count` entries from `at` on run r of beginning i. A run that passes entry 63 also has all the numbers that
 * no entry has. */
static void run_set(struct scan_runs *runs, uint32_t r, uint32_t i, uint32_t at, uint32_t count, uint8_t classes)
{
    if (!count)
        return;
    runs->classes[r][i] = classes;
    runs->from[r][i] = (uint8_t)at;
    runs->more[r][i] = (uint8_t)(count - 1 + (at + count > 64 ? 256 - 64 : 0));
}

/* Fills beginning i. classes: by next byte & 63, 128 | classes of the characters, or 0 if they differ. The first run is
 * the longest, and the second is the longest one after it with a common character: of at least `least` entries, the
 * first in the order of bytes; or with 0, the longest. Example: of E3 80, the longest run is the brackets from 88 on.
 * The first other one of 4 has the comma and the full stop of Chinese and Japanese, and not the longest one. */
static void runs_set(struct scan_runs *runs, uint32_t i, const uint8_t classes[64], uint32_t least)
{
    uint32_t at = 0, longest = 0, other_at = 0, other = 0;
    for (uint32_t k = 0; k < 64; k++)
        if (run_at(classes, k) > longest) {
            longest = run_at(classes, k);
            at = k;
        }
    for (uint32_t k = 0; k < 64; k++) {
        const uint32_t run = (uint32_t)min64(run_at(classes, k), (at + 64 - k) % 64); /* up to the first run */
        if ((k + 64 - at) % 64 < longest || (least && (run < least || other)) || run <= other)
            continue;
        other = run;
        other_at = k;
    }
    run_set(runs, 0, i, at, longest, classes[at]);
    run_set(runs, 1, i, other_at, other, classes[other_at]);
}

/* Fills ascii_kinds, wide_kinds, ascii_rows, by_lead, and by_kana. */
static void init_ranges(struct scan_tables *tables)
{
    for (uint32_t i = 0; i < 128; i++)
        for (uint32_t kind = 0; kind < SCAN_KINDS; kind++)
            tables->ascii_rows[kind][i % 16] |= (uint8_t)((tables->ascii[i] >> kind & 1) << (i / 16));
    for (uint32_t i = 0; i < 128; i++)
        tables->ascii_kinds |= tables->ascii[i];
    for (uint32_t i = 0; i < CLASS_BLOCKS * 64; i++)
        tables->wide_kinds |= tables->blocks[i / 64][i % 64];
    for (uint32_t i = 0; i < 48; i++) {
        uint8_t classes[64];
        for (uint32_t k = 0; k < 64; k++)
            classes[k] = i < 32 ? 128 | tables->two[i][k] : pair_bits(tables, 0xC0 | i, k);
        runs_set(&tables->by_lead[i / 16], i % 16, classes, 0);
    }
    for (uint32_t i = 0; i < 16; i++) {
        uint8_t classes[64];
        for (uint32_t k = 0; k < 64; k++)
            classes[k] = 128 | row_of(tables, SCAN_KANA, 0x80 | i)[k];
        runs_set(&tables->by_kana, i, classes, 4);
    }
}

void scan_tables_init(struct scan_tables *tables, const struct split_rules *rules)
{
    memset(tables, 0, sizeof *tables);
    for (uint32_t i = 0; i < 128; i++)
        tables->ascii[i] = class_bits(rules, class_ascii[i]);
    if (rules->tail == TAIL_NEWLINES_SLASH)
        tables->ascii['/'] |= SCAN_SLASH;
    for (uint32_t i = 0; i < CLASS_BLOCKS; i++)
        for (uint32_t k = 0; k < 64; k++)
            tables->blocks[i][k] = class_bits(rules, class_blocks[i][k]) & ~SCAN_NEWLINE; /* which is always one byte */
    for (uint32_t i = 0; i < 32; i++)
        for (uint32_t k = 0; k < 64; k++)
            tables->two[i][k] = tables->blocks[class_first[i << 6 | k]][0];
    for (uint32_t i = 0; i < 64; i++)
        tables->leads[i] = lead_bits(tables, 0xC0 | i);
    for (uint32_t i = 0; i < SCAN_PAIRS; i++)
        for (uint32_t k = 0; k < 64; k++)
            tables->pairs[i][k] = pair_bits(tables, pair_leads[i], k);
    for (uint32_t i = 0; i < SCAN_ROWS; i++)
        memcpy(tables->rows[i], row_of(tables, row_bytes[i][0], row_bytes[i][1]), sizeof tables->rows[i]);
    init_ranges(tables);
}

scan_classify_function *scan_classify_choose(enum cpu_variant variant)
{
#if defined(__x86_64__)
    if (variant == CPU_VBMI)
        return scan_classify_vbmi;
    if (variant >= CPU_AVX2)
        return scan_classify_avx2;
#elif defined(__aarch64__)
    if (variant == CPU_NEON)
        return scan_classify_neon;
#endif
    return scan_classify_scalar;
}
