/* SPDX-License-Identifier: MIT */
/*
 * sp_engine.c - builds a model, step by step: texts and characters (sp_texts.c), the pairs that merge (sp_pairs.c), and
 * here user-defined pieces, where text can be cut (sp_cut.c), tokens that are looked up whole, and what caches begin
 * with. Then comes the engine over the model (text_engine.h).
 */
#include "sp_engine.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"
#include "common/error.h"
#include "platform/os.h"
#include "sp_encode.h"
#include "sp_merge.h"
#include "sp_pairs.h"
#include "sp_texts.h"
#include "sp_walk.h"

/* ---- user-defined pieces ---- */

struct text_of {
    const uint8_t *bytes;
    uint32_t count, id;
};

static int by_text(const void *a, const void *b)
{
    const struct text_of *left = a, *right = b;
    const int order = memcmp(left->bytes, right->bytes, min64(left->count, right->count));
    return order ? order : left->count < right->count ? -1 : left->count > right->count;
}

static bool is_defined(const struct sp_builder *builder, uint32_t id)
{
    return sp_kind_of(builder->source, id) == SP_USER_DEFINED && sp_text_bytes(builder, id);
}

static void store_defined(struct sp_builder *builder, const struct text_of *texts, uint32_t count)
{
    struct sp_model *model = builder->model;
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct text_of *text = &texts[i];
        memcpy(model->defined_bytes + bytes, text->bytes, text->count);
        model->defined_offsets[i] = bytes;
        model->defined_ids[i] = text->id;
        bytes += text->count;
        model->defined_firsts[text->bytes[0] / 64] |= (uint64_t)1 << (text->bytes[0] % 64);
        for (uint32_t at = 1; at < text->count; at++)
            if ((text->bytes[at] & 0xC0) != 0x80)
                sp_border_note(builder, text->bytes, at, text->count);
    }
    model->defined_offsets[count] = bytes;
    model->defined_count = count;
}

static enum tokmap_status read_defined(struct sp_builder *builder)
{
    struct sp_model *model = builder->model;
    const uint32_t vocabulary = builder->source->vocabulary;
    uint32_t count = 0, bytes = 0;
    for (uint32_t id = 0; id < vocabulary; id++)
        if (is_defined(builder, id)) {
            count++;
            bytes += sp_text_bytes(builder, id);
        }
    if (!count)
        return TOKMAP_OK;
    struct text_of *texts = malloc(count * sizeof *texts);
    model->defined_bytes = malloc(bytes);
    model->defined_offsets = malloc(((size_t)count + 1) * sizeof *model->defined_offsets);
    model->defined_ids = malloc(count * sizeof *model->defined_ids);
    if (!texts || !model->defined_bytes || !model->defined_offsets || !model->defined_ids) {
        free(texts);
        return sp_no_memory(builder);
    }
    for (uint32_t id = 0, i = 0; id < vocabulary; id++)
        if (is_defined(builder, id))
            texts[i++] = (struct text_of){sp_text(builder, id), sp_text_bytes(builder, id), id};
    qsort(texts, count, sizeof *texts, by_text);
    store_defined(builder, texts, count);
    free(texts);
    return TOKMAP_OK;
}

/* ---- seeds, and tokens that merging does not reach ---- */

/* Merges each token's text, unless merging is known to give the token. Fills the seeds, and with ignore_merges the
 * tokens that are looked up whole. */
static enum tokmap_status merge_tokens(struct sp_builder *builder)
{
    const struct sp_source *source = builder->source;
    struct sp_model *model = builder->model;
    struct bpe_scratch scratch = {.memory = NULL};
    uint32_t longest = 1;
    for (uint32_t id = 0; id < source->vocabulary; id++)
        longest = (uint32_t)max64(longest, sp_text_bytes(builder, id));
    uint32_t *ids = malloc(((size_t)longest + 1) * sizeof *ids);
    model->head.seeds = os_memory_large(((size_t)min64(source->vocabulary, BPE_SEEDS) + 1) * sizeof *model->head.seeds);
    model->wholes = os_memory_large(((size_t)source->vocabulary + 1) * sizeof *model->wholes);
    bool good = ids && model->head.seeds && model->wholes;
    model->whole_bytes = source->ignore_merges && model->byte_fallback;
    model->whole_longest = model->whole_bytes ? 6 : 0;
    for (uint32_t id = 0; good && id < source->vocabulary; id++) {
        const uint8_t *text = sp_text(builder, id);
        const uint32_t bytes = sp_text_bytes(builder, id);
        size_t count = 1;
        if (!bytes || (bytes > 15 && !source->ignore_merges))
            continue;
        if (builder->reached && builder->reached[id])
            ids[0] = id;
        else
            count = sp_merge(&model->head, &scratch, text, bytes, ids);
        good = count != 0;
        if (source->ignore_merges && (count != 1 || ids[0] != id)) {
            model->wholes[model->whole_count++] = id;
            model->whole_longest = (uint32_t)max64(model->whole_longest, bytes);
        }
        if (good)
            bpe_seed_add(&model->head, text, bytes, ids, count); /* 16 bytes follow the last text */
    }
    free(ids);
    free(scratch.memory);
    return good ? TOKMAP_OK : sp_no_memory(builder);
}

static enum tokmap_status sort_wholes(struct sp_builder *builder)
{
    struct sp_model *model = builder->model;
    struct text_of *texts = malloc(((size_t)model->whole_count + 1) * sizeof *texts);
    if (!texts)
        return sp_no_memory(builder);
    for (uint32_t i = 0; i < model->whole_count; i++) {
        const uint32_t id = model->wholes[i];
        texts[i] = (struct text_of){sp_text(builder, id), sp_text_bytes(builder, id), id};
    }
    qsort(texts, model->whole_count, sizeof *texts, by_text);
    for (uint32_t i = 0; i < model->whole_count; i++)
        model->wholes[i] = texts[i].id;
    free(texts);
    return TOKMAP_OK;
}

/* ---- all steps ---- */

/* Places where text can be cut. The search is independent of the step after it, so a thread does it. */
struct cutting {
    struct sp_builder *builder;
    bool good;
};

static void cutting_run(void *user)
{
    struct cutting *cutting = user;
    cutting->good = sp_cut_table_build(&cutting->builder->model->cuts, &cutting->builder->relation);
}

#define PIECE_BYTES_USUAL 64 /* on average; real vocabularies have less than 10 */

/* Pieces that are made to be long take much memory in both steps. These are then done one after the other, so that the
 * most memory does not depend on which of them is faster. */
static bool pieces_are_long(const struct sp_builder *builder)
{
    uint64_t bytes = 0;
    for (uint32_t id = 0; id < builder->source->vocabulary; id++)
        bytes += sp_text_bytes(builder, id);
    return bytes / PIECE_BYTES_USUAL > builder->source->vocabulary;
}

static enum tokmap_status check(const struct sp_source *source, struct tokmap_error *error)
{
    if (source->vocabulary > BPE_IDS - 2 || source->merge_count > BPE_MERGES)
        return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                         "the vocabulary has %" PRIu32 " ids and %" PRIu32
                         " merges, but at most %u ids and %u merges are "
                         "supported",
                         source->vocabulary, source->merge_count, BPE_IDS - 2, BPE_MERGES);
    if (source->ignore_merges && (source->split || !source->escape))
        return error_set(
            error, TOKMAP_ERROR_UNSUPPORTED, source->path, TOKMAP_NO_OFFSET,
            "ignore_merges is not supported together with a Metaspace pre-tokenizer that splits, or with a "
            "vocabulary that keeps spaces as they are");
    for (uint32_t id = 0; source->scores && id < source->vocabulary; id++)
        if (isnan(source->scores[id]))
            return error_set(error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "pieces: the score of piece %" PRIu32 " is not a number; the file is damaged", id);
    return TOKMAP_OK;
}

static enum tokmap_status build(struct sp_builder *builder)
{
    struct sp_model *model = builder->model;
    model->head.joins = calloc(((uint64_t)1 << BPE_JOIN_BITS) / 64, sizeof *model->head.joins);
    enum tokmap_status status = model->head.joins ? sp_texts_read(builder) : sp_no_memory(builder);
    for (uint32_t id = 0; id < builder->source->vocabulary && !builder->defined; id++)
        builder->defined = sp_kind_of(builder->source, id) == SP_USER_DEFINED;
    if (!status)
        status = sp_atoms_read(builder);
    if (!status)
        status = sp_pairs_build(builder);
    if (!status && builder->defined)
        status = read_defined(builder);
    if (status)
        return status;
    struct cutting cutting = {.builder = builder};
    struct os_thread *thread = os_thread_beside(!pieces_are_long(builder), "tokmap-cuts", cutting_run, &cutting);
    status = merge_tokens(builder);
    os_thread_join(thread);
    if (!status && !cutting.good)
        status = sp_no_memory(builder);
    return status ? status : sort_wholes(builder);
}

enum tokmap_status sp_model_build(struct sp_model **out, const struct sp_source *source, struct tokmap_error *error)
{
    *out = NULL;
    assert(!source->merges != !source->scores);
    assert(source->scores || !source->kinds);
    enum tokmap_status status = check(source, error);
    if (status)
        return status;
    struct sp_builder *builder = calloc(1, sizeof *builder);
    struct sp_model *model = calloc(1, sizeof *model);
    if (!builder || !model) {
        free(builder);
        free(model);
        return error_set_memory(error, "a vocabulary", sizeof *model);
    }
    model->head.merge = sp_merge;
    model->head.vocabulary = source->vocabulary;
    model->head.wide = source->vocabulary > 65536;
    model->unk = source->unk;
    model->fuse_unk = source->fuse_unk;
    model->escape = source->escape;
    model->remove_spaces = source->remove_spaces;
    model->suffix = source->suffix;
    model->prefix = source->prefix;
    model->front = source->front || source->prefix != SP_PREFIX_NEVER;
    model->cuts.marks = source->escape;
    builder->source = source;
    builder->model = model;
    builder->error = error;
    status = build(builder);
    free(builder->bytes);
    free(builder->offsets);
    free(builder->reached);
    free(builder);
    if (status)
        sp_model_free(model);
    else
        *out = model;
    return status;
}

/* ---- the engine ---- */

static void engine_free(struct text_engine *engine)
{
    sp_model_free(((struct sp_engine *)engine)->model);
    free(engine);
}

static void engine_state_free(struct text_engine_state *state)
{
    sp_state_free((struct sp_state *)state);
}

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    return sp_state_new((struct sp_state **)state, ((const struct sp_engine *)engine)->model, cpu_variant_best(),
                        error);
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    struct sp_state *own = (struct sp_state *)state;
    uint64_t written = 0;
    bool prefix;
    if (!sp_begins(own->model, place, &text, &count, &prefix))
        return TOKMAP_OK;
    const enum tokmap_status status =
        sp_encode(own, text, count, prefix, (uint8_t *)out->tokens + out->count * (out->wide ? 4 : 2),
                  out->room - out->count, &written, error);
    out->count += written;
    out->largest = max64(out->largest, own->pieces->largest);
    return status;
}

bool sp_engine_puts_space(const struct text_engine *engine)
{
    return ((const struct sp_engine *)engine)->model->front;
}

/* Text may only be cut before a space, because no space is put before a part that begins with one. It may not be cut
 * where a short text may be a token as a whole, nor where spaces at the ends of texts are removed. */
static bool engine_border(const struct text_engine *engine, uint8_t left, uint8_t right)
{
    const struct sp_model *model = ((const struct sp_engine *)engine)->model;
    const struct sp_cut_table *cuts = &model->cuts;
    return right == ' ' && model->escape && !model->remove_spaces && !model->suffix && !model->whole_longest &&
           !(cuts->left[0][left] & cuts->right[0][right]) && !(cuts->left[1][left] & cuts->right[1][right]);
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    return sp_walk(((const struct sp_engine *)engine)->model, text, count, place, walk);
}

static const struct text_engine_kind engine_kind = {.free = engine_free,
                                                    .state_new = engine_state_new,
                                                    .state_free = engine_state_free,
                                                    .state_stop = pieces_state_stop,
                                                    .encode_text = engine_text,
                                                    .id_bytes = pieces_id_bytes,
                                                    .puts_space = sp_engine_puts_space,
                                                    .may_cut = engine_border,
                                                    .walk = engine_walk};

enum tokmap_status sp_engine_make(struct text_engine **engine, const struct text_engine_kind *kind,
                                  struct sp_model *model, struct tokmap_error *error)
{
    struct sp_engine *made = calloc(1, sizeof *made);
    *engine = NULL;
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    *made = (struct sp_engine){{{kind}, &model->head}, model};
    *engine = &made->base.head;
    return TOKMAP_OK;
}

enum tokmap_status sp_engine_new(struct text_engine **engine, const struct sp_source *source,
                                 struct tokmap_error *error)
{
    struct sp_model *model;
    *engine = NULL;
    enum tokmap_status status = sp_model_build(&model, source, error);
    if (status)
        return status;
    status = sp_engine_make(engine, &engine_kind, model, error);
    if (status)
        sp_model_free(model);
    return status;
}
