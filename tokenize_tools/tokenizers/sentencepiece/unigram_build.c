/* SPDX-License-Identifier: MIT */
/* unigram_build.c - builds a model: texts (sp_texts.c), the trie, scores, and where text can be cut; and makes it the
 * engine of a pipeline (text_engine.h). */
#include "unigram_build.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/cpu.h"
#include "common/error.h"
#include "platform/os.h"
#include "sp_engine.h"
#include "sp_texts.h"
#include "sp_walk.h"
#include "unicode/byte_alphabet.h"
#include "unigram_encode.h"
#include "unigram_word.h"

void unigram_model_free(struct unigram_model *model)
{
    if (!model)
        return;
    byte_trie_free(&model->trie);
    byte_trie_free(&model->names);
    free(model->lengths);
    free(model->floats);
    free(model->doubles);
    sp_model_free(&model->sp); /* and the struct itself */
}

#define UNKNOWN_PENALTY 10.0

struct building {
    const struct unigram_source *source;
    struct unigram_model *model;
    struct sp_builder *builder;
    struct byte_trie_key *keys;
    uint32_t key_count;
};

/* Finds the text by which a token is found in text. Returns false if none is. */
static bool key_of(const struct building *own, uint32_t id, struct byte_trie_key *key)
{
    const struct sp_source *texts = &own->source->texts;
    *key = (struct byte_trie_key){sp_text(own->builder, id), sp_text_bytes(own->builder, id), id};
    if (sp_kind_of(texts, id) == SP_UNUSED)
        return false;
    if (!key->count && texts->merges && texts->byte_fallback) { /* a token of a byte, by its name */
        key->bytes = texts->bytes + texts->offsets[id];
        key->count = texts->offsets[id + 1] - texts->offsets[id];
        return byte_named(key->bytes, key->count) >= 0;
    }
    return key->count != 0;
}

static void note_borders(struct building *own, const struct byte_trie_key *key)
{
    for (uint32_t at = 1; at < key->count; at++)
        if ((key->bytes[at] & 0xC0) != 0x80)
            sp_border_note(own->builder, key->bytes, at, key->count);
}

/* Makes a trie of the keys. */
static enum tokmap_status trie_make(const struct building *own, struct byte_trie *trie)
{
    const enum tokmap_status status = byte_trie_build(trie, own->keys, own->key_count, true);
    return status == TOKMAP_ERROR_LIMIT
               ? error_set(own->builder->error, TOKMAP_ERROR_LIMIT, own->source->texts.path, TOKMAP_NO_OFFSET,
                           "the tokens of this Unigram model need a trie of more than %u nodes, which is the most that "
                           "tokmap can make",
                           BYTE_TRIE_NODES_MOST)
           : status ? sp_no_memory(own->builder)
                    : TOKMAP_OK;
}

static enum tokmap_status build_trie(struct building *own)
{
    struct unigram_model *model = own->model;
    const uint32_t vocabulary = own->source->texts.vocabulary;
    void *atoms = NULL;
    uint32_t unused;
    own->keys = os_memory_large(((size_t)vocabulary + 1) * sizeof *own->keys);
    model->lengths = os_memory_large_zeros((size_t)vocabulary + 2, sizeof *model->lengths);
    if (!own->keys || !model->lengths || os_memory_new(SP_CODES * sizeof *model->sp.atoms, false, &atoms))
        return sp_no_memory(own->builder);
    model->sp.atoms = atoms;
    model->sp.symbols = vocabulary;
    model->longest = 4;
    for (uint32_t id = 0; id < vocabulary; id++) {
        struct byte_trie_key key;
        if (!key_of(own, id, &key))
            continue;
        if (key.count > UNIGRAM_TOKEN_MOST)
            return error_set(own->builder->error, TOKMAP_ERROR_LIMIT, own->source->texts.path, TOKMAP_NO_OFFSET,
                             "token %" PRIu32 " has %" PRIu32
                             " bytes; the longest token of a Unigram model that tokmap can read has %d",
                             id, key.count, UNIGRAM_TOKEN_MOST);
        own->keys[own->key_count++] = key;
        model->lengths[id] = key.count;
        model->longest = (uint32_t)max64(model->longest, key.count);
        if (key.count <= 4 && sp_is_character(key.bytes, key.count))
            sp_atom_set(own->builder, sp_character(key.bytes, key.count, &unused), id);
        else
            note_borders(own, &key);
    }
    return trie_make(own, &model->trie);
}

/* Makes the trie of names for unknown characters. Tokens of bytes leave none unknown. */
static enum tokmap_status build_names(struct building *own)
{
    struct unigram_model *model = own->model;
    const struct sp_source *texts = &own->source->texts;
    model->runs = texts->merges ? &model->trie : NULL;
    if (!own->source->unknown_named || texts->byte_fallback)
        return TOKMAP_OK;
    own->key_count = 0;
    for (uint32_t id = 0; id < texts->vocabulary; id++)
        if (sp_kind_of(texts, id) == SP_UNUSED && sp_text_bytes(own->builder, id))
            own->keys[own->key_count++] =
                (struct byte_trie_key){sp_text(own->builder, id), sp_text_bytes(own->builder, id), id};
    model->runs = &model->names;
    return trie_make(own, &model->names);
}

/* ---- scores ---- */

/* Returns the score of an unknown character: lower than that of every normal piece. */
static double unknown_score(const struct unigram_source *source)
{
    const bool floats = source->texts.scores != NULL;
    double least = floats ? (double)FLT_MAX : HUGE_VAL;
    for (uint32_t id = 0; id < source->texts.vocabulary; id++)
        if ((!floats || sp_kind_of(&source->texts, id) == SP_NORMAL) && source->scores[id] < least)
            least = source->scores[id];
    return floats ? (double)((float)least - (float)UNKNOWN_PENALTY) : least - UNKNOWN_PENALTY;
}

/* Returns a token's score. A user-defined piece is worth more the longer it is. */
static double score_of(const struct building *own, uint32_t id)
{
    const struct sp_source *texts = &own->source->texts;
    if (texts->scores && sp_kind_of(texts, id) == SP_USER_DEFINED) {
        const int bytes = (int)(texts->offsets[id + 1] - texts->offsets[id]); /* with three for each U+2581 */
        return (double)(float)(0.1 * (bytes - 1));
    }
    return own->source->scores[id];
}

static enum tokmap_status check_scores(const struct building *own)
{
    for (uint32_t id = 0; id < own->source->texts.vocabulary; id++)
        if (!isfinite(own->source->scores[id]))
            return error_set(own->builder->error, TOKMAP_ERROR_FORMAT, own->source->texts.path, TOKMAP_NO_OFFSET,
                             "pieces: the score of piece %" PRIu32 " is not a finite number; the file is damaged", id);
    return TOKMAP_OK;
}

/* Sets the bounds of sums. A sum of floats stays below UNIGRAM_RESET, except within a word. */
static void set_bounds(struct unigram_model *model, double reach, bool floats)
{
    model->reach = reach;
    model->limit = floats ? (double)UNIGRAM_RESET : 0x1p32;
    const double most = model->limit + UNIGRAM_WORD_MOST * reach;
    model->error = most * (floats ? 0x1p-24 : 0x1p-52) * 1.001;
}

static enum tokmap_status store_scores(struct building *own)
{
    struct unigram_model *model = own->model;
    const uint32_t vocabulary = own->source->texts.vocabulary;
    const bool floats = own->source->texts.scores != NULL;
    const double unknown = unknown_score(own->source);
    const enum tokmap_status status = check_scores(own);
    double reach = fabs(unknown);
    if (status)
        return status;
    if (floats)
        model->floats = os_memory_large(((size_t)vocabulary + 2) * sizeof *model->floats);
    else
        model->doubles = os_memory_large(((size_t)vocabulary + 2) * sizeof *model->doubles);
    if (!model->floats && !model->doubles)
        return sp_no_memory(own->builder);
    for (uint32_t id = 0; id < vocabulary + 2; id++) {
        const double score = id < vocabulary ? score_of(own, id) : id == model->unknown ? unknown : 0;
        if (floats)
            model->floats[id] = (float)score;
        else
            model->doubles[id] = score;
        if (id < vocabulary && model->lengths[id])
            reach = fabs(score) > reach ? fabs(score) : reach;
    }
    set_bounds(model, reach, floats);
    return TOKMAP_OK;
}

/* ---- all steps ---- */

static enum tokmap_status build(struct building *own)
{
    struct sp_model *sp = &own->model->sp;
    sp->head.joins = calloc(((uint64_t)1 << BPE_JOIN_BITS) / 64, sizeof *sp->head.joins);
    if (!sp->head.joins)
        return sp_no_memory(own->builder);
    enum tokmap_status status = sp_texts_read(own->builder);
    if (!status)
        status = build_trie(own);
    if (!status)
        status = build_names(own);
    if (!status)
        status = store_scores(own);
    if (!status && !sp_cut_table_build(&sp->cuts, &own->builder->relation))
        status = sp_no_memory(own->builder);
    return status;
}

enum tokmap_status unigram_model_build(struct unigram_model **out, const struct unigram_source *source,
                                       struct tokmap_error *error)
{
    const struct sp_source *texts = &source->texts;
    *out = NULL;
    assert(!texts->merges != !texts->scores && source->scores);
    if (texts->vocabulary > BPE_IDS - 2)
        return error_set(error, TOKMAP_ERROR_LIMIT, texts->path, TOKMAP_NO_OFFSET,
                         "the vocabulary has %" PRIu32 " ids, but at most %u are supported", texts->vocabulary,
                         BPE_IDS - 2);
    struct sp_builder *builder = calloc(1, sizeof *builder);
    struct unigram_model *model = calloc(1, sizeof *model);
    if (!builder || !model) {
        free(builder);
        free(model);
        return error_set_memory(error, "a vocabulary", sizeof *model);
    }
    struct building own = {.source = source, .model = model, .builder = builder};
    model->sp.head.merge = unigram_word;
    model->sp.head.vocabulary = texts->vocabulary;
    model->sp.head.wide = true; /* the caches also hold `fragile` and `unknown` */
    model->fragile = texts->vocabulary;
    model->unknown = texts->vocabulary + 1;
    model->known = texts->vocabulary - source->lost;
    model->sp.unk = texts->unk;
    model->sp.fuse_unk = true;
    model->sp.escape = texts->escape;
    model->sp.remove_spaces = texts->remove_spaces;
    model->sp.suffix = texts->suffix;
    model->sp.prefix = texts->prefix;
    model->sp.front = texts->front || texts->prefix != SP_PREFIX_NEVER;
    builder->source = texts;
    builder->model = &model->sp;
    builder->error = error;
    const enum tokmap_status status = build(&own);
    free(builder->bytes);
    free(builder->offsets);
    free(builder);
    free(own.keys);
    if (status)
        unigram_model_free(model);
    else
        *out = model;
    return status;
}

/* ---- the engine ---- */

static struct unigram_model *model_of(const struct text_engine *engine)
{
    return (struct unigram_model *)((const struct sp_engine *)engine)->model;
}

static void engine_free(struct text_engine *engine)
{
    unigram_model_free(model_of(engine));
    free(engine);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    return unigram_state_new((struct unigram_state **)state, model_of(engine), cpu_variant_best(), error);
}

static void engine_state_free(struct text_engine_state *state)
{
    unigram_state_free((struct unigram_state *)state);
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    struct unigram_state *own = (struct unigram_state *)state;
    bool prefix;
    if (!sp_begins(own->sp.model, place, &text, &count, &prefix))
        return TOKMAP_OK;
    return unigram_encode(own, text, count, prefix, out, error);
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    return unigram_walk(model_of(engine), text, count, place, walk);
}

/* may_cut is missing: the sum goes through the whole text, so parts of it could have other ids. */
static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_text = engine_text,
                                                    .id_bytes = pieces_id_bytes,
                                                    .puts_space = sp_engine_puts_space,
                                                    .walk = engine_walk};

enum tokmap_status unigram_engine_new(struct text_engine **engine, const struct unigram_source *source,
                                      struct tokmap_error *error)
{
    struct unigram_model *model;
    *engine = NULL;
    enum tokmap_status status = unigram_model_build(&model, source, error);
    if (status)
        return status;
    status = sp_engine_make(engine, &engine_kind, &model->sp, error);
    if (status)
        unigram_model_free(model);
    return status;
}
