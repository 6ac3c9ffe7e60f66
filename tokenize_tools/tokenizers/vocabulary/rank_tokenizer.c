/* SPDX-License-Identifier: MIT */
/* rank_tokenizer.c - makes a tokenizer of a rank file, a split pattern and special tokens. */
#include "rank_tokenizer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_engine.h"
#include "byte_level.h"
#include "common/bytes.h"
#include "common/error.h"
#include "engine/pipeline.h"
#include "platform/os.h"
#include "rank_file.h"
#include "special_file.h"
#include "vocabulary/hf/hf_fingerprint.h"
#include "vocabulary/hf/hf_pretokenizer.h"
#include "vocabulary_name.h"

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
static enum tokmap_status regex_choose(struct rank_file *file, struct pipeline_parts *parts, const char *regex,
                                       const char *name, struct tokmap_error *error)
{
    const struct split_rules *rules = split_rules_of_regex(regex);
    file->source.rules = rules ? *rules : *split_rules_named("gpt2");
    parts->engine_cuts = rules != NULL;
    snprintf(parts->scanner, sizeof parts->scanner, "%s%s%s",
             name    ? name
             : rules ? "known pattern"
                     : "PCRE2",
             name ? ", " : "", name ? "PCRE2" : "");
    if (rules)
        return TOKMAP_OK;
    /* As in tiktoken, text that no match covers becomes no token. */
    parts->pretokenizer.count = 1;
    parts->pretokenizer.steps[0].kind = STEP_REGEX;
    parts->pretokenizer.steps[0].behavior = SPLIT_REMOVED;
    parts->pretokenizer.steps[0].invert = true;
    return regex_new(&parts->pretokenizer.steps[0].regex, regex, strlen(regex), REGEX_RUST, file->source.path,
                     "pattern_regex", error);
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
 * the one of the code beside it. *regex: the regular expression, or NULL if the pattern has a name. */
static enum tokmap_status choose_pattern(struct rank_file *file, struct pipeline_parts *parts,
                                         const struct tokmap_tokenizer_options *options, struct rank_beside *beside,
                                         const char **regex, struct tokmap_error *error)
{
    const struct rank_catalog_entry *known = file->known;
    const char *name = options->pattern;
    parts->engine_cuts = true;
    *regex = options->pattern_regex;
    if (name && *regex)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, file->source.path, "pattern",
                               " and pattern_regex are both set; set one of them");
    if (!name && !*regex && known) {
        name = known->pattern;
        *regex = known->regex;
    }
    if (!name && !*regex && beside && beside->regex) {
        *regex = beside->regex;
        beside->regex_used = true;
    }
    if (*regex)
        return regex_choose(file, parts, *regex, known && *regex == known->regex ? known->name : NULL, error);
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
    if (tokens < CHECKING_LEAST || tokens > CHECKING_MOST || os_processors() < 2 ||
        os_thread_start(&checking->thread, "tokmap-check", checking_run, checking)) {
        checking->thread = NULL;
        checking_run(checking);
    }
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
    const char *pattern = NULL;
    struct special_list specials = {0};
    struct pipeline_parts parts = {.form = "rank file", .ids_per_byte_most = 1};
    struct bpe_model *model = NULL;
    assert(path && text && options);
    *tokenizer = NULL;
    enum tokmap_status status = rank_file_parse(&file, path, text, count, error);
    const bool parsed = !status;
    struct checking checking = {.file = &file, .text = text, .count = count};
    if (!status)
        status = choose_pattern(&file, &parts, options, beside, &pattern, error);
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
        status = bpe_model_build(&model, &file.source, error);
    if (!status)
        status = byte_level_fingerprint(parts.fingerprint, model, NULL, 0, true, parts.added, error);
    if (!status) {
        parts.vocabulary = model->vocabulary;
        parts.code_cuts = file.known ? file.known->cut : NULL;
        parts.note = file.known ? file.known->note : NULL;
        parts.eod = id_of(parts.added, file.known ? file.known->eod : NULL, pipeline_usual_eod(parts.added));
        parts.bos = id_of(parts.added, file.known ? file.known->bos : NULL, pipeline_usual_bos(parts.added));
        status = bpe_engine_new(&parts.engine, model, error);
        model = NULL;
    }
    if (!status) {
        const struct hf_splits none = {.count = 0};
        struct hf_splits regex = none;
        if (!parts.engine_cuts) {
            regex.count = 1;
            regex.steps[0] = (struct hf_split){.kind = HF_SPLIT,
                                               .is_regex = true,
                                               .behavior = SPLIT_REMOVED,
                                               .invert = true,
                                               .pattern = (const uint8_t *)pattern,
                                               .pattern_bytes = strlen(pattern)};
        }
        status = hf_fingerprint(&parts, parts.engine_cuts ? &none : &regex, &file.source.rules, error);
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
    bpe_model_free(model);
    special_list_free(&specials);
    rank_file_free(&file);
    return status;
}
