/* nfc_tables.h - what nfc.c looks up; made by make_unicode.py from the reference. */
#ifndef TOKMAP_UNICODE_NFC_TABLES_H
#define TOKMAP_UNICODE_NFC_TABLES_H

#include <stdint.h>

#define NFC_KINDS 64
#define NFC_BLOCKS 120
#define NFC_PARTED 2060
#define NFC_PARTS 3404
#define NFC_PAIRS 940

enum { NFC_YES, NFC_MAYBE, NFC_NO }; /* whether a character stays as it is */

/* Combining class and the above. Kind 0: class 0, stays whatever comes before it. */
struct nfc_kind {
    uint8_t rank, stays;
};
struct nfc_pair {
    uint32_t first, second, whole;
};

extern const uint64_t nfc_masks[0x10000 / 64]; /* a bit a character below U+10000: it is not of kind 0 */
extern const struct nfc_kind nfc_kinds[NFC_KINDS];
extern const uint8_t nfc_first[0x110000 / 64];
extern const uint8_t nfc_blocks[NFC_BLOCKS][64];
extern const uint32_t nfc_parted[NFC_PARTED]; /* characters that decompose, ascending; Hangul syllables do too */
extern const uint16_t nfc_part_offsets[NFC_PARTED + 1];
extern const uint32_t nfc_parts[NFC_PARTS];
extern const struct nfc_pair nfc_pairs[NFC_PAIRS]; /* ascending */

#endif
