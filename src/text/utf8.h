/* SPDX-License-Identifier: MIT */
/*
 * utf8.h - checks whether bytes are UTF-8, and replaces those that are not.
 *
 * *Valid* is what table 3-7 of the Unicode standard allows: no overlong forms, no surrogates, nothing above U+10FFFF.
 * U+0000 is a character like any other. Invalid bytes are divided into *maximal subparts*: the longest start of a valid
 * sequence that the invalid one has, or else one byte. Each of them becomes one U+FFFD. This is what Unicode
 * recommends, and what Python's errors="replace" and Rust's from_utf8_lossy do. Example: e2 82 41 is one subpart, e2
 * 82, and the letter A.
 */
#ifndef TOKMAP_TEXT_UTF8_H
#define TOKMAP_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of bytes at the start that are complete and valid sequences; `count` if the whole text is
 * valid. */
size_t utf8_valid_prefix(const char *bytes, size_t count);

/* Returns the length of the valid sequence or the maximal subpart at the start of the text (count > 0); *valid says
 * which of both it is. */
size_t utf8_step(const char *bytes, size_t count, bool *valid);

/* Returns where to cut a text that continues, so that no character is divided: `count`, or up to 3 less if the text
 * ends in the middle of a sequence. */
size_t utf8_cut(const char *bytes, size_t count);

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define UTF8_REPLACEMENT_BYTES 3

/* Returns the size of the text once each maximal subpart is replaced by U+FFFD; *replaced is their number. */
size_t utf8_replaced_bytes(const char *bytes, size_t count, size_t *replaced);
/* Writes the text with these replacements: utf8_replaced_bytes() bytes. `into` and `bytes` do not overlap. */
void utf8_replace(char *into, const char *bytes, size_t count);

/* Writes a character as UTF-8, 1 to 4 bytes, and returns their number. code: a Unicode scalar value. */
size_t utf8_put(char *into, unsigned code);

#if defined(__x86_64__)
/* Says by vector instructions whether the whole text is valid, but not where it is invalid. Only if CPU_AVX2. */
bool utf8_valid_avx2(const char *bytes, size_t count);
#endif

#endif
