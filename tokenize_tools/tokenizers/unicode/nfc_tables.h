/* SPDX-License-Identifier: MIT */
/* nfc_tables.h - the tables that nfc.c uses. make_unicode.py generates nfc_tables.c and prints the sizes below. */
#ifndef TOKMAP_UNICODE_NFC_TABLES_H
#define TOKMAP_UNICODE_NFC_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "code_sets.h"

#define NFC_KINDS 67
#define NFC_BLOCKS 197
#define NFC_SPANS 336
#define NFC_PARTS 3404
#define NFKC_SPANS 410
#define NFKC_PARTS 5599
#define NFC_PAIRS 940
#define NFC_PARTS_MOST 18 /* of one character */

/* The normal forms, in the order of the tables. */
enum normal_form { FORM_NFC, FORM_NFD, FORM_NFKC, FORM_NFKD, NORMAL_FORMS };

/* Unicode's quick check: whether a character can occur in a text in a normal form. Maybe: it can compose with the
 * character before it. */
enum { NFC_YES, NFC_MAYBE, NFC_NO };

/* Facts about a character that nfc.c needs. Kind 0 has zeros only. */
struct nfc_kind {
    uint8_t combining_class, quick_check[NORMAL_FORMS];
};
/* Characters `first` to `last`, each of which decomposes into `count` others: those of the first one begin with
 * nfc_parts[parts], and those of the next one follow. */
struct nfc_span {
    uint32_t first, last;
    uint16_t parts, count;
};
extern const struct nfc_kind nfc_kinds[NFC_KINDS];
/* The kind of character c is nfc_kinds[nfc_blocks[nfc_first[c / 64]][c % 64]]. */
extern const uint8_t nfc_first[0x110000 / 64];
extern const uint8_t nfc_blocks[NFC_BLOCKS][64];
extern const struct nfc_span nfc_spans[NFC_SPANS]; /* ascending; without Hangul syllables, which nfc.c computes */
extern const uint32_t nfc_parts[NFC_PARTS];
/* The same for characters that NFKD decomposes otherwise than NFD. */
extern const struct nfc_span nfkc_spans[NFKC_SPANS];
extern const uint32_t nfkc_parts[NFKC_PARTS];

/* Returns the *count characters that a character of these spans decomposes to, or NULL. */
static inline const uint32_t *nfc_spans_find(const struct nfc_span *spans, uint32_t spans_count, const uint32_t *parts,
                                             uint32_t code, uint32_t *count)
{
    const struct nfc_span *span = code_find(spans, sizeof *span, spans_count, code);
    if (!span || span->first > code)
        return NULL;
    *count = span->count;
    return parts + span->parts + (code - span->first) * *count;
}

/* Returns the *count characters of the full canonical decomposition of a character that is no Hangul syllable, or NULL
 * if it does not decompose. */
static inline const uint32_t *nfc_decomposition(uint32_t code, uint32_t *count)
{
    return nfc_spans_find(nfc_spans, NFC_SPANS, nfc_parts, code, count);
}

#endif
