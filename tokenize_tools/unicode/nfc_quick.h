/* SPDX-License-Identifier: MIT */
/*
 * nfc_quick.h - finds the characters that nfc.c calls unstable, 64 bytes of text at once.
 */
#ifndef TOKMAP_UNICODE_NFC_QUICK_H
#define TOKMAP_UNICODE_NFC_QUICK_H

#include <stddef.h>
#include <stdint.h>

#include "common/cpu.h"

/* Bytes of text after the first that nfc_quick_function reads: 64, and the rest of a character that begins there. */
#define NFC_QUICK_BYTES 67

struct nfc_quick;
/* Passes over text from *at on while all characters that begin in a block of 64 bytes are stable, as long as
 * NFC_QUICK_BYTES bytes are left before `count`. Returns the bits of the first bytes of unstable characters among
 * text[*at, *at + 64), or 0 if fewer bytes are left; *at may be inside a character then. */
typedef uint64_t nfc_quick_function(const struct nfc_quick *quick, const uint8_t *text, size_t *at, size_t count);

/* Tables for the function: which characters may be unstable, by their first bytes. */
struct nfc_quick {
    nfc_quick_function *find; /* NULL: this processor has none */
    /* The bit of the second byte & 63 in the row of the first byte & 15: a character that begins with these two bytes
     * is unstable. Rows of 8 bytes. */
    uint8_t three[128];
    uint8_t four[64]; /* the same for the first byte 0xF0, repeated for each 8 bytes */
    uint8_t two[64];  /* 255 at a first byte & 63 if such a character of two bytes is unstable */
};

/* Fills the tables for a variant that the processor has. */
void nfc_quick_init(struct nfc_quick *quick, enum cpu_variant variant);

/* Returns whether the character that begins here is unstable. */
int nfc_is_unstable(const uint8_t *text);

#if defined(__x86_64__)
nfc_quick_function nfc_quick_avx2;
nfc_quick_function nfc_quick_vbmi;

/* For these: returns those of the characters of more than one byte at these bits that are unstable. */
uint64_t nfc_quick_each(const uint8_t *text, uint64_t doubtful);
#endif

#endif
