/* SPDX-License-Identifier: MIT */
/*
 * unigram_encode.c - cutting a text into chunks and words, for the caches of bpe_encode.c, and settling what they have
 * for a chunk: the sum is carried from token to token, words that the caches cannot decide are divided with it, and
 * what is unknown becomes ids.
 *
 * Each chunk goes through the caches as a whole first. Then its ids are walked along with the text: an id says how many
 * bytes it has. Where the sum is so large that it may pass model->limit within the next word, that word is divided
 * where it stands, and what the caches have for it is skipped.
 *
 * Unknown characters. SentencePiece makes several in a row one unknown token, or the tokens of their bytes. tokenizers
 * does the same with the text of all of them together, which may include the unknown token's own text, and takes the
 * token that this text is, if there is one.
 */
#include "unigram_encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "sp_walk.h"

/* ---- what is unknown ---- */

/* Appends the tokens of the bytes of a text, in which a space may stand for U+2581. */
static void put_bytes(const struct unigram_model *model, const uint8_t *text, size_t count, struct ids_out *out)
{
    for (size_t i = 0; i < count; i++) {
        if (text[i] == ' ' && model->sp.escape)
            for (uint32_t k = 0; k < 3; k++)
                ids_append(out, model->sp.head.byte_ids[(uint8_t)SP_MARK[k]]);
        else
            ids_append(out, model->sp.head.byte_ids[text[i]]);
    }
}

static bool has_bytes(const struct unigram_model *model, const uint8_t *text, size_t count)
{
    const uint32_t *ids = model->sp.head.byte_ids;
    for (size_t i = 0; i < count; i++)
        if (text[i] == ' ' && model->sp.escape ? ids[0xE2] == BPE_NONE || ids[0x96] == BPE_NONE || ids[0x81] == BPE_NONE
                                               : ids[text[i]] == BPE_NONE)
            return false;
    return true;
}

/* Appends the ids of all that is unknown in a row. */
static void put_run(const struct unigram_model *model, const uint8_t *text, size_t count, struct ids_out *out)
{
    uint32_t id = BPE_NONE;
    if (model->runs && byte_trie_longest(model->runs, text, count, &id) == count)
        ids_append(out, id);
    else if (model->sp.byte_fallback && (model->floats || has_bytes(model, text, count)))
        put_bytes(model, text, count, out);
    else
        ids_append(out, model->sp.unk);
}

/* Ends a run of what is unknown, whose text decides its ids. */
static void end_run(struct unigram_state *state, struct ids_out *out)
{
    if (state->run.count)
        put_run(state->model, state->run.bytes, state->run.count, out);
    state->unknown = false;
    state->run.count = 0;
}

static void put_unknown(struct unigram_state *state, const uint8_t *text, size_t count, struct ids_out *out)
{
    const struct sp_model *sp = &state->model->sp;
    if (state->model->runs) {
        if (!bytes_append(&state->run, text, count))
            state->failure = UNIGRAM_NO_MEMORY;
    } else if (sp->byte_fallback) {
        put_bytes(state->model, text, count, out);
    } else if (!state->unknown) {
        ids_append(out, sp->unk);
    }
    state->unknown = true;
}

static void put_token(struct unigram_state *state, uint32_t id, struct ids_out *out)
{
    if (state->unknown)
        end_run(state, out);
    ids_append(out, id < state->model->known ? id : state->model->sp.unk);
}

/* ---- settling ---- */

/* Divides a word where it stands. */
static void settle_word(struct unigram_state *state, const uint8_t *text, size_t count, struct ids_out *out)
{
    const struct unigram_model *model = state->model;
    const uint32_t *ids, own_unk = model->doubles ? model->sp.unk : BPE_NONE;
    size_t id_count, at = 0;
    const enum unigram_divided divided =
        unigram_divide(model, &state->path, &state->sp.pieces->scratch, text, count, &state->sum, &ids, &id_count);
    if (divided) {
        state->failure = divided;
        return;
    }
    for (size_t i = 0; i < id_count; i++) {
        const bool unknown = ids[i] == model->unknown;
        const size_t bytes = unknown ? unigram_character(text + at, count - at) : model->lengths[ids[i]];
        if (unknown || ids[i] == own_unk)
            put_unknown(state, text + at, bytes, out);
        else
            put_token(state, ids[i], out);
        at += bytes;
    }
}

/* Returns where the word that begins at `at`, a bit of `starts`, ends. */
static size_t word_end(const uint64_t *starts, size_t at, size_t count)
{
    const size_t words = (count + 63) / 64;
    size_t word = ++at / 64;
    if (at >= count)
        return count;
    uint64_t bits = starts[word] >> (at % 64) << (at % 64);
    while (!bits && ++word < words)
        bits = starts[word];
    return bits ? 64 * word + (size_t)__builtin_ctzll(bits) : count;
}

static inline bool is_start(const uint64_t *starts, size_t at)
{
    return starts[at / 64] >> (at % 64) & 1;
}

/* A text of which the caches have found ids. */
struct chunk {
    const uint8_t *text;
    size_t count;
    const uint64_t *starts; /* bits: where words begin */
    size_t found;           /* numbers in state->found */
};

/* Returns the bytes of text that a number stands for. */
static size_t number_bytes(const struct unigram_model *model, const struct chunk *chunk, size_t at, uint32_t id)
{
    return id == model->unknown ? unigram_character(chunk->text + at, chunk->count - at) : model->lengths[id];
}

/* Settles a number that is not simply the id of a token, or a word that the sum may decide. *at and *i move on. */
static void settle_rest(struct unigram_state *state, const struct chunk *chunk, size_t *at, size_t *i,
                        struct ids_out *out)
{
    const struct unigram_model *model = state->model;
    const uint32_t id = state->found[*i];
    /* A sum may also be infinite, or not a number. */
    const bool near =
        id == model->fragile || !(fabs(state->sum) + (UNIGRAM_WORD_MOST + 1) * model->reach + 1 < model->limit);
    if (near && is_start(chunk->starts, *at)) {
        const size_t end = word_end(chunk->starts, *at, chunk->count);
        if (id == model->fragile || !(fabs(state->sum) + (double)(end - *at) * model->reach < model->limit)) {
            settle_word(state, chunk->text + *at, end - *at, out);
            for (; *at < end; ++*i)
                *at += state->found[*i] == model->fragile   ? end - *at
                       : state->found[*i] == model->unknown ? unigram_character(chunk->text + *at, end - *at)
                                                            : model->lengths[state->found[*i]];
            return;
        }
    }
    const bool unknown = id == model->unknown || (model->doubles && id == model->sp.unk);
    const size_t bytes = number_bytes(model, chunk, *at, id);
    state->sum = model->floats ? (double)((float)state->sum + model->floats[id]) : state->sum + model->doubles[id];
    if (unknown)
        put_unknown(state, chunk->text + *at, bytes, out);
    else
        put_token(state, id, out);
    *at += bytes;
    ++*i;
}

/* Stores an id, and appends it if `appends`. */
static inline void store(struct ids_out *out, uint32_t id, bool appends)
{
    if (out->wide)
        ((uint32_t *)out->tokens)[out->count] = id;
    else
        ((uint16_t *)out->tokens)[out->count] = (uint16_t)id;
    out->count += appends;
    out->largest = max64(out->largest, id);
}

/* Settles what is usual from a number on: tokens, unknown characters that become one unknown token, and a sum that is
 * far from the limit. floats: sums are those of SentencePiece. Returns the first number that is something else. */
static inline size_t settle_usual(struct unigram_state *state, const struct chunk *chunk, bool floats, size_t i,
                                  struct ids_out *into)
{
    const struct unigram_model *model = state->model;
    /* An unknown token, or a run of unknown text that has to be ended first, is left to settle_rest(). */
    const uint32_t known = model->runs && state->unknown ? 0 : model->known, unk = model->sp.unk;
    const uint32_t fused = !model->runs && !model->sp.byte_fallback ? model->unknown : BPE_NONE;
    const double far = model->limit - (UNIGRAM_WORD_MOST + 1) * model->reach - 1;
    const float far_float = (float)far, *const float_scores = model->floats;
    const double *const scores = model->doubles;
    const size_t count = chunk->found;
    struct ids_out out = *into; /* which registers hold */
    float sum_float = (float)state->sum;
    double sum = state->sum;
    bool unknown = state->unknown;
    for (; i < count; i++) {
        const uint32_t id = state->found[i];
        const bool lacks = id == fused;
        if ((id >= known && !lacks) || (!floats && id == unk) ||
            !(floats ? fabsf(sum_float) < far_float : fabs(sum) < far))
            break;
        store(&out, lacks ? unk : id, !(lacks & unknown));
        unknown = lacks;
        if (floats)
            sum_float += float_scores[id];
        else
            sum += scores[id];
    }
    *into = out;
    state->sum = floats ? (double)sum_float : sum;
    state->unknown = unknown;
    return i;
}

static void settle(struct unigram_state *state, const struct chunk *chunk, struct ids_out *out)
{
    size_t at = 0, i = 0;
    while (!state->failure) {
        const size_t from = i;
        i = state->model->floats ? settle_usual(state, chunk, true, i, out) : settle_usual(state, chunk, false, i, out);
        if (i == chunk->found)
            break;
        for (size_t k = from; k < i; k++)
            at += number_bytes(state->model, chunk, at, state->found[k]);
        settle_rest(state, chunk, &at, &i, out);
    }
}

/* ---- text ---- */

/* Encodes words from the start of the text on, up to a chunk. Returns how many bytes are done. */
static size_t encode_some(struct unigram_state *state, const uint8_t *text, size_t count, struct ids_out *out)
{
    const struct sp_model *sp = &state->model->sp;
    uint64_t *starts = state->sp.pieces->chunk.starts;
    size_t bytes = min64(count, SCAN_BYTES);
    state->sp.pieces->text_end = text + count;
    (void)state->sp.cut(&sp->cuts, &sp->head, text, bytes, count, starts);
    if (bytes < count) { /* the last word may go on after the chunk */
        size_t word = (bytes - 1) / 64;
        while (word && !starts[word])
            word--;
        const uint32_t last = 63 - (uint32_t)__builtin_clzll(starts[word]);
        if (!(64 * word + last)) {
            bool marked = false;
            const size_t end = sp_cut_end(state->sp.cut, &sp->cuts, &sp->head, text, bytes, count, starts, &marked);
            settle_word(state, text, end, out);
            return end;
        }
        starts[word] &= ~((uint64_t)1 << last);
        bytes = 64 * word + last;
    }
    const struct chunk chunk = {
        text, bytes, starts,
        bpe_encode_starts(state->sp.pieces, text, bytes, state->found, sizeof state->found / sizeof state->found[0])};
    settle(state, &chunk, out);
    return bytes;
}

/* Encodes a short text as one word, which saves cutting it. */
static void encode_short(struct unigram_state *state, const uint8_t *text, size_t count, struct ids_out *out)
{
    uint64_t starts[(UNIGRAM_WORD_MOST + 63) / 64 + 1] = {1}, found;
    if (!bpe_encode_piece(state->sp.pieces, text, count, state->found, &found, NULL)) {
        const struct chunk chunk = {text, count, starts, found};
        settle(state, &chunk, out);
    }
}

/* Makes the text that the model sees, if it is not the text itself, in one of the buffers. Returns false if memory ran
 * out. */
static bool prepare(const struct sp_model *sp, struct bytes_buffer *stripped, struct bytes_buffer *block, bool prefix,
                    const uint8_t **text, uint64_t *count)
{
    if (!sp_spaces_arrange(stripped, sp, text, count))
        return false;
    if (!*count || (!prefix && !(sp->escape && memmem(*text, (size_t)*count, SP_MARK, 3))))
        return true;
    block->count = 0;
    if ((prefix && !bytes_append(block, " ", 1)) ||
        (sp->escape ? !sp_spaces_copy(block, *text, (size_t)*count) : !bytes_append(block, *text, (size_t)*count)))
        return false;
    *text = block->bytes;
    *count = block->count;
    return true;
}

static enum tokmap_status check(struct unigram_state *state, uint64_t count, struct tokmap_error *error)
{
    const enum unigram_divided failure = state->failure;
    state->failure = UNIGRAM_DIVIDED;
    if (failure == UNIGRAM_NO_UNKNOWN)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the text has a character that the vocabulary does not have, and the model has no unknown "
                         "token (unk_id is null)");
    if (failure == UNIGRAM_NO_MEMORY)
        return error_set_memory(error, "encoding a long word", count);
    return bpe_state_check(state->sp.pieces, count, error);
}

enum tokmap_status unigram_encode(struct unigram_state *state, const uint8_t *text, uint64_t count, bool prefix,
                                  struct ids_out *out, struct tokmap_error *error)
{
    if (!prepare(&state->model->sp, &state->sp.stripped, &state->sp.block, prefix, &text, &count))
        return error_set_memory(error, "a text", count);
    state->sum = 0;
    state->unknown = false;
    state->run.count = 0;
    if (count && count <= UNIGRAM_WORD_MOST && state->model->doubles)
        encode_short(state, text, (size_t)count, out);
    else
        for (uint64_t at = 0; at < count && !state->failure && !bpe_scratch_stops(&state->sp.pieces->scratch);)
            at += encode_some(state, text + at, (size_t)(count - at), out);
    if (state->unknown && !state->failure)
        end_run(state, out);
    bytes_trim(&state->sp.block);
    bytes_trim(&state->sp.stripped);
    bytes_trim(&state->run);
    unigram_path_trim(&state->path);
    return check(state, count, error);
}

/* ---- where the ids of a text are in it ---- */

struct walking {
    const struct unigram_model *model;
    struct sp_walker walker;
    struct id_walk *walk;
    const uint8_t *text; /* as the model sees it */
    uint32_t *ids;       /* of a run */
    size_t room;
};

/* Moves along what is unknown in a row: one token, or those of its bytes, of which a space has three. */
static bool walk_run(struct walking *own, size_t from, size_t to)
{
    const struct unigram_model *model = own->model;
    if (3 * (to - from) > own->room) {
        free(own->ids);
        own->room = 6 * (to - from);
        own->ids = malloc(own->room * sizeof *own->ids);
        if (!own->ids)
            return false;
    }
    struct ids_out out = {.tokens = own->ids, .room = own->room, .wide = true};
    put_run(model, own->text + from, to - from, &out);
    if (out.count == 1)
        return sp_walker_token(&own->walker, own->ids[0], own->text + from, (uint32_t)(to - from), own->walk);
    bool good = true;
    for (size_t i = 0; from < to && good; from++) {
        const uint32_t ids = own->text[from] == ' ' && model->sp.escape ? 3 : 1;
        for (uint32_t k = 0; k < ids && good; k++)
            good = sp_walker_token(&own->walker, own->ids[i++], own->text + from, !k, own->walk);
    }
    return good;
}

static bool walk_numbers(struct walking *own, const uint32_t *numbers, size_t number_count, size_t count)
{
    const struct unigram_model *model = own->model;
    size_t at = 0, run = 0; /* what is unknown begins at `run` */
    bool good = true;
    for (size_t i = 0; i < number_count && good; i++) {
        const uint32_t id = numbers[i];
        const bool unknown = id == model->unknown;
        const size_t bytes = unknown ? unigram_character(own->text + at, count - at) : model->lengths[id];
        if (!unknown && !(model->doubles && id == model->sp.unk)) {
            good = (run == at || walk_run(own, run, at)) &&
                   sp_walker_token(&own->walker, id < model->known ? id : model->sp.unk, own->text + at,
                                   (uint32_t)bytes, own->walk);
            run = at + bytes;
        }
        at += bytes;
    }
    return good && (run == at || walk_run(own, run, at));
}

bool unigram_walk(const struct unigram_model *model, const uint8_t *text, uint64_t count, enum engine_place place,
                  struct id_walk *walk)
{
    struct walking own = {.model = model, .walk = walk, .text = text};
    struct bytes_buffer stripped = {0}, block = {0};
    struct unigram_path path = {0};
    struct bpe_scratch scratch = {0};
    const uint32_t *numbers;
    size_t number_count;
    double sum = 0;
    bool prefix;
    if (!sp_walker_begin(&own.walker, &model->sp, text, count, place))
        return true;
    (void)sp_begins(&model->sp, place, &own.text, &count, &prefix);
    const bool good = prepare(&model->sp, &stripped, &block, prefix, &own.text, &count) &&
                      !unigram_divide(model, &path, &scratch, own.text, (size_t)count, &sum, &numbers, &number_count) &&
                      walk_numbers(&own, numbers, number_count, (size_t)count);
    unigram_path_free(&path);
    bytes_free(&block);
    bytes_free(&stripped);
    free(own.ids);
    return good;
}

enum tokmap_status unigram_state_new(struct unigram_state **out, const struct unigram_model *model,
                                     enum cpu_variant variant, struct tokmap_error *error)
{
    struct sp_state *made;
    const enum tokmap_status status = sp_state_begin(&made, sizeof **out, &model->sp, variant, error);
    *out = (struct unigram_state *)made;
    if (status)
        return status;
    (*out)->model = model;
    if (variant != CPU_SCALAR)
        made->pieces->merge_many = unigram_words;
    return TOKMAP_OK;
}

void unigram_state_free(struct unigram_state *state)
{
    if (!state)
        return;
    unigram_path_free(&state->path);
    bytes_free(&state->run);
    sp_state_free(&state->sp);
}
