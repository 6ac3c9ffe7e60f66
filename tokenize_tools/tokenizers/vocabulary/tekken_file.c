/* SPDX-License-Identifier: MIT */
/*
 * tekken_file.c - parses a tekken.json.
 *
 * The ids of special tokens come first: the id of a rank is the rank plus the number of special tokens. A file may list
 * more ranks than the vocabulary has; only the first (size of the vocabulary - number of special tokens) count. Files
 * before version 7 do not name their special tokens; ten names that all such files share are filled in, and the other
 * special tokens are called <SPECIAL_n>.
 */
#include "tekken_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "byte_level.h"
#include "common/error.h"
#include "vocabulary/hf/hf_join.h"
#include "vocabulary_file.h"

#define TOKEN_BYTES_MOST 65535u
#define SPECIALS_MOST 65536u

struct tekken {
    struct json_file file;
    const uint8_t *pattern;
    size_t pattern_bytes;
    uint64_t size, special_count; /* "default_vocab_size", "default_num_special_tokens" */
    struct bytes_buffer bytes;    /* of all ranks */
    struct bytes_buffer ends;     /* uint32_t for each rank: the end of its bytes */
    struct special_list specials;
    bool has_config, has_vocabulary, has_specials;
};

static bool config_parse(struct tekken *tekken)
{
    struct json_file *file = &tekken->file;
    struct json_string name;
    bool good = json_enter_object(&file->scan);
    while (good && json_member(&file->scan, &name)) {
        if (json_name_is(&name, "pattern"))
            good = json_file_text(file, &tekken->pattern, &tekken->pattern_bytes);
        else if (json_name_is(&name, "default_vocab_size"))
            good = json_unsigned(&file->scan, &tekken->size);
        else if (json_name_is(&name, "default_num_special_tokens"))
            good = json_unsigned(&file->scan, &tekken->special_count);
        else
            good = json_skip(&file->scan);
    }
    return good && !file->scan.fault.reason;
}

/* Reads one entry of "vocab" or "special_tokens": its rank, UINT64_MAX if that is missing, and the text of the field
 * `text_field`, NULL if that is missing. Returns false after a fault. */
static bool entry_parse(struct json_file *file, const char *text_field, uint64_t *rank, const uint8_t **text,
                        size_t *count)
{
    struct json_string name;
    bool good = json_enter_object(&file->scan);
    *rank = UINT64_MAX;
    *text = NULL;
    *count = 0;
    while (good && json_member(&file->scan, &name)) {
        if (json_name_is(&name, "rank"))
            good = json_unsigned(&file->scan, rank);
        else if (json_name_is(&name, text_field))
            good = json_file_text(file, text, count);
        else
            good = json_skip(&file->scan);
    }
    return good && !file->scan.fault.reason;
}

static bool rank_parse(struct tekken *tekken, uint32_t number)
{
    struct json_file *file = &tekken->file;
    uint64_t rank;
    const uint8_t *text;
    size_t count;
    if (!entry_parse(file, "token_bytes", &rank, &text, &count))
        return false;
    if (rank != number)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "vocab: entry %u (counted from 0) must have the rank %u",
                                number, number);
    if (!count || count / 4 * 3 > TOKEN_BYTES_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "vocab: the token_bytes of rank %u are missing, empty, or longer than %u bytes", number,
                                TOKEN_BYTES_MOST);
    if (!bytes_reserve(&tekken->bytes, count) || !bytes_reserve(&tekken->ends, sizeof(uint32_t)))
        return json_file_memory(file, "a vocabulary", tekken->bytes.count + count);
    const uint32_t made = base64_decode(tekken->bytes.bytes + tekken->bytes.count, text, count);
    if (!made)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "vocab: the token_bytes of rank %u are not base64", number);
    tekken->bytes.count += made;
    const uint32_t end = (uint32_t)tekken->bytes.count;
    return bytes_append(&tekken->ends, &end, sizeof end) || json_file_memory(file, "a vocabulary", tekken->ends.count);
}

static bool vocabulary_parse(struct tekken *tekken)
{
    struct json_file *file = &tekken->file;
    if (!json_enter_array(&file->scan))
        return false;
    for (uint32_t number = 0; json_element(&file->scan); number++) {
        if (number == BPE_IDS)
            return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                    "vocab has more than %u ranks, which is the most that tokmap can read", BPE_IDS);
        if (!rank_parse(tekken, number))
            return false;
    }
    return !file->scan.fault.reason;
}

static bool specials_parse(struct tekken *tekken)
{
    struct json_file *file = &tekken->file;
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    if (!json_enter_array(&file->scan))
        return false;
    tekken->has_specials = true;
    while (json_element(&file->scan)) {
        uint64_t rank;
        const uint8_t *text;
        size_t count;
        if (!entry_parse(file, "token_str", &rank, &text, &count))
            return false;
        if (!count || count > TOKEN_BYTES_MOST || rank >= SPECIALS_MOST)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "special_tokens: a token must have a token_str of 1 to %u bytes "
                                    "and a rank below %u",
                                    TOKEN_BYTES_MOST, SPECIALS_MOST);
        for (uint32_t i = 0; i < tekken->specials.count; i++)
            if (tekken->specials.tokens[i].id == rank)
                return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                        "special_tokens: two tokens have the rank %u; the file is damaged",
                                        (unsigned)rank);
        file->status = special_list_add(&tekken->specials, (const char *)text, count, (uint32_t)rank, file->error);
        if (file->status)
            return false;
    }
    return !file->scan.fault.reason;
}

static bool once(struct tekken *tekken, bool *seen, const char *field)
{
    if (*seen)
        return json_file_refuse(&tekken->file, TOKMAP_ERROR_FORMAT, "the file has %s twice; it is damaged", field);
    *seen = true;
    return true;
}

static bool tekken_parse(struct tekken *tekken)
{
    struct json_file *file = &tekken->file;
    struct json_string name;
    bool good = json_enter_object(&file->scan);
    while (good && json_member(&file->scan, &name)) {
        if (json_name_is(&name, "config"))
            good = once(tekken, &tekken->has_config, "config") && config_parse(tekken);
        else if (json_name_is(&name, "vocab"))
            good = once(tekken, &tekken->has_vocabulary, "vocab") && vocabulary_parse(tekken);
        else if (json_name_is(&name, "special_tokens"))
            good = specials_parse(tekken);
        else
            good = json_skip(&file->scan);
    }
    return good && json_end(&file->scan);
}

/* Adds the special tokens that the file does not name. */
static bool specials_name(struct tekken *tekken)
{
    /* clang-format off */
    static const char *const common[] = {"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]",
                                         "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]"};
    /* clang-format on */
    struct json_file *file = &tekken->file;
    bool *named = calloc((size_t)tekken->special_count + 1, sizeof *named);
    bool good = named || json_file_memory(file, "a vocabulary", (size_t)tekken->special_count + 1);
    for (uint32_t i = 0; good && i < tekken->specials.count; i++) {
        if (tekken->specials.tokens[i].id >= tekken->special_count)
            good = json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "special_tokens: the rank %u must be below "
                                    "config.default_num_special_tokens",
                                    tekken->specials.tokens[i].id);
        else
            named[tekken->specials.tokens[i].id] = true;
    }
    for (uint32_t id = 0; good && id < tekken->special_count; id++) {
        char text[32];
        if (named[id])
            continue;
        if (!tekken->has_specials && id < sizeof common / sizeof common[0])
            (void)snprintf(text, sizeof text, "%s", common[id]);
        else
            (void)snprintf(text, sizeof text, "<SPECIAL_%u>", id);
        char *copy = (char *)text_arena_alloc(&file->arena, strlen(text));
        if (!copy) {
            good = json_file_memory(file, "a vocabulary", strlen(text));
            break;
        }
        memcpy(copy, text, strlen(text));
        file->status = special_list_add(&tekken->specials, copy, strlen(text), id, file->error);
        good = !file->status;
    }
    free(named);
    return good;
}

static bool sizes_check(struct tekken *tekken)
{
    struct json_file *file = &tekken->file;
    const uint64_t ranks = tekken->ends.count / sizeof(uint32_t);
    if (!tekken->pattern || !ranks)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "config.pattern or vocab is missing, so the file is not a "
                                "tekken.json");
    if (tekken->special_count > SPECIALS_MOST || tekken->size <= tekken->special_count || tekken->size > BPE_IDS ||
        tekken->size - tekken->special_count > ranks)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "config: a default_vocab_size of %llu and a "
                                "default_num_special_tokens of %llu do not fit the %llu ranks of vocab",
                                (unsigned long long)tekken->size, (unsigned long long)tekken->special_count,
                                (unsigned long long)ranks);
    return true;
}

/* Chooses the scanner that knows the pattern, or a step that matches it with PCRE2. */
static enum tokmap_status pattern_choose(struct tekken *tekken, struct pipeline_parts *parts, struct hf_splits *splits,
                                         struct split_rules *rules)
{
    const struct hf_pattern pattern = {(const char *)tekken->pattern, tekken->pattern_bytes, tekken->file.path,
                                       "config.pattern"};
    const enum tokmap_status status = hf_pattern_choose(parts, splits, rules, &pattern, tekken->file.error);
    if (parts->engine_cuts)
        scanner_describe(parts->scanner, sizeof parts->scanner, "tekken");
    else
        (void)snprintf(parts->scanner, sizeof parts->scanner, "PCRE2");
    return status;
}

static enum tokmap_status model_make(struct tekken *tekken, struct pipeline_parts *parts,
                                     const struct split_rules *rules)
{
    struct json_file *file = &tekken->file;
    const uint32_t *ends = (const uint32_t *)(const void *)tekken->ends.bytes;
    const uint32_t size = (uint32_t)tekken->size, specials = (uint32_t)tekken->special_count;
    assert(size > specials && size - specials <= tekken->ends.count / sizeof *ends);
    uint32_t *offsets = calloc((size_t)size + 1, sizeof *offsets);
    if (!offsets)
        return error_set_memory(file->error, "a vocabulary", size * sizeof *offsets);
    for (uint32_t rank = 0; rank < size - specials; rank++)
        offsets[specials + rank + 1] = ends[rank];
    const struct bpe_source source = {.path = file->path,
                                      .vocabulary = size,
                                      .bytes = tekken->bytes.bytes,
                                      .offsets = offsets,
                                      .whole = true,
                                      .rules = *rules};
    const enum tokmap_status status = byte_level_engine(parts, &source, file->error);
    free(offsets);
    return status;
}

enum tokmap_status tekken_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                    const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct tekken tekken;
    struct pipeline_parts parts = {.form = "tekken.json", .ids_per_byte_most = 1};
    struct hf_splits splits = {.count = 0};
    struct split_rules rules;
    assert(path && text && options);
    memset(&tekken, 0, sizeof tekken);
    *tokenizer = NULL;
    const bool good = json_file_begin(&tekken.file, path, text, (size_t)count, error) && tekken_parse(&tekken) &&
                      sizes_check(&tekken) && specials_name(&tekken);
    enum tokmap_status status = json_file_status(&tekken.file);
    assert(good == !status);
    if (!status)
        status = pattern_choose(&tekken, &parts, &splits, &rules);
    if (!status)
        status = added_tokens_new(&parts.added, tekken.specials.tokens, tekken.specials.count, path, error);
    if (!status)
        status = model_make(&tekken, &parts, &rules);
    if (!status)
        status = hf_fingerprint(&parts, &splits, &rules, error);
    if (!status) {
        parts.vocabulary = (uint32_t)tekken.size;
        parts.bos = pipeline_usual_bos(parts.added);
        parts.eod = pipeline_usual_eod(parts.added);
    }
    status = vocabulary_end(tokenizer, status, &parts, path, options, error);
    special_list_free(&tekken.specials);
    bytes_free(&tekken.bytes);
    bytes_free(&tekken.ends);
    json_file_end(&tekken.file);
    return status;
}
