/* SPDX-License-Identifier: MIT */
/*
 * match_long.h - finds, for each place of a text, the longest of some texts that begins there, in time that is linear
 * in the text whatever the texts are. match_table.h uses it for texts that are too long to compare them at each place.
 */
#ifndef TOKMAP_ENGINE_MATCH_LONG_H
#define TOKMAP_ENGINE_MATCH_LONG_H

#include <stddef.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

struct match_text {
    const uint8_t *bytes;
    uint32_t count; /* at least 1 */
};

struct match_long; /* immutable; shared by threads */

/* Makes the automaton of those of `count` texts that have more than `shortest` bytes. No two texts are equal. The texts
 * are not needed afterwards. *made is NULL on failure, and if no text is that long. The automaton takes 13 bytes per
 * byte of these texts. Statuses: OK, ERROR_LIMIT (they have more than 2^30 bytes), ERROR_MEMORY. */
enum tokmap_status match_long_new(struct match_long **made, const struct match_text *texts, size_t count,
                                  uint32_t shortest, struct tokmap_error *error);
void match_long_free(struct match_long *automaton); /* accepts NULL */

/* Returns the bytes of the longest text. */
uint32_t match_long_longest(const struct match_long *automaton);

/* Writes to found[i], for each i below `places`, 1 plus the index of the longest text that begins at text[i], or 0 if
 * none does. count: bytes of the text, at least `places`. Adds to *steps the work, which is at most twice the number of
 * bytes that are read: places + match_long_longest(), and not more than `count`. */
void match_long_find(const struct match_long *automaton, const uint8_t *text, size_t places, size_t count,
                     uint32_t *found, uint64_t *steps);

#endif
