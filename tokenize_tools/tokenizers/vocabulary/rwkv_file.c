/* SPDX-License-Identifier: MIT */
/*
 * rwkv_file.c - RWKV's own reader evaluates the text of each line as Python. Here the escapes that Python writes are
 * read, and any other is refused.
 *
 * The file has no token for the end of a document. RWKV's programs take the id 0 for it, which no line has, so it is
 * added under the usual name <|endoftext|>.
 *
 * Longest match: at each place of the text, the longest token that begins there is taken. Nothing splits the text
 * before. The tokens are a trie (byte_trie.h). Each byte of the text is read once for each token that it is tried for:
 * at most as often as the longest token has bytes.
 */
#include "rwkv_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "engine/byte_trie.h"
#include "engine/text_engine.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "text/utf8.h"
#include "vocabulary/hf/hf_join.h"
#include "vocabulary_file.h"

#define TRIE_TOKEN_BYTES_MOST 1024u     /* a byte of text costs at most as many steps */
#define TRIE_IDS (1u << 21)             /* ids are below it */
#define STOP_BYTES ((uint64_t)64 << 10) /* between two looks at whether to stop */

struct trie_engine {
    struct text_engine head;
    uint32_t vocabulary;
    uint8_t *bytes;          /* the texts of all ids in the order of ids; an id that has no token has an empty one */
    uint32_t *offsets;       /* the beginning of each (vocabulary + 1) */
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

static const char end_of_text[] = "<|endoftext|>";

struct token {
    uint32_t begin, bytes; /* of the text in `bytes`; bytes 0: the id has no token */
};

struct reading {
    const char *path;
    const char *start, *at, *end; /* of the text */
    const char *line;
    uint64_t number; /* of the line, from 1 */
    uint8_t *bytes;  /* the texts of all tokens in the order of lines: less than the file has */
    uint32_t used;
    struct token *tokens; /* by id; TRIE_IDS of them */
    uint32_t vocabulary;
    struct tokmap_error *error;
};

/* Reports what is wrong with the current line. Returns false. */
static bool refuse(const struct reading *reading, enum tokmap_status *status, enum tokmap_status reason,
                   const char *what)
{
    *status = error_set(reading->error, reason, reading->path, (uint64_t)(reading->line - reading->start),
                        "line %llu %s", (unsigned long long)reading->number, what);
    return false;
}

static bool wrong_form(const struct reading *reading, enum tokmap_status *status)
{
    return refuse(reading, status, TOKMAP_ERROR_FORMAT,
                  "must have an id, a text in quotes as Python writes it, and the number of its bytes");
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Reads a number. Returns UINT32_MAX if there is none, or if it is larger. */
static uint32_t number_read(struct reading *reading)
{
    uint64_t number = 0;
    const char *begin = reading->at;
    while (reading->at < reading->end && is_digit(*reading->at) && number < UINT32_MAX)
        number = 10 * number + (uint64_t)(*reading->at++ - '0');
    return reading->at == begin || number >= UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* Reads the digits of \xHH, \uHHHH, or \UHHHHHHHH. Returns UINT32_MAX if they are wrong. */
static uint32_t code_read(struct reading *reading, char kind)
{
    uint32_t code = 0;
    for (int left = kind == 'x' ? 2 : kind == 'u' ? 4 : 8; left; left--) {
        const int digit = reading->at < reading->end ? hex_digit(*reading->at++) : -1;
        if (digit < 0)
            return UINT32_MAX;
        code = code << 4 | (uint32_t)digit;
    }
    return code < 0x110000 && !(code >= 0xD800 && code < 0xE000) ? code : UINT32_MAX;
}

/* Reads what follows a backslash, and appends it. is_bytes: the text is b'...'. Returns false if tokmap does not
 * know the escape. */
static bool escape_read(struct reading *reading, bool is_bytes)
{
    static const char from[] = "ntr\\'\"abfv", to[] = "\n\t\r\\'\"\a\b\f\v";
    const char kind = reading->at < reading->end ? *reading->at++ : '\0';
    const char *known = kind ? strchr(from, kind) : NULL;
    if (known) {
        reading->bytes[reading->used++] = (uint8_t)to[known - from];
        return true;
    }
    if (kind != 'x' && (is_bytes || (kind != 'u' && kind != 'U')))
        return false;
    const uint32_t code = code_read(reading, kind);
    if (code == UINT32_MAX)
        return false;
    if (is_bytes)
        reading->bytes[reading->used++] = (uint8_t)code;
    else
        reading->used += (uint32_t)code_point_put(reading->bytes + reading->used, code);
    return true;
}

/* Reads the text of a token and appends it to `bytes`. */
static bool text_read(struct reading *reading, enum tokmap_status *status)
{
    const bool is_bytes = reading->at < reading->end && *reading->at == 'b';
    reading->at += is_bytes;
    const char quote = reading->at < reading->end ? *reading->at++ : '\0';
    if (quote != '\'' && quote != '"')
        return wrong_form(reading, status);
    for (;;) {
        const char next = reading->at < reading->end ? *reading->at++ : '\n';
        if (next == quote)
            return true;
        if (next == '\n' || (is_bytes && (next & 0x80)))
            return wrong_form(reading, status);
        if (next != '\\')
            reading->bytes[reading->used++] = (uint8_t)next;
        else if (!escape_read(reading, is_bytes))
            return refuse(reading, status, TOKMAP_ERROR_UNSUPPORTED, "has an escape that tokmap does not know");
    }
}

static bool line_read(struct reading *reading, enum tokmap_status *status)
{
    const uint32_t id = number_read(reading), begin = reading->used;
    if (id >= TRIE_IDS)
        return id == UINT32_MAX ? wrong_form(reading, status)
                                : refuse(reading, status, TOKMAP_ERROR_LIMIT, "has an id that is too large for tokmap");
    if (reading->at == reading->end || *reading->at++ != ' ')
        return wrong_form(reading, status);
    if (!text_read(reading, status))
        return false;
    if (reading->at == reading->end || *reading->at++ != ' ')
        return wrong_form(reading, status);
    const uint32_t bytes = number_read(reading);
    if (reading->at < reading->end && *reading->at == '\r')
        reading->at++;
    if (reading->at < reading->end && *reading->at++ != '\n')
        return wrong_form(reading, status);
    if (bytes != reading->used - begin || !bytes)
        return refuse(reading, status, TOKMAP_ERROR_FORMAT,
                      "says another number of bytes than its text has; the file is damaged");
    if (!id || reading->tokens[id].bytes)
        return refuse(reading, status, TOKMAP_ERROR_FORMAT,
                      id ? "has the id of an earlier line; the file is damaged"
                         : "has the id 0, which RWKV takes for the end of a document");
    reading->tokens[id] = (struct token){begin, bytes};
    reading->vocabulary = id >= reading->vocabulary ? id + 1 : reading->vocabulary;
    return true;
}

/* Reads all lines. */
static enum tokmap_status lines_read(struct reading *reading, uint64_t count)
{
    enum tokmap_status status = TOKMAP_OK;
    void *tokens = NULL;
    const uint64_t valid = utf8_valid_prefix(reading->start, (size_t)count);
    if (valid < count)
        return error_set(reading->error, TOKMAP_ERROR_FORMAT, reading->path, valid,
                         "the file is not UTF-8; it is damaged");
    if (count > UINT32_MAX)
        return error_set(reading->error, TOKMAP_ERROR_LIMIT, reading->path, TOKMAP_NO_OFFSET,
                         "the file has more than 4 GiB, which is the most that tokmap can read");
    reading->bytes = malloc(count + 8);
    if (!reading->bytes || os_memory_new(TRIE_IDS * sizeof *reading->tokens, false, &tokens))
        return error_set_memory(reading->error, "a vocabulary", count);
    reading->tokens = tokens;
    while (reading->at < reading->end) {
        reading->line = reading->at;
        reading->number++;
        if (!line_read(reading, &status))
            return status;
    }
    return TOKMAP_OK;
}

/* Copies the texts in the order of ids. */
static enum tokmap_status texts_copy(struct trie_engine *own, const struct reading *reading)
{
    own->bytes = malloc((size_t)reading->used + 1);
    own->offsets = malloc(((size_t)reading->vocabulary + 1) * sizeof *own->offsets);
    if (!own->bytes || !own->offsets)
        return error_set_memory(reading->error, "a vocabulary", reading->used);
    uint32_t used = 0;
    for (uint32_t id = 0; id < reading->vocabulary; id++) {
        const struct token *token = &reading->tokens[id];
        own->offsets[id] = used;
        memcpy(own->bytes + used, reading->bytes + token->begin, token->bytes);
        used += token->bytes;
    }
    own->offsets[reading->vocabulary] = used;
    return TOKMAP_OK;
}

static enum tokmap_status trie_engine_new(struct text_engine **engine, const struct reading *reading)
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
    if (!made)
        return error_set_memory(reading->error, "a tokenizer", sizeof *made);
    made->head.kind = &kind;
    made->vocabulary = reading->vocabulary;
    enum tokmap_status status = texts_copy(made, reading);
    if (!status)
        status = trie_build(made, reading->path, reading->error);
    if (status)
        engine_free(&made->head);
    else
        *engine = &made->head;
    return status;
}

/* Returns the hash of the tokens. */
static struct hash128 hash_tokens(const struct trie_engine *own)
{
    static const char what[] = "tokmap longest match 1";
    const struct hash_part parts[] = {{what, sizeof what},
                                      {own->offsets, ((size_t)own->vocabulary + 1) * sizeof *own->offsets},
                                      {own->bytes, own->offsets[own->vocabulary]}};
    return hash128_parts(parts, sizeof parts / sizeof parts[0]);
}

static enum tokmap_status parts_make(const struct reading *reading, struct pipeline_parts *parts)
{
    static const struct hf_splits no_splits;
    const struct added_token end = {.text = (const uint8_t *)end_of_text,
                                    .match = (const uint8_t *)end_of_text,
                                    .bytes = sizeof end_of_text - 1,
                                    .match_bytes = sizeof end_of_text - 1,
                                    .special = true};
    enum tokmap_status status = added_tokens_new(&parts->added, &end, 1, reading->path, reading->error);
    if (!status)
        status = trie_engine_new(&parts->engine, reading);
    if (status)
        return status;
    hash128_store(hash_tokens((const struct trie_engine *)parts->engine), parts->fingerprint);
    parts->vocabulary = reading->vocabulary;
    parts->eod = 0;
    parts->bos = PIPELINE_NO_ID;
    parts->engine_cuts = true;
    parts->ids_per_byte_most = 1;
    (void)snprintf(parts->scanner, sizeof parts->scanner, "none: the longest token is taken");
    return hf_fingerprint(parts, &no_splits, NULL, reading->error);
}

bool rwkv_file_is(const char *text, uint64_t count)
{
    uint64_t at = 0;
    while (at < count && at < 10 && is_digit(text[at]))
        at++;
    if (!at || count - at < 3 || text[at++] != ' ')
        return false;
    at += text[at] == 'b';
    return text[at] == '\'' || text[at] == '"';
}

enum tokmap_status rwkv_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct reading reading = {
        .path = path, .start = text, .at = text, .end = text + count, .line = text, .error = error};
    struct pipeline_parts parts = {.form = "RWKV vocabulary"};
    assert(path && text && options);
    *tokenizer = NULL;
    enum tokmap_status status = lines_read(&reading, count);
    if (!status)
        status = parts_make(&reading, &parts);
    status = vocabulary_end(tokenizer, status, &parts, path, options, error);
    os_memory_free(reading.tokens, TRIE_IDS * sizeof *reading.tokens);
    free(reading.bytes);
    return status;
}
