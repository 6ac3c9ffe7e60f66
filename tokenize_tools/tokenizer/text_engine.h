/*
 * text_engine.h - what turns text into ids once added tokens are out of it and it is normalized: the part of a pipeline
 * that differs between byte-level and SentencePiece-style vocabularies. An engine is immutable and shared by threads.
 */
#ifndef TOKMAP_TOKENIZER_TEXT_ENGINE_H
#define TOKMAP_TOKENIZER_TEXT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer.h"

struct text_engine;
struct text_engine_state; /* of one thread */

/* Where a stretch of text stands. */
enum engine_place {
    ENGINE_DOCUMENT_START,
    ENGINE_SEGMENT_START, /* behind an added token that was found in the raw text */
    ENGINE_INSIDE         /* behind one found in normalized text: what is put before a segment stands elsewhere */
};

/* Where ids go, of 16 or 32 bits as the pipeline has them. */
struct ids_out {
    void *tokens;
    uint64_t count, room; /* ids */
    bool wide;
    uint64_t largest;
};

struct text_engine_kind {
    void (*free)(struct text_engine *engine);
    enum tokmap_status (*state_new)(struct text_engine_state **state, const struct text_engine *engine,
                                    struct tokmap_error *error);
    void (*state_free)(struct text_engine_state *state);
    /* Appends the ids of a stretch of text, which is taken alone. There is room for count * bound ids.
     * Statuses: OK, ERROR_MEMORY. */
    enum tokmap_status (*text)(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                               enum engine_place place, struct ids_out *out, struct tokmap_error *error);
    /* The same for a piece that is cut already; NULL if the engine never sees such. */
    enum tokmap_status (*piece)(struct text_engine_state *state, const uint8_t *bytes, uint64_t count,
                                struct ids_out *out, struct tokmap_error *error);
    /* The bytes that an id stands for; false: it is none of the engine's. */
    bool (*bytes)(const struct text_engine *engine, uint32_t id, const uint8_t **bytes, uint32_t *count);
    /* What is taken off the front of a decoded text, because encoding put it there; 0 or NULL: nothing. */
    size_t (*front)(const struct text_engine *engine, const char *text, size_t count);
    /* Cuts a text into pieces, and says what the state has counted; NULL: nothing. For measuring. */
    void (*measure)(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                    struct tokenizer_measures *measures);
    /* Whether text may be cut where a letter, which begins with the byte `left`, ends and the character that begins
     * with the byte `right` follows, one of pipeline_cut.c's: the ids of both parts, the second ENGINE_INSIDE, are
     * those of the whole, whatever else is in it. NULL: never. */
    bool (*border)(const struct text_engine *engine, uint8_t left, uint8_t right);
};

struct text_engine {
    const struct text_engine_kind *kind;
};

static inline void ids_append(struct ids_out *out, uint32_t id)
{
    if (out->wide)
        ((uint32_t *)out->tokens)[out->count++] = id;
    else
        ((uint16_t *)out->tokens)[out->count++] = (uint16_t)id;
    if (id > out->largest)
        out->largest = id;
}

#endif
