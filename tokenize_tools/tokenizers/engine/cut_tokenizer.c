/* SPDX-License-Identifier: MIT */
/*
 * cut_tokenizer.c - see cut_tokenizer.h.
 *
 * A document may be encoded in parts that end where blocks do (text_cuts_block): a part then begins with a block, as a
 * document does, so `resumed` only means that no prefix is wanted. Short documents of a batch are passed on together.
 */
#include "cut_tokenizer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "text/code_point.h"
#include "tokenizer_kind.h"
#include "unicode/code_sets.h"

/* ---- cuts ---- */

static const struct text_cuts known[] = {{"kimi", 400000, 25000}, {"llama3", 400000, 25000}, {"llama4", 400000, 25000}};

const struct text_cuts *text_cuts_named(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(name, known[i].name))
            return &known[i];
    return NULL;
}

const char *text_cuts_names(void)
{
    return "kimi llama3 llama4";
}

/* Returns whether Python calls the character that begins at `at` white space, and the number of its bytes. */
static bool is_space(const uint8_t *at, size_t *bytes)
{
    *bytes = 1;
    if (*at < 0x80)
        return (*at >= 0x09 && *at <= 0x0D) || (*at >= 0x1C && *at <= 0x20);
    return code_is_space(code_point_get(at, bytes));
}

/* Returns where the first part of a text ends; `count` if it is the last one, too. The text has count > 0 bytes of
 * valid UTF-8 and begins where a part does. *block: characters of the text's block that are left, cuts->characters at
 * the beginning of a text; it is changed for the next part. */
static uint64_t text_cuts_part(const struct text_cuts *cuts, const char *text, uint64_t count, uint32_t *block)
{
    const uint8_t *bytes = (const uint8_t *)text;
    uint32_t run = 0;
    bool in_space = false;
    assert(count && *block);
    if (count <= *block && count <= cuts->run) { /* the usual case */
        *block -= (uint32_t)count;               /* what is left does not matter after the last part */
        return count;
    }
    for (uint64_t at = 0; at < count;) {
        size_t length;
        const bool space = is_space(bytes + at, &length);
        run = run && space == in_space ? run + 1 : 1;
        in_space = space;
        if (run > cuts->run)
            return at;
        at += length;
        if (!--*block) {
            *block = cuts->characters;
            return at;
        }
    }
    return count;
}

/* Returns the last place in a text where a block certainly begins, whatever follows; 0 without a place. The text
 * begins with a block, and may end inside of a character. */
static uint64_t text_cuts_block(const struct text_cuts *cuts, const char *text, uint64_t count)
{
    uint64_t found = 0;
    uint32_t characters = 0;
    for (uint64_t at = 0; at < count; at++) {
        if (((uint8_t)text[at] & 0xC0) == 0x80)
            continue;
        if (characters++ == cuts->characters) {
            found = at;
            characters = 1;
        }
    }
    return found;
}

/* ---- the tokenizer ---- */

struct cutting {
    struct tokenizer head; /* head.inner is owned */
    const struct text_cuts *cuts;
};

struct cutting_state {
    struct tokenizer_state head;
    struct tokenizer_state *inner;
    const struct text_cuts *cuts;
};

static void cutting_close(struct tokenizer *tokenizer)
{
    tokenizer_close(tokenizer->inner);
    free(tokenizer);
}

static void cutting_state_free(struct tokenizer_state *state)
{
    struct cutting_state *own = (struct cutting_state *)state;
    tokenizer_state_free(own->inner);
    free(own);
}

static enum tokmap_status cutting_state_new(struct tokenizer_state **state, const struct tokenizer *tokenizer,
                                            struct tokmap_error *error)
{
    struct cutting_state *made = calloc(1, sizeof *made);
    *state = NULL;
    if (!made)
        return error_set_memory(error, "the state of a tokenizer", sizeof *made);
    made->head.tokenizer = tokenizer;
    made->cuts = ((const struct cutting *)tokenizer)->cuts;
    const enum tokmap_status status = tokenizer_state_new(&made->inner, tokenizer->inner, error);
    if (status)
        free(made);
    else
        *state = &made->head;
    return status;
}

static void cutting_state_stop(struct tokenizer_state *state, bool (*stop)(void *user), void *user)
{
    tokenizer_state_stop(((struct cutting_state *)state)->inner, stop, user);
}

/* ---- encoding ---- */

/* Returns where the next ids of `out` go, with its prefix and suffix if they are wanted. */
static struct tokenizer_out out_rest(const struct tokenizer_state *state, const struct tokenizer_out *out,
                                     uint64_t *ends, bool prefix, bool suffix)
{
    struct tokenizer_out rest = *out;
    rest.tokens = (char *)out->tokens + out->count * state->tokenizer->info.width;
    rest.capacity -= out->count;
    rest.ends = ends;
    rest.count = rest.largest = rest.failed = 0;
    rest.has_prefix &= prefix;
    rest.has_suffix &= suffix;
    return rest;
}

static void out_add(struct tokenizer_out *out, const struct tokenizer_out *more)
{
    out->count += more->count;
    out->largest = max64(out->largest, more->largest);
}

/* Encodes documents that are too short to be cut. */
static enum tokmap_status shorts_encode(struct cutting_state *own, const struct tokenizer_batch *batch, uint64_t first,
                                        uint64_t count, struct tokenizer_out *out, struct tokmap_error *error)
{
    const struct tokenizer_batch some = {.documents = batch->documents + first, .count = count};
    const uint64_t base = out->count;
    struct tokenizer_out part = out_rest(&own->head, out, out->ends + first, true, true);
    const enum tokmap_status status = tokenizer_encode(own->inner, &some, &part, error);
    for (uint64_t i = first; i < first + count && !status; i++)
        out->ends[i] += base;
    out->failed = first + part.failed;
    out_add(out, &part);
    return status;
}

/* Encodes a document, or a part of one, part by part. */
static enum tokmap_status long_encode(struct cutting_state *own, const struct tokmap_text *text, bool resumed,
                                      bool unfinished, struct tokenizer_out *out, struct tokmap_error *error)
{
    uint32_t block = own->cuts->characters;
    uint64_t at = 0, end = 0;
    enum tokmap_status status = TOKMAP_OK;
    do {
        const uint64_t bytes = text->count ? text_cuts_part(own->cuts, text->bytes + at, text->count - at, &block) : 0;
        const struct tokmap_text some = {text->count ? text->bytes + at : text->bytes, bytes};
        const struct tokenizer_batch batch = {.documents = &some, .count = 1};
        struct tokenizer_out part =
            out_rest(&own->head, out, &end, !at && !resumed, at + bytes == text->count && !unfinished);
        status = tokenizer_encode(own->inner, &batch, &part, error);
        out_add(out, &part);
        at += bytes;
    } while (at < text->count && !status);
    return status;
}

static enum tokmap_status cutting_encode(struct tokenizer_state *state, const struct tokenizer_batch *batch,
                                         struct tokenizer_out *out, struct tokmap_error *error)
{
    struct cutting_state *own = (struct cutting_state *)state;
    enum tokmap_status status = tokenizer_check_capacity(batch, out, state->tokenizer->info.ids_per_byte_most, error);
    for (uint64_t i = 0, next; i < batch->count && !status; i = next) {
        const bool resumed = i == 0 && batch->resumed;
        uint64_t end = i;
        while (!resumed && end < batch->count && batch->documents[end].count <= own->cuts->run &&
               !(end + 1 == batch->count && batch->unfinished))
            end++;
        next = max64(end, i + 1);
        if (end > i) {
            status = shorts_encode(own, batch, i, end - i, out, error);
            continue;
        }
        const bool unfinished = i + 1 == batch->count && batch->unfinished;
        out->failed = i;
        status = long_encode(own, &batch->documents[i], resumed, unfinished, out, error);
        out->ends[i] = out->count;
    }
    return status;
}

/* Returns the end of the marks of marks[from..count) that end at or before `end`; *inside: the next one begins before
 * it. */
static uint64_t marks_until(const struct tokenizer_mark *marks, uint64_t from, uint64_t count, uint64_t end,
                            bool *inside)
{
    while (from < count && marks[from].end <= end)
        from++;
    *inside = from < count && marks[from].begin < end;
    return from;
}

static enum tokmap_status cutting_encode_marked(struct tokenizer_state *state, const struct tokmap_text *text,
                                                const struct tokenizer_mark *marks, uint64_t mark_count,
                                                struct tokenizer_out *out, struct tokenizer_place *places,
                                                struct tokmap_error *error)
{
    struct cutting_state *own = (struct cutting_state *)state;
    uint32_t block = own->cuts->characters;
    uint64_t first = 0, end = 0;
    struct tokenizer_mark *moved = malloc((size_t)mark_count * sizeof *moved);
    enum tokmap_status status = moved ? TOKMAP_OK : error_set_memory(error, "marks", mark_count * sizeof *moved);
    for (uint64_t at = 0, bytes; at < text->count && !status; at += bytes) {
        bool inside;
        bytes = text_cuts_part(own->cuts, text->bytes + at, text->count - at, &block);
        const uint64_t next = marks_until(marks, first, mark_count, at + bytes, &inside);
        if (inside) {
            status = error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                               "the cut of '%s' at byte %" PRIu64
                               " is inside of a special token; leave cut_as out for this document",
                               own->cuts->name, at + bytes);
            break;
        }
        for (uint64_t i = first; i < next; i++)
            moved[i - first] = (struct tokenizer_mark){marks[i].begin - at, marks[i].end - at, marks[i].id};
        const struct tokmap_text some = {text->bytes + at, bytes};
        const uint64_t base = out->count;
        struct tokenizer_out part = out_rest(state, out, &end, !at, at + bytes == text->count);
        status = tokenizer_encode_marked(own->inner, &some, moved, next - first, &part, places ? places + first : NULL,
                                         error);
        for (uint64_t i = first; i < next && places && !status; i++) {
            places[i].index += base;
            places[i].begin += at;
            places[i].end += at;
        }
        out_add(out, &part);
        first = next;
    }
    out->ends[0] = out->count;
    free(moved);
    return status;
}

/* Finds the offsets of a text that is cut: each part is encoded again, to know how many of the ids are its own. */
static enum tokmap_status parts_offsets(struct cutting_state *own, const struct tokmap_text *text, const void *ids,
                                        uint64_t count, uint64_t *begins, uint64_t *ends, struct tokmap_error *error)
{
    const struct tokenizer_info *info = &own->head.tokenizer->info;
    uint32_t block = own->cuts->characters;
    uint64_t done = 0, end, room = 0;
    void *made = NULL;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t at = 0, bytes; at < text->count && !status; at += bytes) {
        bytes = text_cuts_part(own->cuts, text->bytes + at, text->count - at, &block);
        const struct tokmap_text some = {text->bytes + at, bytes};
        const struct tokenizer_batch batch = {.documents = &some, .count = 1};
        if (bytes * info->ids_per_byte_most > room) {
            room = bytes * info->ids_per_byte_most;
            free(made);
            made = malloc((size_t)(room * info->width));
            if (!made) {
                status = error_set_memory(error, "offsets of tokens", room * info->width);
                break;
            }
        }
        struct tokenizer_out part = {.tokens = made, .capacity = room, .ends = &end};
        status = tokenizer_encode(own->inner, &batch, &part, error);
        if (!status && part.count > count - done)
            status = error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET, "the ids are not those of this text");
        if (!status)
            status = tokenizer_offsets(own->inner, &some, TOKENIZER_STARTS, (const char *)ids + done * info->width,
                                       part.count, begins ? begins + done : NULL, ends ? ends + done : NULL, error);
        for (uint64_t i = done; i < done + part.count && !status; i++) {
            if (begins)
                begins[i] += at;
            if (ends)
                ends[i] += at;
        }
        done += part.count;
    }
    free(made);
    return status || done == count
               ? status
               : error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET, "the ids are not those of this text");
}

static enum tokmap_status cutting_offsets(struct tokenizer_state *state, const struct tokmap_text *text,
                                          enum tokenizer_where where, const void *ids, uint64_t count, uint64_t *begins,
                                          uint64_t *ends, struct tokmap_error *error)
{
    struct cutting_state *own = (struct cutting_state *)state;
    if (text->count <= own->cuts->run)
        return tokenizer_offsets(own->inner, text, where == TOKENIZER_RESUMES ? TOKENIZER_STARTS : where, ids, count,
                                 begins, ends, error);
    return parts_offsets(own, text, ids, count, begins, ends, error);
}

static uint64_t cutting_cut(const struct tokenizer *tokenizer, const char *text, uint64_t count)
{
    return text_cuts_block(((const struct cutting *)tokenizer)->cuts, text, count);
}

/* ---- making ---- */

static enum tokmap_status cutting_share(struct tokenizer **shared, const struct tokenizer *tokenizer,
                                        enum tokmap_special special, struct tokmap_error *error);

static const struct tokenizer_kind cutting_kind = {
    .close = cutting_close,
    .share = cutting_share,
    .state_new = cutting_state_new,
    .state_free = cutting_state_free,
    .state_stop = cutting_state_stop,
    .encode = cutting_encode,
    .encode_marked = cutting_encode_marked,
    .offsets = cutting_offsets,
    .cut = cutting_cut,
};

static enum tokmap_status make(struct tokenizer **tokenizer, const struct text_cuts *cuts, struct tokmap_error *error)
{
    struct cutting *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a tokenizer", sizeof *made);
    made->head.kind = &cutting_kind;
    made->head.inner = *tokenizer;
    made->cuts = cuts;
    made->head.info = info_of_tokenizer(*tokenizer);
    made->head.info.cuts = true;
    made->head.info.cut_anywhere = false;
    made->head.info.cut_as = cuts->name;
    uint8_t all[24];
    memcpy(all, made->head.info.fingerprint, 16);
    store32(all + 16, cuts->characters);
    store32(all + 20, cuts->run);
    hash128_store(hash128(all, sizeof all), made->head.info.fingerprint);
    *tokenizer = &made->head;
    return TOKMAP_OK;
}

static enum tokmap_status cutting_share(struct tokenizer **shared, const struct tokenizer *tokenizer,
                                        enum tokmap_special special, struct tokmap_error *error)
{
    enum tokmap_status status = tokenizer_share(shared, tokenizer->inner, special, error);
    if (!status)
        status = make(shared, ((const struct cutting *)tokenizer)->cuts, error);
    if (status) {
        tokenizer_close(*shared);
        *shared = NULL;
    }
    return status;
}

enum tokmap_status cut_tokenizer_make(struct tokenizer **tokenizer, const char *name, struct tokmap_error *error)
{
    const struct text_cuts *cuts = text_cuts_named(name);
    assert(*tokenizer);
    if (!cuts)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "cut_as",
                               " is '%s', which is not the name of a model whose code cuts texts; set it to one of %s",
                               name, text_cuts_names());
    return make(tokenizer, cuts, error);
}
