/* SPDX-License-Identifier: MIT */
/*
 * rank_file.c - reads rank files, and makes a tokenizer of one, a split pattern, and special tokens. Published files
 * list their tokens in the order of the ranks. Lines in any other order are sorted.
 *
 * Two threads read a long file: one from its beginning, and one from a line near its middle. Lines do not depend on one
 * another, so both together find what one alone would.
 */
#include "rank_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/text_places.h"
#include "byte_level.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "engine/added_tokens.h"
#include "engine/tokenizer.h"
#include "platform/os.h"
#include "text/decimal.h"
#include "vocabulary/hf/hf_join.h"
#include "vocabulary_file.h"

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

/* ---- the tokenizer ---- */

/* Extends the vocabulary to the ids of the special tokens. These follow the ids of the file or fill its holes. A
 * hole that no special token fills means that the file lost a line, so it is refused. field: names the tokens in
 * messages. */
static enum tokmap_status place_specials(struct rank_file *file, const struct special_list *specials, const char *field,
                                         struct tokmap_error *error)
{
    const uint32_t before = file->source.vocabulary;
    assert(before && (file->hole < before || file->hole == BPE_NONE));
    uint32_t vocabulary = before;
    for (uint32_t i = 0; i < specials->count; i++)
        vocabulary = (uint32_t)max64(vocabulary, specials->tokens[i].id + (uint64_t)1);
    uint32_t *grown = realloc(file->offsets, ((size_t)vocabulary + 1) * sizeof *grown);
    if (!grown)
        return error_set_memory(error, "a vocabulary", ((uint64_t)vocabulary + 1) * sizeof *grown);
    for (uint32_t id = before; id < vocabulary; id++)
        grown[id + 1] = grown[before];
    file->offsets = grown;
    file->source.offsets = grown;
    file->source.vocabulary = vocabulary;
    for (uint32_t i = 0; i < specials->count; i++) {
        const uint32_t id = specials->tokens[i].id;
        if (grown[id + 1] != grown[id] || id == file->empty)
            return error_set_field(error, TOKMAP_ERROR_ARGUMENT, file->source.path, field,
                                   " gives '%.*s' the id %" PRIu32 ", which is a token of the file; choose another id",
                                   (int)specials->tokens[i].bytes, (const char *)specials->tokens[i].text, id);
    }
    for (uint32_t id = file->hole; id < before; id++) {
        bool filled = grown[id + 1] != grown[id] || id == file->empty;
        for (uint32_t i = 0; i < specials->count && !filled; i++)
            filled = specials->tokens[i].id == id;
        if (!filled)
            return error_set(error, TOKMAP_ERROR_FORMAT, file->source.path, TOKMAP_NO_OFFSET,
                             "no token has the rank %" PRIu32
                             ", although larger ranks exist; the file is incomplete, or "
                             "special_tokens lacks a token",
                             id);
    }
    return TOKMAP_OK;
}

/* Splits text by a regular expression: by the scanner if that implements it, else with PCRE2. */
static enum tokmap_status regex_choose(struct rank_file *file, struct pipeline_parts *parts, struct hf_splits *splits,
                                       const char *regex, const char *name, struct tokmap_error *error)
{
    const struct hf_pattern pattern = {regex, strlen(regex), file->source.path, "pattern_regex"};
    const enum tokmap_status status = hf_pattern_choose(parts, splits, &file->source.rules, &pattern, error);
    snprintf(parts->scanner, sizeof parts->scanner, "%s%s%s",
             name                 ? name
             : parts->engine_cuts ? "known pattern"
                                  : "PCRE2",
             name ? ", " : "", name ? "PCRE2" : "");
    return status;
}

static enum tokmap_status pattern_refuse(const char *path, const char *name, struct tokmap_error *error)
{
    return name ? error_set_field(error, TOKMAP_ERROR_ARGUMENT, path, "pattern",
                                  " is '%s', which is not a split pattern; set it to one of " SPLIT_RULES_NAMES, name)
                : error_set_field(error, TOKMAP_ERROR_ARGUMENT, path, "pattern",
                                  " is missing: a rank file does not contain its split pattern, and this one is not "
                                  "a file that tokmap recognizes; set it to one of " SPLIT_RULES_NAMES);
}

/* Chooses how text is split: by the pattern in the options, else by the one that the catalog has for the file, else by
 * the one of the code beside it. *splits: see hf_pattern_choose(). */
static enum tokmap_status choose_pattern(struct rank_file *file, struct pipeline_parts *parts,
                                         const struct tokmap_tokenizer_options *options, struct rank_beside *beside,
                                         struct hf_splits *splits, struct tokmap_error *error)
{
    const struct rank_catalog_entry *known = file->known;
    const char *name = options->pattern, *regex = options->pattern_regex;
    parts->engine_cuts = true;
    if (name && regex)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, file->source.path, "pattern",
                               " and pattern_regex are both set; set one of them");
    if (!name && !regex && known) {
        name = known->pattern;
        regex = known->regex;
    }
    if (!name && !regex && beside && beside->regex) {
        regex = beside->regex;
        beside->regex_used = true;
    }
    if (regex)
        return regex_choose(file, parts, splits, regex, known && regex == known->regex ? known->name : NULL, error);
    const struct split_rules *rules = name ? split_rules_named(name) : NULL;
    if (!rules)
        return pattern_refuse(file->source.path, name, error);
    file->source.rules = *rules;
    scanner_describe(parts->scanner, sizeof parts->scanner, name);
    return TOKMAP_OK;
}

/* Returns whether a token of the file has this id and this text. */
static bool file_has(const struct rank_file *file, const struct added_token *token)
{
    const uint32_t *offsets = file->offsets;
    return token->id < file->source.vocabulary && offsets[token->id + 1] - offsets[token->id] == token->bytes &&
           !memcmp(file->bytes + offsets[token->id], token->text, token->bytes);
}

static bool list_has(const struct special_list *list, uint32_t id)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->tokens[i].id == id)
            return true;
    return false;
}

/* Adds the tokens of a series, except those whose ids the list has. */
static enum tokmap_status list_series(struct special_list *list, const struct rank_catalog_series *series,
                                      struct tokmap_error *error)
{
    enum { NAME_MOST = 48 };
    const uint32_t listed = list->count;
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; series->front && i < series->count && !status; i++) {
        const struct special_list before = {.tokens = list->tokens, .count = listed};
        if (list_has(&before, series->id + i))
            continue;
        char *name = (char *)text_arena_alloc(&list->file.arena, NAME_MOST);
        if (!name)
            return error_set_memory(error, "special tokens", NAME_MOST);
        const size_t bytes = rank_catalog_name(series, i, name, NAME_MOST);
        status = special_list_add(list, name, bytes, series->id + i, error);
    }
    return status;
}

/* Lists the special tokens: of the file in the options; else those that the files beside it name, and then those of the
 * catalog that have other ids. */
static enum tokmap_status list_specials(const struct rank_file *file, struct special_list *list,
                                        const struct tokmap_tokenizer_options *options,
                                        const struct rank_beside *beside, struct tokmap_error *error)
{
    const struct rank_catalog_entry *known = file->known;
    if (options->special_tokens)
        return special_list_read(list, options->special_tokens, error);
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; beside && i < beside->count && !status; i++)
        status = file_has(file, &beside->specials[i])
                     ? TOKMAP_OK
                     : special_list_add(list, (const char *)beside->specials[i].text, beside->specials[i].bytes,
                                        beside->specials[i].id, error);
    const struct special_list others = {.tokens = list->tokens, .count = list->count};
    for (uint32_t i = 0; known && i < known->special_count && !status; i++)
        if (!list_has(&others, known->specials[i].id))
            status =
                special_list_add(list, known->specials[i].text, known->specials[i].bytes, known->specials[i].id, error);
    return status || !known ? status : list_series(list, &known->series, error);
}

/* Returns the id of a token, or `otherwise` if name is NULL or no token has it. */
static uint32_t id_of(const struct added_tokens *added, const char *name, uint32_t otherwise)
{
    const struct added_token *token = name ? added_tokens_by_text(added, name, strlen(name)) : NULL;
    return token ? token->id : otherwise;
}

/* Gives the token without bytes the text that it decodes to, none. */
static enum tokmap_status empty_text(struct pipeline_parts *parts, const struct rank_file *file,
                                     struct tokmap_error *error)
{
    if (file->empty == BPE_NONE)
        return TOKMAP_OK;
    parts->texts = calloc(1, sizeof *parts->texts);
    parts->text_bytes = calloc(1, 1);
    if (!parts->texts || !parts->text_bytes)
        return error_set_memory(error, "a vocabulary", sizeof *parts->texts);
    parts->texts[parts->text_count++] = (struct pipeline_text){file->empty, 0, parts->text_bytes};
    return TOKMAP_OK;
}

/* The search for equal texts. A thread does it for a large file, while the model is built. What is wrong with a file is
 * reported before what is wrong with options. */
struct checking {
    const struct rank_file *file;
    const char *text;
    uint64_t count;
    struct os_thread *thread; /* or NULL */
    enum tokmap_status status;
    struct tokmap_error error;
};

#define CHECKING_LEAST 20000     /* tokens; a thread would not be worth its start for fewer */
#define CHECKING_MOST (1u << 19) /* more need so large a table that it must be free before the model is built */

static void checking_run(void *user)
{
    struct checking *checking = user;
    checking->status = rank_file_check(checking->file, checking->text, checking->count, &checking->error);
}

static void checking_start(struct checking *checking)
{
    const uint32_t tokens = checking->file->source.vocabulary;
    const bool apart = tokens >= CHECKING_LEAST && tokens <= CHECKING_MOST;
    checking->thread = os_thread_beside(apart, "tokmap-check", checking_run, checking);
}

/* Waits for the result. Returns `status` if the texts are different. */
static enum tokmap_status checking_end(struct checking *checking, enum tokmap_status status, struct tokmap_error *error)
{
    os_thread_join(checking->thread);
    if (checking->status && error)
        *error = checking->error;
    return checking->status ? checking->status : status;
}

enum tokmap_status rank_tokenizer_new(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                      const struct tokmap_tokenizer_options *options, struct rank_beside *beside,
                                      struct tokmap_error *error)
{
    struct rank_file file;
    struct hf_splits splits = {.count = 0};
    struct special_list specials = {0};
    struct pipeline_parts parts = {.form = "rank file", .ids_per_byte_most = 1};
    assert(path && text && options);
    *tokenizer = NULL;
    enum tokmap_status status = rank_file_parse(&file, path, text, count, error);
    const bool parsed = !status;
    struct checking checking = {.file = &file, .text = text, .count = count};
    if (!status)
        status = choose_pattern(&file, &parts, options, beside, &splits, error);
    if (!status)
        status = list_specials(&file, &specials, options, beside, error);
    if (!status)
        status = place_specials(&file, &specials, options->special_tokens ? "special_tokens" : "added_tokens_decoder",
                                error);
    if (parsed)
        checking_start(&checking);
    if (!status)
        status = added_tokens_new(&parts.added, specials.tokens, specials.count, path, error);
    if (!status)
        status = empty_text(&parts, &file, error);
    if (!status)
        status = byte_level_engine(&parts, &file.source, error);
    if (!status) {
        parts.vocabulary = file.source.vocabulary;
        parts.code_cuts = file.known ? file.known->cut : NULL;
        parts.note = file.known ? file.known->note : NULL;
        parts.eod = id_of(parts.added, file.known ? file.known->eod : NULL, pipeline_usual_eod(parts.added));
        parts.bos = id_of(parts.added, file.known ? file.known->bos : NULL, pipeline_usual_bos(parts.added));
        status = hf_fingerprint(&parts, &splits, &file.source.rules, error);
    }
    if (file.known)
        (void)snprintf(parts.name, sizeof parts.name, "%s", file.known->name);
    status = vocabulary_end(tokenizer, status, &parts, path, options, error);
    if (parsed)
        status = checking_end(&checking, status, error);
    if (status) {
        tokenizer_close(*tokenizer);
        *tokenizer = NULL;
    }
    special_list_free(&specials);
    rank_file_free(&file);
    return status;
}
