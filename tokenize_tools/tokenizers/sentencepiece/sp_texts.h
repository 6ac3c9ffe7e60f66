/* SPDX-License-Identifier: MIT */
/*
 * sp_texts.h - the first step of building a sp_model: texts and characters, checked. Also what the steps share.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_TEXTS_H
#define TOKMAP_SENTENCEPIECE_SP_TEXTS_H

#include "sp_model.h"

#define SP_ATOM_BLOCK 1024 /* code points: a page of 4 KiB */

/* A model being built (sp_texts.c, then sp_pairs.c, then sp_engine.c). */
struct sp_builder {
    const struct sp_source *source;
    struct sp_model *model;
    struct tokmap_error *error;
    /* For each id the text that becomes it by characters and merges, with spaces for "▁"; empty: no text does. */
    uint8_t *bytes;
    uint32_t *offsets;
    bool defined; /* there are user-defined pieces */
    /* Blocks of model->atoms that are not all 0. Reading a page that was never written makes the kernel map one. */
    uint64_t atom_blocks[SP_CODES / SP_ATOM_BLOCK / 64];
    uint8_t *reached;            /* by id: merging the token's own text is known to give it; NULL: not known of any */
    struct sp_relation relation; /* the first bytes of characters that stand side by side in tokens */
};

/* Fills the texts that ids decode to, the builder's texts, and the tokens of bytes. Statuses: OK, ERROR_FORMAT,
 * ERROR_MEMORY. */
enum tokmap_status sp_texts_read(struct sp_builder *builder);

static inline void sp_atom_set(struct sp_builder *builder, uint32_t code, uint32_t symbol)
{
    const uint32_t block = code / SP_ATOM_BLOCK;
    builder->model->atoms[code] = symbol + 1;
    builder->atom_blocks[block / 64] |= (uint64_t)1 << (block % 64);
}

/* Numbers the symbols and fills model->atoms. Statuses: OK, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_atoms_read(struct sp_builder *builder);

/* Notes that a merge, or a user-defined piece, crosses the border at text[at] inside a token's text of `count`
 * bytes. */
void sp_border_note(struct sp_builder *builder, const uint8_t *text, uint32_t at, uint32_t count);

/* Records that memory ran out, and returns ERROR_MEMORY. */
enum tokmap_status sp_no_memory(const struct sp_builder *builder);

static inline const uint8_t *sp_text(const struct sp_builder *builder, uint32_t id)
{
    return builder->bytes + builder->offsets[id];
}

static inline uint32_t sp_text_bytes(const struct sp_builder *builder, uint32_t id)
{
    return builder->offsets[id + 1] - builder->offsets[id];
}

static inline enum sp_kind sp_kind_of(const struct sp_source *source, uint32_t id)
{
    return source->kinds ? (enum sp_kind)source->kinds[id] : SP_NORMAL;
}

/* Returns whether a text is a single character. count: at least 1. */
static inline bool sp_is_character(const uint8_t *text, uint32_t count)
{
    uint32_t length;
    (void)sp_character(text, count, &length);
    return length == count;
}

#endif
