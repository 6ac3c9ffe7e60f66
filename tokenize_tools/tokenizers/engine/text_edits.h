/* SPDX-License-Identifier: MIT */
/*
 * text_edits.h - where the bytes of a changed text come from: the list of parts that differ. All other bytes are those
 * of the old text, shifted.
 *
 * Example: NFC makes "Caf" + "e" + U+0301 + "!" (7 bytes, since U+0301 has two) into "Caf" + U+00E9 + "!" (6 bytes).
 * The only edit is new [3,5) from old [3,6). A token that ends at byte 5 of the new text ends at byte 6 of the old one,
 * and so does a token that ends at byte 4, inside the edit.
 */
#ifndef TOKMAP_ENGINE_TEXT_EDITS_H
#define TOKMAP_ENGINE_TEXT_EDITS_H

#include <stdbool.h>
#include <stdint.h>

struct text_edit {
    uint64_t from, to;         /* of the new text; equal: the old part was taken out */
    uint64_t old_from, old_to; /* of the old text; equal: the new part was put in */
};

/* Initialize with zeros. */
struct text_edits {
    struct text_edit *edits; /* ascending, without overlaps */
    uint64_t count, capacity;
    uint64_t cursor; /* the edit that the last call of text_edits_map found */
};

/* Removes all edits, but keeps their memory. */
void text_edits_clear(struct text_edits *edits);
void text_edits_free(struct text_edits *edits);
/* Adds an edit after all others. Returns false if memory is lacking. */
bool text_edits_add(struct text_edits *edits, struct text_edit edit);
/* Replaces a part of the new text by the part of the old text that it was made of. A part that begins or ends inside an
 * edit gets all of the edit. An empty part elsewhere stays empty. *begin must not be smaller than in the last call
 * since text_edits_clear, which makes the calls for all tokens of a text linear. */
void text_edits_map(struct text_edits *edits, uint64_t *begin, uint64_t *end);

#endif
