/* SPDX-License-Identifier: MIT */
/* edit_distance.h - how far apart two words are, for "did you mean". */
#ifndef TOKMAP_TEXT_EDIT_DISTANCE_H
#define TOKMAP_TEXT_EDIT_DISTANCE_H

#include <stddef.h>

#define EDIT_DISTANCE_BYTES_MOST 63

/* Returns the Levenshtein distance of two words: the smallest number of bytes to insert, delete, or change that makes
 * one of them the other. ASCII letters that differ in case only count as equal. Returns SIZE_MAX if either word is
 * longer than EDIT_DISTANCE_BYTES_MOST, which is too long for a misspelling. */
size_t edit_distance(const char *a, const char *b);

#endif
