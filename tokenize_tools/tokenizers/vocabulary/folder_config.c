/* SPDX-License-Identifier: MIT */
#include "folder_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/decimal.h"
#include "text/path.h"
#include "text/stand_in.h"
#include "text/utf8.h"
#include "vocabulary_file.h"

struct parsing {
    struct folder_config *config;
    struct folder_config_file *into;
    struct json_file *file;
    enum folder_config_kind kind;
};

const char *folder_config_name(enum folder_config_kind kind)
{
    static const char *const names[FOLDER_CONFIGS] = {"tokenizer_config.json", "special_tokens_map.json",
                                                      "added_tokens.json", "config.json", "generation_config.json"};
    return names[kind];
}

const char *config_setting_name(enum config_setting setting)
{
    static const char *const names[SETTINGS] = {"auto_map",
                                                "sp_model_kwargs",
                                                "split_special_tokens",
                                                "legacy",
                                                "split_by_punct",
                                                "add_prefix_space",
                                                "keep_accents",
                                                "do_lower_case",
                                                "tokenize_chinese_chars",
                                                "do_basic_tokenize",
                                                "strip_accents"};
    return names[setting];
}

bool config_is_listed(const char *names, const uint8_t *text, size_t bytes)
{
    for (size_t count; names && *names; names += count + (names[count] == ' ')) {
        count = strcspn(names, " ");
        if (count == bytes && !memcmp(names, text, bytes))
            return true;
    }
    return false;
}

size_t config_class_bytes(const struct config_text *class_name)
{
    const size_t bytes = class_name->bytes;
    return bytes > 4 && !memcmp(class_name->text + bytes - 4, "Fast", 4) ? bytes - 4 : bytes;
}

bool config_class_is(const struct config_text *class_name, const char *names)
{
    return config_is_listed(names, class_name->text, config_class_bytes(class_name));
}

/* ---- parsing ---- */

/* Parses the text of a token: a string, or an object {"content": ..., "special": ...} with flags. Anything else is
 * skipped. */
static bool config_text_parse(struct json_file *file, struct config_text *text, struct added_token *token)
{
    const struct {
        const char *name;
        bool *value;
    } flags[] = {{"lstrip", &token->lstrip},
                 {"rstrip", &token->rstrip},
                 {"single_word", &token->single_word},
                 {"special", &token->special}};
    struct json_string name;
    if (json_kind(&file->scan) == JSON_STRING)
        return json_file_text(file, &text->text, &text->bytes);
    if (json_kind(&file->scan) != JSON_OBJECT)
        return json_skip(&file->scan);
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        const enum json_kind kind = json_kind(&file->scan);
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
            if (json_name_is(&name, flags[i].name))
                *flags[i].value = kind == JSON_TRUE;
        if (!(json_name_is(&name, "content") && kind == JSON_STRING ? json_file_text(file, &text->text, &text->bytes)
                                                                    : json_skip(&file->scan)))
            return false;
    }
    return !file->scan.fault.reason;
}

/* Parses the id of a token. Of a list of several ids, none is the one. */
static bool token_id(struct json_file *file, struct folder_token *token)
{
    if (json_kind(&file->scan) == JSON_NUMBER)
        return json_unsigned(&file->scan, &token->id) && (token->given = true);
    if (json_kind(&file->scan) != JSON_ARRAY)
        return json_skip(&file->scan);
    uint32_t count = 0;
    for (json_enter_array(&file->scan); json_element(&file->scan);) {
        const bool number = json_kind(&file->scan) == JSON_NUMBER;
        if (!(number ? json_unsigned(&file->scan, &token->id) : json_skip(&file->scan)))
            return false;
        count++;
        token->given = number && count == 1;
    }
    return !file->scan.fault.reason;
}

/* Keeps a token. id: NULL if the file only names it. flags: the others of its members are not read. */
static bool added_append(struct parsing *parsing, const struct config_text *text, const uint64_t *id,
                         const struct added_token *flags)
{
    struct special_list *added = &parsing->config->added;
    struct json_file *file = parsing->file;
    if (!text->bytes || text->bytes > UINT16_MAX)
        return true;
    if ((id && *id >= BPE_IDS) || added->count == FOLDER_ADDED_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "it lists more than %u tokens, or an id above %u, which tokmap cannot read",
                                FOLDER_ADDED_MOST, BPE_IDS - 1);
    file->status =
        special_list_add(added, (const char *)text->text, text->bytes, id ? (uint32_t)*id : BPE_NONE, file->error);
    if (file->status)
        return false;
    struct added_token *token = &added->tokens[added->count - 1];
    token->special = flags->special;
    token->hidden = flags->hidden;
    token->lstrip = flags->lstrip;
    token->rstrip = flags->rstrip;
    token->single_word = flags->single_word;
    token->match_bytes = added->count; /* for by_id() */
    *(id ? &parsing->into->added : &parsing->into->named) += 1;
    return true;
}

/* Parses the tokens of a list or an object: with `keyed` the object "added_tokens_decoder", whose names are ids. */
static bool tokens_parse(struct parsing *parsing, bool keyed)
{
    struct json_file *file = parsing->file;
    struct json_scan *scan = &file->scan;
    const bool object = json_kind(scan) == JSON_OBJECT;
    struct json_string key = {0};
    (void)(object ? json_enter_object(scan) : json_enter_array(scan));
    while (object ? json_member(scan, &key) : json_element(scan)) {
        struct config_text text = {0};
        struct added_token flags = {.hidden = keyed}; /* these flags count */
        uint64_t id;
        const char *digits = key.bytes;
        const bool is_id =
            key.count && decimal_read(&digits, key.bytes + key.count, &id) && digits == key.bytes + key.count;
        if (keyed && !(is_id && json_kind(scan) == JSON_OBJECT))
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "added_tokens_decoder has a %s",
                                    is_id ? "token that is not an object" : "key that is not an id");
        if (!config_text_parse(file, &text, &flags))
            return false;
        if (keyed && !flags.special && !parsing->config->ordinary.text)
            parsing->config->ordinary = text;
        if (!added_append(parsing, &text, keyed ? &id : NULL, &flags))
            return false;
    }
    return !scan->fault.reason;
}

/* Parses a member of tokenizer_config.json whose value is only kept. */
static bool setting_parse(struct parsing *parsing, const struct json_string *name)
{
    struct json_scan *scan = &parsing->file->scan;
    const enum json_kind kind = json_kind(scan);
    const char *from = scan->at;
    if (!json_skip(scan))
        return false;
    const bool none = kind == JSON_NULL || (kind <= JSON_ARRAY && scan->at - from == 2);
    for (int i = 0; i < SETTINGS; i++)
        if (json_name_is(name, config_setting_name((enum config_setting)i)))
            parsing->config->settings[i] = none                 ? VALUE_NONE
                                           : kind == JSON_FALSE ? VALUE_FALSE
                                           : kind == JSON_TRUE  ? VALUE_TRUE
                                                                : VALUE_OTHER;
    return true;
}

/* Parses the text of a member whose name ends in _token. */
static bool named_parse(struct parsing *parsing, const struct json_string *name)
{
    static const char *const names[CONFIG_SPECIALS] = {"unk_token", "sep_token", "pad_token", "cls_token",
                                                       "mask_token"};
    struct config_text text = {0};
    struct added_token flags;
    if (!config_text_parse(parsing->file, &text, &flags))
        return false;
    const bool eos = json_name_is(name, "eos_token");
    if (text.text && (eos || json_name_is(name, "bos_token")))
        *(eos ? &parsing->into->eos : &parsing->into->bos) =
            (struct folder_token){text.bytes && text.bytes <= UINT16_MAX, text.text, (uint32_t)text.bytes, 0};
    for (int i = 0; i < CONFIG_SPECIALS && parsing->kind == FOLDER_TOKENIZER_CONFIG; i++)
        if (json_name_is(name, names[i]))
            parsing->config->specials[i] = text;
    return added_append(parsing, &text, NULL, &(struct added_token){.special = true});
}

static bool member_parse(struct parsing *parsing, const struct json_string *name)
{
    struct folder_config *config = parsing->config;
    struct json_file *file = parsing->file;
    const struct {
        const char *name;
        enum folder_config_kind kind;
        struct config_text *into;
    } texts[] = {{"tokenizer_class", FOLDER_TOKENIZER_CONFIG, &config->class_name},
                 {"language_codes", FOLDER_TOKENIZER_CONFIG, &config->language_codes},
                 {"tokenizer_class", FOLDER_MODEL_CONFIG, &config->model_class},
                 {"model_type", FOLDER_MODEL_CONFIG, &config->model_type}};
    const enum json_kind kind = json_kind(&file->scan);
    struct config_text text = {0};
    struct added_token flags = {0};
    uint64_t id;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].kind == parsing->kind && json_name_is(name, texts[i].name))
            return config_text_parse(file, texts[i].into, &flags);
    if (parsing->kind == FOLDER_ADDED_TOKENS)
        return json_file_decode(file, name, &text.text, &text.bytes) && json_unsigned(&file->scan, &id) &&
               added_append(parsing, &text, &id, &flags);
    if (parsing->kind > FOLDER_ADDED_TOKENS)
        return json_name_is(name, "eos_token_id")   ? token_id(file, &parsing->into->eos)
               : json_name_is(name, "bos_token_id") ? token_id(file, &parsing->into->bos)
                                                    : json_skip(&file->scan);
    if (name->count > 6 && !memcmp(name->bytes + name->count - 6, "_token", 6))
        return named_parse(parsing, name);
    if (kind <= JSON_ARRAY &&
        (json_name_is(name, "additional_special_tokens") || json_name_is(name, "extra_special_tokens")))
        return tokens_parse(parsing, false);
    if (parsing->kind == FOLDER_SPECIAL_TOKENS_MAP)
        return json_skip(&file->scan);
    if (kind == JSON_OBJECT && json_name_is(name, "added_tokens_decoder"))
        return tokens_parse(parsing, true);
    if (kind == JSON_NUMBER && (json_name_is(name, "offset") || json_name_is(name, "extra_ids")))
        return json_unsigned(&file->scan, &config->offset) && (config->offset_given = true);
    return setting_parse(parsing, name);
}

/* ---- files ---- */

/* Makes a file count as if it were not there. */
static void file_refuse(struct folder_config *config, struct folder_config_file *into, enum tokmap_status status,
                        const char *fault)
{
    into->status = status;
    config->added.count -= into->added + into->named;
    into->added = into->named = 0;
    into->eos = into->bos = (struct folder_token){0};
    if (into == &config->files[FOLDER_TOKENIZER_CONFIG]) {
        config->class_name = config->language_codes = (struct config_text){0};
        config->offset_given = false;
        memset(config->settings, 0, sizeof config->settings);
    }
    if (into == &config->files[FOLDER_MODEL_CONFIG])
        config->model_type = config->model_class = (struct config_text){0};
    (void)snprintf(into->fault, sizeof into->fault, "%s", fault);
    into->fault[utf8_cut(into->fault, strlen(into->fault))] = '\0';
}

static enum tokmap_status file_read(struct folder_config *config, const char *path, enum folder_config_kind kind,
                                    struct tokmap_error *error)
{
    struct folder_config_file *into = &config->files[kind];
    struct os_stat about;
    struct tokmap_error own = {0};
    struct json_string name;
    uint64_t bytes = 0;
    if (!os_stat(path, &about) && about.kind == OS_KIND_FILE && about.bytes > FOLDER_CONFIG_MOST) {
        file_refuse(config, into, TOKMAP_ERROR_LIMIT, "it has more than 8 MiB");
        return TOKMAP_OK;
    }
    enum tokmap_status status = vocabulary_file_read(path, &into->text, &bytes, &own);
    struct parsing parsing = {config, into, &into->json, kind};
    if (!status && stand_in_of(into->text, bytes) == STAND_IN_POINTER) {
        status = error_set(&own, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET, "%s", STAND_IN_POINTER_MESSAGE);
    } else if (!status) {
        if (json_file_begin(&into->json, path, into->text, (size_t)bytes, &own)) {
            into->json.content = "a JSON object";
            into->json.scan.not_finite_allowed = true; /* Python writes them */
            json_enter_object(&into->json.scan);
            while (json_member(&into->json.scan, &name) && member_parse(&parsing, &name))
                continue;
            if (!into->json.status)
                (void)json_end(&into->json.scan);
        }
        status = json_file_status(&into->json);
        into->json.error = NULL;
    }
    if (status == TOKMAP_ERROR_MEMORY)
        return error_set_memory(error, "the configuration of a tokenizer", bytes);
    if (status)
        file_refuse(config, into, status, own.message);
    return TOKMAP_OK;
}

/* Compares by id, and then by the order in the files, which match_bytes has. */
static int by_id(const void *a, const void *b)
{
    const struct added_token *left = a, *right = b;
    return left->id != right->id ? (left->id > right->id) - (left->id < right->id)
                                 : (left->match_bytes > right->match_bytes) - (left->match_bytes < right->match_bytes);
}

/* Sorts the added tokens, and drops those whose id an earlier one has. */
static void added_sort(struct special_list *added)
{
    uint32_t kept = 0;
    if (added->count)
        qsort(added->tokens, added->count, sizeof *added->tokens, by_id);
    for (uint32_t i = 0; i < added->count; i++)
        if (!kept || added->tokens[i].id == BPE_NONE || added->tokens[kept - 1].id != added->tokens[i].id)
            added->tokens[kept++] = added->tokens[i];
    added->count = kept;
}

enum tokmap_status folder_config_read(struct folder_config *config, const char *folder, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < FOLDER_CONFIGS && !status; i++) {
        const enum folder_config_kind kind = (enum folder_config_kind)i;
        struct os_stat about;
        char *path = path_in(folder, folder_config_name(kind));
        if (!path)
            return error_set_memory(error, "a path", strlen(folder));
        config->files[kind].there = !os_lstat(path, &about);
        if (config->files[kind].there)
            status = file_read(config, path, kind, error);
        free(path);
    }
    if (!config->class_name.bytes)
        config->class_name = config->model_class;
    added_sort(&config->added);
    return status;
}

enum tokmap_status folder_config_beside(struct folder_config *config, const char *vocabulary,
                                        struct tokmap_error *error)
{
    const struct folder_config_file *file = &config->files[FOLDER_TOKENIZER_CONFIG];
    char *folder = path_beside(vocabulary, ".");
    config->path = path_beside(vocabulary, folder_config_name(FOLDER_TOKENIZER_CONFIG));
    enum tokmap_status status = folder && config->path ? folder_config_read(config, folder, error)
                                                       : error_set_memory(error, "a path", strlen(vocabulary));
    free(folder);
    return status || !file->status ? status
                                   : error_set(error, file->status, config->path, TOKMAP_NO_OFFSET, "%s", file->fault);
}

void folder_config_free(struct folder_config *config)
{
    for (int i = 0; i < FOLDER_CONFIGS; i++) {
        json_file_end(&config->files[i].json);
        free(config->files[i].text);
    }
    special_list_free(&config->added);
    free(config->path);
    memset(config, 0, sizeof *config);
}
