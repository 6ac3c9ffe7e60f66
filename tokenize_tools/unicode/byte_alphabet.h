/* byte_alphabet.h - the 256 characters in which byte-level vocabularies write bytes (bytes_to_unicode of GPT-2). */
#ifndef TOKMAP_UNICODE_BYTE_ALPHABET_H
#define TOKMAP_UNICODE_BYTE_ALPHABET_H

#include <stdint.h>

/* The character that stands for a byte in the vocabulary of a byte-level tokenizer. */
uint32_t byte_character(uint8_t byte);
/* The byte that a character stands for, or -1. */
int character_byte(uint32_t code);

#endif
