/* SPDX-License-Identifier: MIT */
/*
 * visible.h - which characters a terminal only shows, and a visible form of those that it would act on.
 *
 * Names, paths, texts, and messages may come from anyone. Written as they are, they could change the state of a
 * terminal, or show a line or an order of letters that is not there. A character is *plain* if it is valid UTF-8 and
 * none of these:
 *
 *   U+0000..U+001F, U+007F          control characters of ASCII; escape begins a sequence, newline a line
 *   U+0080..U+009F                  C1: U+009B begins a sequence, as escape and '[' do
 *   U+2028, U+2029                  end a line or a paragraph
 *   U+202A..U+202E, U+2066..U+2069  change the direction of the text that follows
 *
 * Each byte of other characters, and each byte that is not UTF-8, has a visible form: ^ and the letter 64 above for
 * ASCII, \x and two digits for the rest. Example: 1b 5b c2 9b is written as ^[[\xc2\x9b.
 */
#ifndef TOKMAP_COMMON_VISIBLE_H
#define TOKMAP_COMMON_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#define VISIBLE_MOST 4 /* bytes of the visible form of a byte */

/* Returns the bytes of the character at the start of the text, 1 to 4 (count > 0), and whether it is plain. Bytes that
 * are not UTF-8 are taken one at a time. */
size_t visible_step(const char *text, size_t count, bool *plain);
/* Returns true if all characters of a text are plain. */
bool visible_all(const char *text, size_t count);
/* Writes the visible form of a byte, and returns its length. */
size_t visible_form(char into[VISIBLE_MOST + 1], unsigned char byte);

/* Copies a text with what is not plain in its visible form, and ends it with a zero byte. Control characters of ASCII
 * in `kept` stay. What does not fit `capacity` (at least 1) is left out, in whole characters; VISIBLE_MOST * count + 1
 * is always enough. Returns the bytes written, without the zero byte. `into` and `text` do not overlap. */
size_t visible_copy(char *into, size_t capacity, const char *text, size_t count, const char *kept);

#endif
