/* SPDX-License-Identifier: MIT */
/* nfc_tables.h - the tables that nfc.c uses. make_unicode.py generates nfc_tables.c and prints the sizes below. */
#ifndef TOKMAP_UNICODE_NFC_TABLES_H
#define TOKMAP_UNICODE_NFC_TABLES_H

#include <stddef.h>
#include <stdint.h>

#define NFC_KINDS 64
#define NFC_BLOCKS 120
#define NFC_SPANS 336
#define NFC_PARTS 3404
#define NFC_PAIRS 940

/* Unicode's quick check for NFC: whether a character can occur in a text in NFC. Maybe: it can compose with the
 * character before it. */
enum { NFC_YES, NFC_MAYBE, NFC_NO };

/* Facts about a character that nfc.c needs. Kind 0 is {0, NFC_YES}: nothing before the character can change it. */
struct nfc_kind {
    uint8_t combining_class, quick_check;
};
/* Characters `first` to `last`, each of which decomposes into `count` others: those of the first one begin with
 * nfc_parts[parts], and those of the next one follow. */
struct nfc_span {
    uint32_t first, last;
    uint16_t parts, count;
};
/* Two characters and the one that they compose to. */
struct nfc_pair {
    uint32_t first, second, whole;
};

extern const uint64_t nfc_masks[0x10000 / 64]; /* one bit per character below U+10000: it is not of kind 0 */
extern const struct nfc_kind nfc_kinds[NFC_KINDS];
/* The kind of character c is nfc_kinds[nfc_blocks[nfc_first[c / 64]][c % 64]]. */
extern const uint8_t nfc_first[0x110000 / 64];
extern const uint8_t nfc_blocks[NFC_BLOCKS][64];
extern const struct nfc_span nfc_spans[NFC_SPANS]; /* ascending; without Hangul syllables, which nfc.c computes */
extern const uint32_t nfc_parts[NFC_PARTS];
extern const struct nfc_pair nfc_pairs[NFC_PAIRS]; /* ascending by first, then by second; without Hangul */

/* Returns the *count characters of the full decomposition of a character that is no Hangul syllable, or NULL if it does
 * not decompose. */
static inline const uint32_t *nfc_decomposition(uint32_t code, uint32_t *count)
{
    uint32_t low = 0, high = NFC_SPANS;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (nfc_spans[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == NFC_SPANS || nfc_spans[low].first > code)
        return NULL;
    *count = nfc_spans[low].count;
    return nfc_parts + nfc_spans[low].parts + (code - nfc_spans[low].first) * *count;
}

#endif
