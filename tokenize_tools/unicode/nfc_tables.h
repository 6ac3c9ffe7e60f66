/* nfc_tables.h - the tables that nfc.c uses. make_unicode.py generates nfc_tables.c and prints the sizes below. */
#ifndef TOKMAP_UNICODE_NFC_TABLES_H
#define TOKMAP_UNICODE_NFC_TABLES_H

#include <stdint.h>

#define NFC_KINDS 64
#define NFC_BLOCKS 120
#define NFC_DECOMPOSING 2060
#define NFC_PARTS 3404
#define NFC_PAIRS 940

/* Unicode's quick check for NFC: whether a character can occur in a text in NFC. Maybe: it can compose with the
 * character before it. */
enum { NFC_YES, NFC_MAYBE, NFC_NO };

/* What nfc.c needs to know of a character. Kind 0 is {0, NFC_YES}: nothing before the character can change it. */
struct nfc_kind {
    uint8_t combining_class, quick_check;
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
/* The characters that decompose, ascending, without Hangul syllables, which nfc.c computes. The full decomposition of
 * nfc_decomposing[i] is nfc_parts[nfc_part_offsets[i]] up to, not including, nfc_parts[nfc_part_offsets[i + 1]]. */
extern const uint32_t nfc_decomposing[NFC_DECOMPOSING];
extern const uint16_t nfc_part_offsets[NFC_DECOMPOSING + 1];
extern const uint32_t nfc_parts[NFC_PARTS];
extern const struct nfc_pair nfc_pairs[NFC_PAIRS]; /* ascending by first, then by second; without Hangul */

#endif
