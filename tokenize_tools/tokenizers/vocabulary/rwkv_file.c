/* SPDX-License-Identifier: MIT */
/*
 * rwkv_file.c - RWKV's own reader evaluates the text of each line as Python. Here the escapes that Python writes are
 * read, and any other is refused.
 *
 * The file has no token for the end of a document. RWKV's programs take the id 0 for it, which no line has, so it is
 * added under the usual name <|endoftext|>.
 */
#include "rwkv_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "engine/pipeline.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "text/utf8.h"
#include "vocabulary/hf/hf_fingerprint.h"
#include "vocabulary_name.h"
#include "words/trie_engine.h"

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

static int hexadecimal(char digit)
{
    return is_digit(digit)                ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

/* Reads the digits of \xHH, \uHHHH, or \UHHHHHHHH. Returns UINT32_MAX if they are wrong. */
static uint32_t code_read(struct reading *reading, char kind)
{
    uint32_t code = 0;
    for (int left = kind == 'x' ? 2 : kind == 'u' ? 4 : 8; left; left--) {
        const int digit = reading->at < reading->end ? hexadecimal(*reading->at++) : -1;
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
static enum tokmap_status source_make(const struct reading *reading, struct trie_source *source)
{
    source->vocabulary = reading->vocabulary;
    source->bytes = malloc((size_t)reading->used + 1);
    source->offsets = malloc(((size_t)reading->vocabulary + 1) * sizeof *source->offsets);
    if (!source->bytes || !source->offsets) {
        free(source->bytes);
        free(source->offsets);
        return error_set_memory(reading->error, "a vocabulary", reading->used);
    }
    uint32_t used = 0;
    for (uint32_t id = 0; id < reading->vocabulary; id++) {
        const struct token *token = &reading->tokens[id];
        source->offsets[id] = used;
        memcpy(source->bytes + used, reading->bytes + token->begin, token->bytes);
        used += token->bytes;
    }
    source->offsets[reading->vocabulary] = used;
    return TOKMAP_OK;
}

/* Returns the hash of the tokens. */
static struct hash128 hash_source(const struct trie_source *source)
{
    static const char what[] = "tokmap longest match 1";
    const struct hash_part parts[] = {{what, sizeof what},
                                      {source->offsets, ((size_t)source->vocabulary + 1) * sizeof *source->offsets},
                                      {source->bytes, source->offsets[source->vocabulary]}};
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
    struct trie_source source = {.path = reading->path};
    enum tokmap_status status = added_tokens_new(&parts->added, &end, 1, reading->path, reading->error);
    if (!status)
        status = source_make(reading, &source);
    if (status)
        return status;
    hash128_store(hash_source(&source), parts->fingerprint);
    parts->vocabulary = reading->vocabulary;
    parts->eod = 0;
    parts->bos = PIPELINE_NO_ID;
    parts->engine_cuts = true;
    parts->ids_per_byte_most = 1;
    (void)snprintf(parts->scanner, sizeof parts->scanner, "none: the longest token is taken");
    status = trie_engine_new(&parts->engine, &source, reading->error);
    return status ? status : hf_fingerprint(parts, &no_splits, NULL, reading->error);
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
