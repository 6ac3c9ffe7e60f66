/* SPDX-License-Identifier: MIT */
/*
 * nfc_quick.c - which characters nfc.c calls unstable, by their first two bytes.
 *
 * The idea. Whether a character is stable is a bit of a table of 8 KiB, which has to be looked up for one character
 * after another. But characters that begin with the same two bytes are neighbors in Unicode, 64 of them if they have
 * three bytes, and mostly all of them are stable. One bit for each pair of first bytes says so; the bits for all
 * characters of three bytes take 128 bytes, which are two registers of AVX-512, or eight tables for shuffles of AVX2.
 * So 64 bytes of text are looked up at once, and only a character whose pair has a bit needs a look at the large table.
 *
 * Example: the letters of "\u3042\u2019" are E3 81 82 and E2 80 99. No character from E3 81 80 to E3 81 BF is unstable,
 * so the first one needs no further look. U+2000, E2 80 80, is replaced by NFC, so the second one is looked up; it is
 * stable, too.
 */
#include "nfc_quick.h"

#include <string.h>

#include "nfc_tables.h"
#include "text/code_point.h"

int nfc_is_unstable(const uint8_t *text)
{
    size_t bytes;
    const uint32_t code = code_point_get(text, &bytes);
    return nfc_blocks[nfc_first[code >> 6]][code & 63] != 0;
}

#if defined(__x86_64__)
uint64_t nfc_quick_each(const uint8_t *text, uint64_t doubtful)
{
    uint64_t found = 0;
    for (; doubtful; doubtful &= doubtful - 1) {
        const uint32_t at = (uint32_t)__builtin_ctzll(doubtful);
        const uint8_t *bytes = text + at;
        uint64_t unstable;
        if (__builtin_expect(bytes[0] >= 0xF0, 0)) {
            unstable = (uint64_t)nfc_is_unstable(bytes);
        } else {
            const uint32_t three = bytes[0] >= 0xE0, first = bytes[0] & 31u;
            const uint32_t row = three ? (first & 15) << 6 | (bytes[1] & 63) : first;
            unstable = nfc_masks[row] >> (bytes[1 + three] & 63) & 1;
        }
        found |= unstable << at;
    }
    return found;
}
#endif

void nfc_quick_init(struct nfc_quick *quick, enum cpu_variant variant)
{
    uint8_t unstable[NFC_BLOCKS] = {0}; /* true if a block has an unstable character */
    memset(quick, 0, sizeof *quick);
    for (uint32_t block = 0; block < NFC_BLOCKS; block++)
        for (uint32_t i = 0; i < 64; i++)
            unstable[block] |= nfc_blocks[block][i] != 0;
    for (uint32_t pair = 0; pair < 1024; pair++) /* U+0000 to U+FFFF in blocks of 64 */
        quick->three[pair / 8] |= (uint8_t)(unstable[nfc_first[pair]] << (pair % 8));
    for (uint32_t lead = 0; lead < 32; lead++)
        quick->two[lead] = unstable[nfc_first[lead]] ? 255 : 0;
    for (uint32_t code = 0x10000; code < 0x40000; code += 64)
        if (unstable[nfc_first[code / 64]])
            quick->four[code >> 15] |= (uint8_t)(1 << (code >> 12 & 7));
    for (uint32_t i = 8; i < sizeof quick->four; i++)
        quick->four[i] = quick->four[i % 8];
#if defined(__x86_64__)
    if (variant == CPU_VBMI)
        quick->find = nfc_quick_vbmi;
    else if (variant >= CPU_AVX2)
        quick->find = nfc_quick_avx2;
#endif
    (void)variant;
}
