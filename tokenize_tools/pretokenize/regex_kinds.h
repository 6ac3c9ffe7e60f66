/*
 * regex_kinds.h - a pattern over kinds of characters in place of characters.
 *
 * A pattern tells characters apart only by the sets that it names. Characters that are in the same of its sets are one
 * kind; there are few kinds, so a text becomes a string of bytes, one a character, and the pattern one over bytes, in
 * which each set is a handful of them. PCRE2 then tests a bit where it would go through hundreds of ranges, and knows
 * no UTF-8.
 */
#ifndef TOKMAP_PRETOKENIZE_REGEX_KINDS_H
#define TOKMAP_PRETOKENIZE_REGEX_KINDS_H

#include "common/bytes_buffer.h"
#include "unicode/code_sets.h"

#define REGEX_CODES 0x110000u

/* The sets of a pattern, in the order of their first places. Zeroed: none. */
struct regex_sets {
    struct code_range *ranges; /* of all sets, one behind the other; ascending in each */
    size_t range_count, range_room;
    size_t *ends;              /* of each set's ranges */
    uint32_t count, room;
    size_t begun;              /* where the ranges of the set that is being made begin */
};
void regex_sets_free(struct regex_sets *sets);
void regex_set_begin(struct regex_sets *sets);
bool regex_set_range(struct regex_sets *sets, uint32_t first, uint32_t last); /* false: no memory */
/* Ends a set and appends what stands for it in a pattern. False: no memory. */
bool regex_set_put(struct regex_sets *sets, struct bytes_buffer *pattern);

/* Kinds of characters: by blocks of 256, those that are alike once. */
struct regex_kinds {
    uint16_t block_of[REGEX_CODES / 256];
    uint8_t (*blocks)[256];
    uint32_t block_count, block_room;
    uint8_t first[128];  /* of ASCII */
    uint8_t mapped[256]; /* of the characters that stand for bytes */
};
void regex_kinds_free(struct regex_kinds *kinds);

/* Works out the kinds and writes the pattern over them. *too_many: there are more than 256. False: that, or no
 * memory. */
bool regex_kinds_make(struct regex_kinds *kinds, const struct regex_sets *sets, const struct bytes_buffer *pattern,
                      struct bytes_buffer *into, bool *too_many);

/* Appends the kinds of a text's characters, which is UTF-8, or of the characters that stand for its bytes. */
bool regex_kinds_of_text(const struct regex_kinds *kinds, const uint8_t *text, size_t count, struct bytes_buffer *into);
bool regex_kinds_of_bytes(const struct regex_kinds *kinds, const uint8_t *text, size_t count, struct bytes_buffer *into);

#endif
