/* SPDX-License-Identifier: MIT */
/* model_made.h - SentencePiece models and precompiled maps of characters, written field by field, whatever they say. */
#ifndef TOKMAP_TESTS_MODEL_MADE_H
#define TOKMAP_TESTS_MODEL_MADE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. Initialize with zeros; free(bytes) in the end. */
struct made_bytes {
    uint8_t *bytes;
    size_t count, room;
};
void made_put(struct made_bytes *made, const void *bytes, size_t count);
void made_text(struct made_bytes *made, const char *text); /* without its zero */
void made_base64(struct made_bytes *made, const struct made_bytes *bytes);

enum made_kind { MADE_NORMAL = 1, MADE_UNKNOWN, MADE_CONTROL, MADE_USER_DEFINED, MADE_UNUSED, MADE_BYTE };
enum made_type { MADE_UNIGRAM = 1, MADE_BPE, MADE_WORD, MADE_CHAR };

void made_piece(struct made_bytes *model, const void *text, size_t bytes, float score, enum made_kind kind);
/* Ends a model with its two specifications. charsmap: may be NULL. */
void made_specs(struct made_bytes *model, enum made_type type, const struct made_bytes *charsmap);

/* ---- precompiled maps ---- */

/* The double array that a map begins with: 32-bit units. A unit has the label by which it is reached, an offset to its
 * children (the child for a byte is at index ^ offset ^ byte), and whether a key ends there (its value is at
 * index ^ offset). */
#define MADE_UNITS 1024
struct made_map {
    uint32_t units[MADE_UNITS];
    uint32_t count;
};
uint32_t made_unit(uint32_t label, uint32_t offset, int ends);
uint32_t made_value(uint32_t value);
/* Sets a map from the letter `from` to the text at `value` of the texts. */
void made_map_letter(struct made_map *map, char from, uint32_t value);
/* Writes a map: the size of the array in bytes, as `size` says (UINT32_MAX: its true size), the array, and the texts.
 */
void made_charsmap(struct made_bytes *charsmap, const struct made_map *map, uint32_t size, const void *texts,
                   size_t bytes);

#endif
