/* SPDX-License-Identifier: MIT */
/*
 * regex_kinds.h - translates patterns and texts from characters to kinds of characters.
 *
 * A pattern distinguishes characters only by the sets that it names. Two characters that belong to exactly the same
 * sets of the pattern are of one kind. A pattern has few kinds, at most 256 here, so a text becomes a string of bytes,
 * one per character, and each set of the pattern a class of a few bytes. PCRE2 then tests one bit where it would have
 * to search hundreds of ranges, and it needs no Unicode support.
 *
 * Example: \p{L}+|[a-f] has three kinds: a to f, which are in both sets; all other letters; and all other characters.
 * With the numbers 0, 1, and 2 the pattern becomes [\x00\x01]+|[\x00], and the text "ax!" becomes the bytes 0 1 2.
 */
#ifndef TOKMAP_PRETOKENIZE_REGEX_KINDS_H
#define TOKMAP_PRETOKENIZE_REGEX_KINDS_H

#include "common/bytes_buffer.h"
#include "unicode/code_sets.h"

/* The sets of a pattern, numbered in the order of their first use; equal sets have one number. Initialize with
 * zeros. */
struct regex_sets {
    struct code_range *ranges; /* of all sets, in the order of the sets; ascending within a set */
    uint64_t range_count, range_room;
    size_t *ends; /* ends[i]: where the ranges of set i end */
    uint32_t count;
    uint64_t room;
    size_t begun; /* beginning of the ranges of the set that is being made */
};
void regex_sets_free(struct regex_sets *sets);

/* To add a set: begin, then add its ranges (first <= last < CODES, ascending, disjoint), then end. regex_set_end
 * appends a marker for the set to the pattern. The functions return false if memory is lacking; regex_set_end also at
 * more than 2^14 sets. */
void regex_set_begin(struct regex_sets *sets);
bool regex_set_range(struct regex_sets *sets, uint32_t first, uint32_t last);
bool regex_set_end(struct regex_sets *sets, struct bytes_buffer *pattern);

/* The kind of each character: a table in blocks of 256 code points, in which equal blocks are stored once. */
struct regex_kinds {
    uint16_t block_of[CODES / 256];
    uint8_t (*blocks)[256];
    uint32_t block_count;
    uint64_t block_room;
    uint8_t first[128];  /* the kinds of ASCII */
    uint8_t mapped[256]; /* by byte: the kind of the character that represents it (byte_alphabet.h) */
};
void regex_kinds_free(struct regex_kinds *kinds);

/* Computes the kinds that the sets distinguish, and appends the pattern over kinds to `into`; `pattern` contains
 * markers of these sets. `kinds` must contain zeros. Returns false if there are more than 256 kinds (*too_many is then
 * true) or memory is lacking; the caller frees `kinds` in any case. */
bool regex_kinds_make(struct regex_kinds *kinds, const struct regex_sets *sets, const struct bytes_buffer *pattern,
                      struct bytes_buffer *into, bool *too_many);

/* Appends the kinds of a text to `into`: one byte per character of valid UTF-8 (regex_kinds_of_text), or one byte per
 * byte, for the characters that represent the bytes (regex_kinds_of_bytes). Both return false if memory is lacking. */
bool regex_kinds_of_text(const struct regex_kinds *kinds, const uint8_t *text, size_t count, struct bytes_buffer *into);
bool regex_kinds_of_bytes(const struct regex_kinds *kinds, const uint8_t *text, size_t count,
                          struct bytes_buffer *into);

#endif
