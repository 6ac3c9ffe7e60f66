/* SPDX-License-Identifier: MIT */
/*
 * lower_case.h - lower case of texts as Python's str.lower() has it, for `pack --dedup minhash`, which reproduces what
 * datatrove compares.
 */
#ifndef TOKMAP_UNICODE_LOWER_CASE_H
#define TOKMAP_UNICODE_LOWER_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOWER_SIGMA 0x3A3u /* it becomes U+03C3, or U+03C2 at the end of a word */

/* Returns the lower case of one character, or the character itself. Of U+0130 it is i, without the dot that Python adds
 * as a second character (U+0307); of LOWER_SIGMA it is U+03C3. */
uint32_t lower_case(uint32_t code);

/* Returns true if a sigma at text[at .. at + 2) becomes U+03C2: characters that have no influence are passed over
 * (quotes, marks, and others), then a letter with case is before it and none after it. The text is valid UTF-8. */
bool lower_sigma_is_final(const uint8_t *text, size_t count, size_t at);

#endif
