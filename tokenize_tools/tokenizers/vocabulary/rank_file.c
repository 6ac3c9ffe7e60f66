/* SPDX-License-Identifier: MIT */
/*
 * rank_file.c - reads rank files. Published files list their tokens in the order of the ranks. Lines in any other order
 * are sorted.
 *
 * Two threads read a long file: one from its beginning, and one from a line near its middle. Lines do not depend on one
 * another, so both together find what one alone would.
 */
#include "rank_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "bpe/text_places.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "text/decimal.h"

/* ---- lines ---- */

/* A line, without the characters that end it. */
struct line {
    const uint8_t *text;
    uint64_t bytes, number; /* number: counted from 1 */
};

struct token {
    uint32_t rank, offset, bytes; /* offset: of the text in the buffer of all texts */
    uint64_t line;
};

static bool next_line(const uint8_t **at, const uint8_t *end, struct line *line)
{
    if (*at == end)
        return false;
    const uint8_t *stop = memchr(*at, '\n', (size_t)(end - *at));
    const uint8_t *line_end = stop ? stop : end;
    line->text = *at;
    line->bytes = (uint64_t)(line_end - *at);
    line->number++;
    if (line->bytes && line_end[-1] == '\r')
        line->bytes--;
    *at = stop ? stop + 1 : end;
    return true;
}

/* Returns true for a token without bytes, which "=" stands for: one of Whisper's has none. It is an id that no text
 * gets. */
static bool is_empty_token(const uint8_t *text, const uint8_t *end)
{
    return end - text == 1 && *text == '=';
}

/* Parses a line, and decodes its token to bytes + used. Returns NULL, or what is wrong with the line. */
static const char *read_token(const struct line *line, uint8_t *bytes, uint32_t used, struct token *token)
{
    const uint8_t *space = memchr(line->text, ' ', line->bytes);
    if (!space)
        return "lacks the space between token and rank";
    const char *at = (const char *)space + 1, *end = (const char *)line->text + line->bytes;
    uint64_t rank = 0;
    if (at == end)
        return "lacks a rank";
    const bool fits = decimal_read(&at, end, &rank);
    if (fits ? at != end : !decimal_is_digit(*at))
        return "has a rank that is not a number";
    if (!fits || rank >= BPE_IDS)
        return "has a rank above 2097151";
    token->rank = (uint32_t)rank;
    token->line = line->number;
    token->offset = used;
    token->bytes = base64_decode(bytes + used, line->text, (uint64_t)(space - line->text));
    return token->bytes || is_empty_token(line->text, space) ? NULL : "has a token that is not base64";
}

bool rank_file_is(const char *text, uint64_t count)
{
    const uint8_t *at = (const uint8_t *)text;
    struct line line = {at, 0, 0};
    struct token token;
    uint8_t bytes[256];
    return count && next_line(&at, at + min64(count, 300), &line) && line.bytes <= 256 &&
           !read_token(&line, bytes, 0, &token);
}

static int by_rank(const void *a, const void *b)
{
    const struct token *left = a, *right = b;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* Sorts tokens and their texts by rank, and fills file->offsets and file->source. */
static enum tokmap_status order_tokens(struct rank_file *file, struct token *tokens, uint32_t count, uint32_t bytes,
                                       struct tokmap_error *error)
{
    uint32_t used = 0;
    uint8_t *ordered = file->bytes;
    assert(count > 0);
    bool contiguous = true; /* the texts are where they belong already */
    for (uint32_t i = 1; i < count; i++) {
        contiguous &= tokens[i].offset == tokens[i - 1].offset + tokens[i - 1].bytes;
        if (tokens[i].rank <= tokens[i - 1].rank) {
            qsort(tokens, count, sizeof *tokens, by_rank);
            contiguous = false;
            break;
        }
    }
    const uint32_t vocabulary = tokens[count - 1].rank + 1;
    file->offsets = os_memory_large(((size_t)vocabulary + 1) * sizeof *file->offsets);
    if (!contiguous)
        ordered = os_memory_large((size_t)bytes + 64);
    if (!file->offsets || !ordered) {
        if (!contiguous)
            free(ordered);
        return error_set_memory(error, "a vocabulary", bytes + ((uint64_t)vocabulary + 1) * sizeof *file->offsets);
    }
    file->hole = file->empty = BPE_NONE;
    for (uint32_t i = 0, id = 0; i < count; i++) {
        const bool empty_again = !tokens[i].bytes && file->empty != BPE_NONE;
        if (empty_again || (i && tokens[i].rank == tokens[i - 1].rank)) {
            if (!contiguous)
                free(ordered);
            return empty_again
                       ? error_set_line(error, TOKMAP_ERROR_FORMAT, file->source.path, tokens[i].line,
                                        "a second token has no bytes; the file is damaged")
                       : error_set_line(error, TOKMAP_ERROR_FORMAT, file->source.path,
                                        max64(tokens[i].line, tokens[i - 1].line),
                                        "two lines have the rank %" PRIu32 "; the file is damaged", tokens[i].rank);
        }
        if (id < tokens[i].rank && file->hole == BPE_NONE)
            file->hole = id;
        if (!tokens[i].bytes)
            file->empty = tokens[i].rank;
        for (; id <= tokens[i].rank; id++)
            file->offsets[id] = used;
        if (!contiguous)
            memcpy(ordered + used, file->bytes + tokens[i].offset, tokens[i].bytes);
        used += tokens[i].bytes;
    }
    file->offsets[vocabulary] = used;
    if (!contiguous) {
        free(file->bytes);
        file->bytes = ordered;
    }
    file->source.vocabulary = vocabulary;
    file->source.bytes = file->bytes;
    file->source.offsets = file->offsets;
    return TOKMAP_OK;
}

/* ---- reading lines ---- */

#define SHARED_LEAST ((uint64_t)256 << 10) /* bytes of a file that two threads read */

/* Some lines of a file, which one thread reads. */
struct lines {
    const uint8_t *at, *end;
    uint8_t *bytes;  /* destination of the texts; there is room for as many bytes as the lines have */
    uint32_t offset; /* of the first text in the buffer of all texts */
    uint64_t all;    /* bytes of the whole file */
    struct token *tokens;
    uint64_t room; /* for tokens: of the first part for all of the file, if the lines of the other are as long */
    uint32_t count, used;
    uint64_t lines;    /* that were read; the last of them has the fault, if there is one */
    const char *fault; /* or NULL */
    bool no_memory;
};

static void lines_read(void *user)
{
    struct lines *part = user;
    struct line line = {part->at, 0, 0};
    const uint8_t *at = part->at;
    uint64_t lines = 1;
    for (const uint8_t *p = at; (p = memchr(p, '\n', (size_t)(part->end - p))); p++)
        lines++;
    const uint64_t own = (uint64_t)(part->end - part->at);
    const uint64_t others = part->offset || own == part->all ? 0 : lines * (part->all - own) / own + lines / 8;
    part->room = lines + min64(others, BPE_IDS);
    part->tokens = os_memory_large(part->room * sizeof *part->tokens);
    part->no_memory = !part->tokens;
    while (part->tokens && !part->fault && next_line(&at, part->end, &line)) {
        if (!line.bytes)
            continue;
        struct token *token = &part->tokens[part->count];
        part->fault = read_token(&line, part->bytes, part->used, token);
        if (!part->fault) {
            token->offset += part->offset;
            part->used += token->bytes;
            part->count++;
        }
    }
    part->lines = line.number;
}

/* Appends the tokens of the second part to those of the first one, and their texts. */
static bool lines_join(struct lines *first, const struct lines *second)
{
    const uint32_t count = first->count + second->count;
    struct token *joined = first->tokens;
    if (count > first->room && !(joined = realloc(joined, count * sizeof *joined)))
        return false;
    for (uint32_t i = 0; i < second->count; i++) {
        struct token *token = &joined[first->count + i];
        *token = second->tokens[i];
        token->line += first->lines;
        token->offset -= second->offset - first->used;
    }
    memmove(first->bytes + first->used, second->bytes, second->used);
    first->tokens = joined;
    first->count = count;
    first->used += second->used;
    return true;
}

/* Reads all lines, and fills file->bytes. *tokens is the caller's to free, on failure too. */
static enum tokmap_status file_lines(struct rank_file *file, const uint8_t *text, uint64_t count, struct lines *all,
                                     struct tokmap_error *error)
{
    const uint8_t *const end = text + count;
    const uint8_t *middle = count >= SHARED_LEAST ? memchr(text + count / 2, '\n', (size_t)(count - count / 2)) : NULL;
    middle = middle && middle + 1 < end && os_processors() > 1 ? middle + 1 : end;
    const uint32_t half = (uint32_t)(middle - text);
    struct lines rest = {.at = middle, .end = end, .bytes = file->bytes + half, .offset = half, .all = count};
    struct os_thread *thread;
    const bool two = middle < end && !os_thread_start(&thread, "tokmap-ranks", lines_read, &rest);
    *all = (struct lines){.at = text, .end = two ? middle : end, .bytes = file->bytes, .all = count};
    lines_read(all);
    if (two)
        os_thread_join(thread);
    bool no_memory = all->no_memory;
    uint64_t number = all->lines;
    const char *fault = all->fault;
    if (two && !no_memory && !fault) {
        number += rest.lines;
        fault = rest.fault;
        no_memory = rest.no_memory || (!fault && !lines_join(all, &rest));
    }
    free(rest.tokens);
    if (no_memory)
        return error_set_memory(error, "a vocabulary", count);
    if (fault)
        return error_set_line(error, TOKMAP_ERROR_FORMAT, file->source.path, number,
                              "the line %s; each line of a rank file must be a token in base64, a space, and a rank",
                              fault);
    return TOKMAP_OK;
}

enum tokmap_status rank_file_parse(struct rank_file *file, const char *path, const char *text, uint64_t count,
                                   struct tokmap_error *error)
{
    struct lines lines = {.count = 0};
    memset(file, 0, sizeof *file);
    file->source.path = path;
    file->source.whole = true;
    if (count > (uint64_t)1 << 30)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "the rank file has %" PRIu64 " bytes; tokmap can read at most 1 GiB", count);
    file->bytes = os_memory_large(count + 64);
    enum tokmap_status status = file->bytes ? file_lines(file, (const uint8_t *)text, count, &lines, error)
                                            : error_set_memory(error, "a vocabulary", count);
    if (!status && !lines.count)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                           "the rank file has no tokens; it is incomplete");
    if (!status)
        status = order_tokens(file, lines.tokens, lines.count, lines.used, error);
    free(lines.tokens);
    if (!status) {
        hash128_store(hash128(text, count), file->fingerprint);
        file->known = rank_catalog_find(file->fingerprint);
    }
    return status;
}

/* Returns the number of the line that has a rank. The file has been read without a fault. */
static uint64_t line_of_rank(const char *text, uint64_t count, uint32_t rank)
{
    const uint8_t *at = (const uint8_t *)text, *const end = at + count;
    struct line line = {at, 0, 0};
    while (next_line(&at, end, &line)) {
        const uint8_t *space = line.bytes ? memchr(line.text, ' ', line.bytes) : NULL;
        const char *digits = space ? (const char *)space + 1 : NULL;
        uint64_t found;
        if (digits && decimal_read(&digits, (const char *)line.text + line.bytes, &found) && found == rank)
            break;
    }
    return line.number;
}

enum tokmap_status rank_file_check(const struct rank_file *file, const char *text, uint64_t count,
                                   struct tokmap_error *error)
{
    uint32_t duplicate;
    if (!text_places_duplicate(file->bytes, file->offsets, file->source.vocabulary, &duplicate))
        return error_set_memory(error, "a vocabulary", count);
    return duplicate == BPE_NONE
               ? TOKMAP_OK
               : error_set_line(error, TOKMAP_ERROR_FORMAT, file->source.path, line_of_rank(text, count, duplicate),
                                "the token with the rank %" PRIu32 " has a lower rank, too; the file is damaged",
                                duplicate);
}

void rank_file_free(struct rank_file *file)
{
    free(file->bytes);
    free(file->offsets);
    file->bytes = NULL;
    file->offsets = NULL;
}
