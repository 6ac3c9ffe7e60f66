/* SPDX-License-Identifier: MIT */
/*
 * byte_alphabet.h - the 256 characters that represent bytes in the files of byte-level vocabularies (bytes_to_unicode
 * of GPT-2). Printable characters of Latin-1 represent themselves; the other 68 bytes have U+0100 to U+0143, in order.
 */
#ifndef TOKMAP_UNICODE_BYTE_ALPHABET_H
#define TOKMAP_UNICODE_BYTE_ALPHABET_H

#include <stdint.h>

/* Returns the character that represents a byte. */
uint32_t byte_character(uint8_t byte);
/* Returns the byte that a character represents, 0 to 255, or -1. */
int character_byte(uint32_t code);

/* Returns the byte that a token of a vocabulary of characters names ("<0x0A>"), or -1. */
int byte_named(const uint8_t *text, uint32_t count);

#endif
