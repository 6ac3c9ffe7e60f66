/* SPDX-License-Identifier: MIT */
/* trie_engine.c - the tokens as a trie (byte_trie.h). Each byte of the text is read once for each token that it is
 * tried for: at most as often as the longest token has bytes. */
#include "trie_engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "engine/byte_trie.h"
#include "platform/os.h"

#define STOP_BYTES ((uint64_t)64 << 10) /* between two looks at whether to stop */

struct trie_engine {
    struct text_engine head;
    uint32_t vocabulary;
    uint8_t *bytes;
    uint32_t *offsets;
    struct byte_trie trie;   /* its values are ids */
    uint64_t joined[256][4]; /* [left]: bits of the first bytes of characters that some token has after such a left */
};

struct trie_state {
    const struct trie_engine *engine;
    bool (*stop)(void *user);
    void *user;
};

static void engine_free(struct text_engine *engine)
{
    struct trie_engine *own = (struct trie_engine *)engine;
    free(own->bytes);
    free(own->offsets);
    byte_trie_free(&own->trie);
    free(own);
}

/* ---- building ---- */

static const uint8_t *text_of(const struct trie_engine *own, uint32_t id)
{
    return own->bytes + own->offsets[id];
}

static uint32_t bytes_of(const struct trie_engine *own, uint32_t id)
{
    return own->offsets[id + 1] - own->offsets[id];
}

/* Makes the keys of the trie, and checks them. Returns how many there are in *count. */
static enum tokmap_status keys_make(const struct trie_engine *own, const char *path, struct byte_trie_key *keys,
                                    size_t *count, struct tokmap_error *error)
{
    bool has[256] = {false};
    *count = 0;
    for (uint32_t id = 0; id < own->vocabulary; id++) {
        const uint32_t bytes = bytes_of(own, id);
        if (bytes > TRIE_TOKEN_BYTES_MOST)
            return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                             "the token with the id %" PRIu32 " has %" PRIu32 " bytes; the longest that tokmap can "
                             "read has %u",
                             id, bytes, TRIE_TOKEN_BYTES_MOST);
        if (bytes)
            keys[(*count)++] = (struct byte_trie_key){text_of(own, id), bytes, id};
        if (bytes == 1)
            has[*text_of(own, id)] = true;
    }
    for (uint32_t byte = 0; byte < 0xF5; byte++)
        if (!has[byte] && byte != 0xC0 && byte != 0xC1)
            return error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                             "the vocabulary has no token for the byte 0x%02" PRIx32 ", so a text with it could not be "
                             "encoded; the file is incomplete",
                             byte);
    return TOKMAP_OK;
}

/* Refuses two ids with the same text, of which the trie has the larger one. */
static enum tokmap_status check_distinct(const struct trie_engine *own, const char *path,
                                         const struct byte_trie_key *keys, size_t count, struct tokmap_error *error)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t id = 0;
        (void)byte_trie_longest(&own->trie, keys[i].bytes, keys[i].count, &id);
        if (id != keys[i].value)
            return error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                             "the ids %" PRIu32 " and %" PRIu32 " have the same text; the file is damaged",
                             keys[i].value, id);
    }
    return TOKMAP_OK;
}

/* Notes which characters are side by side in a token. What is before its first character may be the rest of any. */
static void joins_note(struct trie_engine *own, const uint8_t *text, uint32_t count)
{
    uint32_t left = (text[0] & 0xC0) == 0x80 ? 256 : text[0];
    for (uint32_t at = 1; at < count; at++) {
        if ((text[at] & 0xC0) == 0x80)
            continue;
        for (uint32_t any = left == 256 ? 0xC0 : left; any < (left == 256 ? 256 : left + 1); any++)
            own->joined[any][text[at] / 64] |= (uint64_t)1 << (text[at] % 64);
        left = text[at];
    }
}

static enum tokmap_status trie_build(struct trie_engine *own, const char *path, struct tokmap_error *error)
{
    size_t count;
    struct byte_trie_key *keys = os_memory_large(((size_t)own->vocabulary + 1) * sizeof *keys);
    if (!keys)
        return error_set_memory(error, "a vocabulary", own->vocabulary * sizeof *keys);
    enum tokmap_status status = keys_make(own, path, keys, &count, error);
    if (!status) {
        status = byte_trie_build(&own->trie, keys, count, true);
        if (status == TOKMAP_ERROR_LIMIT)
            status = error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                               "the tokens of the vocabulary begin in more ways than tokmap can read; use a smaller "
                               "vocabulary");
        else if (status)
            status = error_set_memory(error, "a vocabulary", own->offsets[own->vocabulary]);
        else
            status = check_distinct(own, path, keys, count, error);
    }
    for (size_t i = 0; i < count && !status; i++)
        joins_note(own, keys[i].bytes, keys[i].count);
    free(keys);
    return status;
}

/* ---- the engine ---- */

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    struct trie_state *made = calloc(1, sizeof *made);
    *state = (struct text_engine_state *)made;
    if (!made)
        return error_set_memory(error, "the state of a tokenizer", sizeof *made);
    made->engine = (const struct trie_engine *)engine;
    return TOKMAP_OK;
}

static void engine_state_free(struct text_engine_state *state)
{
    free(state);
}

static void engine_state_stop(struct text_engine_state *state, bool (*stop)(void *user), void *user)
{
    struct trie_state *own = (struct trie_state *)state;
    own->stop = stop;
    own->user = user;
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    const struct trie_state *own = (const struct trie_state *)state;
    const struct byte_trie *trie = &own->engine->trie;
    uint64_t look = STOP_BYTES;
    uint32_t id = 0;
    for (uint64_t at = 0, length; at < count; at += max64(length, 1)) {
        length = byte_trie_longest(trie, text + at, (size_t)(count - at), &id);
        if (length) /* it is, because each byte of UTF-8 has a token */
            ids_append(out, id);
        if (at < look)
            continue;
        look = at + STOP_BYTES;
        if (own->stop && own->stop(own->user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    }
    return TOKMAP_OK;
}

static bool engine_bytes(const struct text_engine *engine, uint32_t id, const uint8_t **bytes, uint32_t *count)
{
    const struct trie_engine *own = (const struct trie_engine *)engine;
    if (id >= own->vocabulary)
        return false;
    *bytes = text_of(own, id);
    *count = bytes_of(own, id);
    return *count != 0;
}

/* Returns whether no token has such characters side by side: then a token ends there, whatever is around. */
static bool engine_border(const struct text_engine *engine, uint8_t left, uint8_t right)
{
    const struct trie_engine *own = (const struct trie_engine *)engine;
    return !(own->joined[left][right / 64] >> (right % 64) & 1);
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    uint32_t id = 0;
    for (uint64_t at = 0, length; at < count; at += length) {
        length = byte_trie_longest(&((const struct trie_engine *)engine)->trie, text + at, (size_t)(count - at), &id);
        if (!length || walk->at == walk->count || id_walk_next(walk) != id)
            return false;
        walk->found(walk->user, walk->at++, at, at + length);
    }
    return true;
}

enum tokmap_status trie_engine_new(struct text_engine **engine, const struct trie_source *source,
                                   struct tokmap_error *error)
{
    static const struct text_engine_kind kind = {.free = engine_free,
                                                 .state_new = engine_state_new,
                                                 .state_free = engine_state_free,
                                                 .state_stop = engine_state_stop,
                                                 .encode_text = engine_text,
                                                 .id_bytes = engine_bytes,
                                                 .may_cut = engine_border,
                                                 .walk = engine_walk};
    struct trie_engine *made = calloc(1, sizeof *made);
    assert(source->bytes && source->offsets && source->vocabulary <= TRIE_IDS);
    *engine = NULL;
    if (!made) {
        free(source->bytes);
        free(source->offsets);
        return error_set_memory(error, "a tokenizer", sizeof *made);
    }
    made->head.kind = &kind;
    made->vocabulary = source->vocabulary;
    made->bytes = source->bytes;
    made->offsets = source->offsets;
    const enum tokmap_status status = trie_build(made, source->path, error);
    if (status)
        engine_free(&made->head);
    else
        *engine = &made->head;
    return status;
}
