/*
 * utf8.h - is it UTF-8, where not, and what stands in its place.
 *
 * "Valid" is Unicode's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF. U+0000 is text like any
 * other character. What is not valid is cut into maximal subparts, as Unicode recommends and as Python's
 * errors="replace" and Rust's from_utf8_lossy do; each becomes one U+FFFD.
 */
#ifndef TOKMAP_TEXT_UTF8_H
#define TOKMAP_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes at the start are valid and whole: `count` if all of it is. */
size_t utf8_valid_prefix(const char *bytes, size_t count);

/* The length of the sequence or maximal subpart at `bytes` (count > 0); *valid says which. */
size_t utf8_step(const char *bytes, size_t count, bool *valid);

/* Where to cut so that no character, valid or perhaps going to be, is torn: `count` less at most 3. */
size_t utf8_cut(const char *bytes, size_t count);

#define UTF8_REPLACEMENT "\xef\xbf\xbd"
#define UTF8_REPLACEMENT_BYTES 3

/* Bytes that the text has when each maximal subpart is replaced; *replaced counts them. */
size_t utf8_replaced_bytes(const char *bytes, size_t count, size_t *replaced);
/* Writes it: utf8_replaced_bytes() bytes. */
void utf8_replace(char *into, const char *bytes, size_t count);

/* Writes the character, up to 4 bytes, and returns how many; code is a Unicode scalar value. */
size_t utf8_put(char *into, unsigned code);

#endif
