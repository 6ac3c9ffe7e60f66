/* SPDX-License-Identifier: MIT */
/*
 * text_engine.h - the interface of engines. An engine turns text into ids after added tokens have been taken out and
 * the text has been normalized. It is the part of a pipeline that differs between byte-level vocabularies
 * (bpe/bpe_engine.h) and SentencePiece-style ones (sentencepiece/sp_engine.h).
 */
#ifndef TOKMAP_ENGINE_TEXT_ENGINE_H
#define TOKMAP_ENGINE_TEXT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "tokenizer.h"

struct text_engine;       /* immutable; shared by threads */
struct text_engine_state; /* of one thread */

/* Places of a text in the document. SentencePiece-style engines put a space before a document or a segment. */
enum engine_place {
    ENGINE_DOCUMENT_START,
    ENGINE_SEGMENT_START, /* after an added token that was found in the text before normalization */
    ENGINE_INSIDE         /* anywhere else */
};

/* Destination of ids. */
struct ids_out {
    void *tokens;
    uint64_t count, room; /* in ids */
    bool wide;            /* ids have 4 bytes, otherwise 2 */
    uint64_t largest;     /* the largest id so far */
};

/* Ids of which some stand for a text, and who wants to know where. */
struct id_walk {
    const void *ids;
    uint64_t at, count; /* ids[at..count) are left */
    bool wide;          /* ids have 4 bytes, otherwise 2 */
    /* Receives the part [begin,end) of the text that ids[index] stands for, in ascending order. It is empty for a space
     * that the engine puts before a text. */
    void (*found)(void *user, uint64_t index, uint64_t begin, uint64_t end);
    void *user;
};

struct text_engine_kind {
    void (*free)(struct text_engine *engine);
    enum tokmap_status (*state_new)(struct text_engine_state **state, const struct text_engine *engine,
                                    struct tokmap_error *error);
    void (*state_free)(struct text_engine_state *state);
    /* Makes encoding look at `stop`, which may be NULL; if it returns true, encoding fails with ERROR_INTERRUPTED. */
    void (*state_stop)(struct text_engine_state *state, bool (*stop)(void *user), void *user);
    /* Appends the ids of a text. The text is encoded by itself: what comes before and after does not matter. `out` has
     * room for ids_per_byte_most (pipeline_parts.h) ids per byte. A text of 0 bytes is one of which normalizing has
     * left nothing. Statuses: OK, ERROR_INPUT (the model cannot encode this text), ERROR_MEMORY. */
    enum tokmap_status (*encode_text)(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error);
    /* The same for a piece, which the engine does not split. NULL if the engine never receives pieces. */
    enum tokmap_status (*encode_piece)(struct text_engine_state *state, const uint8_t *bytes, uint64_t count,
                                       struct ids_out *out, struct tokmap_error *error);
    /* Appends the ids of a text that was neither normalized nor split: those of the pieces that the normalizer and the
     * pre-tokenizer of the parts make of it. *done is false, and nothing is appended, if only these can do it. NULL:
     * the engine has no such way. Otherwise pipeline_parts.engine_raw says whether it may be used. */
    enum tokmap_status (*encode_raw)(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                     struct ids_out *out, bool *done, struct tokmap_error *error);
    /* Finds the text of an id. Returns false if the id is not one of the engine's. */
    bool (*id_bytes)(const struct text_engine *engine, uint32_t id, const uint8_t **bytes, uint32_t *count);
    /* Returns whether encoding puts a space before a document, which decoding takes off. NULL: never. */
    bool (*puts_space)(const struct text_engine *engine);
    /* Returns whether every text may be cut between a letter whose first byte is `left` and one of the characters of
     * pipeline_cut.c, whose first byte is `right`: the ids of the parts, the second one ENGINE_INSIDE, are then those
     * of the whole. NULL: never. */
    bool (*may_cut)(const struct text_engine *engine, uint8_t left, uint8_t right);
    /* Finds where the ids are that encode_text, or encode_piece, makes of a text. Returns false if the next ids are not
     * those of this text; walk->at is then the first one that is not, or `count`. */
    bool (*walk)(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                 struct id_walk *walk);
};

/* The first member of each engine's own struct. */
struct text_engine {
    const struct text_engine_kind *kind;
};

/* Returns where the next id comes. */
static inline void *ids_end(const struct ids_out *out)
{
    return (uint8_t *)out->tokens + out->count * (out->wide ? 4 : 2);
}

/* Appends an id; the caller has checked that there is room. */
static inline void ids_append(struct ids_out *out, uint32_t id)
{
    if (out->wide)
        ((uint32_t *)out->tokens)[out->count++] = id;
    else
        ((uint16_t *)out->tokens)[out->count++] = (uint16_t)id;
    if (id > out->largest)
        out->largest = id;
}

/* Returns the next id of a walk, of which at least one is left. */
static inline uint32_t id_walk_next(const struct id_walk *walk)
{
    return walk->wide ? ((const uint32_t *)walk->ids)[walk->at] : ((const uint16_t *)walk->ids)[walk->at];
}

#endif
