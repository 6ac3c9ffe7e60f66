/* SPDX-License-Identifier: MIT */
/* folder_config.c - see folder_config.h. */
#include "folder_config.h"

#include <assert.h>
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
    static const char *const names[SETTINGS] = {"auto_map",      "sp_model_kwargs",        "split_special_tokens",
                                                "legacy",        "split_by_punct",         "add_prefix_space",
                                                "do_lower_case", "tokenize_chinese_chars", "do_basic_tokenize",
                                                "strip_accents"};
    return names[setting];
}

bool config_class_is(const struct config_text *class_name, const char *names)
{
    size_t bytes = class_name->bytes;
    if (bytes > 4 && !memcmp(class_name->text + bytes - 4, "Fast", 4))
        bytes -= 4;
    for (size_t count; *names; names += count + (names[count] == ' ')) {
        count = strcspn(names, " ");
        if (count == bytes && !memcmp(names, class_name->text, bytes))
            return true;
    }
    return false;
}

/* ---- parsing ---- */

/* Parses an added token: {"content": ..., "special": ...}. */
static bool config_added_parse(struct json_file *file, struct config_text *text, struct added_token *token)
{
    const struct {
        const char *name;
        bool *value;
    } flags[] = {{"lstrip", &token->lstrip},
                 {"rstrip", &token->rstrip},
                 {"single_word", &token->single_word},
                 {"special", &token->special}};
    struct json_string name;
    if (!json_enter_object(&file->scan))
        return false;
    while (json_member(&file->scan, &name)) {
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

/* Parses the text of a token: a string, or an object with it as "content". Anything else is skipped. */
static bool config_text_parse(struct json_file *file, struct config_text *text)
{
    struct added_token token;
    const enum json_kind kind = json_kind(&file->scan);
    return kind == JSON_STRING   ? json_file_text(file, &text->text, &text->bytes)
           : kind == JSON_OBJECT ? config_added_parse(file, text, &token)
                                 : json_skip(&file->scan);
}

static struct folder_token token_of(const struct config_text *text)
{
    return (struct folder_token){
        .given = text->bytes > 0 && text->bytes <= UINT16_MAX, .text = text->text, .bytes = (uint32_t)text->bytes};
}

/* Parses the id of a token. Of a list of several ids, none is the one. */
static bool token_id(struct json_file *file, struct folder_token *token)
{
    if (json_kind(&file->scan) == JSON_NUMBER)
        return json_unsigned(&file->scan, &token->id) && (token->given = true);
    if (json_kind(&file->scan) != JSON_ARRAY)
        return json_skip(&file->scan);
    if (!json_enter_array(&file->scan))
        return false;
    uint32_t count = 0;
    while (json_element(&file->scan)) {
        const bool number = json_kind(&file->scan) == JSON_NUMBER;
        if (!(number ? json_unsigned(&file->scan, &token->id) : json_skip(&file->scan)))
            return false;
        count++;
        token->given = number && count == 1;
    }
    return !file->scan.fault.reason;
}

static bool added_append(struct parsing *parsing, const struct folder_token *token, uint64_t id,
                         struct added_token made)
{
    struct folder_config *config = parsing->config;
    struct json_file *file = parsing->file;
    if (!token->given)
        return true;
    if ((id >= BPE_IDS && id != BPE_NONE) || config->added_count == FOLDER_ADDED_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "it lists more than %u tokens, or an id above %u, which tokmap cannot read",
                                FOLDER_ADDED_MOST, BPE_IDS - 1);
    if (config->added_count == config->added_room) {
        const uint32_t room = config->added_room ? 2 * config->added_room : 64;
        struct added_token *grown = realloc(config->added, room * sizeof *grown);
        if (!grown) {
            file->status = error_set_memory(file->error, "added tokens", room * sizeof *grown);
            return false;
        }
        config->added = grown;
        config->added_room = room;
    }
    const uint32_t number = config->added_count++;
    made.text = token->text;
    made.bytes = token->bytes;
    made.id = (uint32_t)id;
    made.match_bytes = number;
    config->added[number] = made;
    *(id == BPE_NONE ? &parsing->into->named : &parsing->into->added) += 1;
    return true;
}

/* Parses "added_tokens_decoder": {"5": {"content": "<x>", "special": true, ...}, ...}. */
static bool decoder_parse(struct parsing *parsing)
{
    struct json_file *file = parsing->file;
    struct json_string key;
    if (json_kind(&file->scan) != JSON_OBJECT)
        return json_skip(&file->scan);
    if (!json_enter_object(&file->scan))
        return false;
    while (json_member(&file->scan, &key)) {
        struct config_text text = {0};
        const char *digits = key.bytes;
        uint64_t id;
        struct added_token made = {.hidden = true}; /* with flags */
        if (!key.count || !decimal_read(&digits, key.bytes + key.count, &id) || digits != key.bytes + key.count)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "added_tokens_decoder has a key that is not an id");
        if (json_kind(&file->scan) != JSON_OBJECT)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "added_tokens_decoder has a token that is not an object");
        if (!config_added_parse(file, &text, &made))
            return false;
        const struct folder_token token = token_of(&text);
        if (!made.special && !parsing->config->ordinary.text)
            parsing->config->ordinary = text;
        if (!added_append(parsing, &token, id, made))
            return false;
    }
    return !file->scan.fault.reason;
}

/* Keeps a token that is named without its id. */
static bool named_append(struct parsing *parsing, const struct config_text *text)
{
    const struct folder_token token = token_of(text);
    return added_append(parsing, &token, BPE_NONE, (struct added_token){.special = true});
}

/* Parses a list of such tokens, or an object whose values they are. */
static bool named_parse(struct parsing *parsing)
{
    struct json_scan *scan = &parsing->file->scan;
    const bool object = json_kind(scan) == JSON_OBJECT;
    struct json_string name;
    if (!(object ? json_enter_object(scan) : json_enter_array(scan)))
        return false;
    while (object ? json_member(scan, &name) : json_element(scan)) {
        struct config_text text = {0};
        if (!config_text_parse(parsing->file, &text) || !named_append(parsing, &text))
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
    for (int i = 0; i < SETTINGS; i++)
        if (json_name_is(name, config_setting_name((enum config_setting)i)))
            parsing->config->settings[i] = kind == JSON_FALSE  ? VALUE_FALSE
                                           : kind == JSON_TRUE ? VALUE_TRUE
                                           : kind == JSON_NULL || (kind <= JSON_ARRAY && scan->at - from == 2)
                                               ? VALUE_NONE
                                               : VALUE_OTHER;
    return true;
}

static bool member_parse(struct parsing *parsing, const struct json_string *name)
{
    static const char *const specials[CONFIG_SPECIALS] = {"unk_token", "sep_token", "pad_token", "cls_token",
                                                          "mask_token"};
    struct json_file *file = parsing->file;
    struct folder_config_file *into = parsing->into;
    switch (parsing->kind) {
    case FOLDER_TOKENIZER_CONFIG:
        if (json_name_is(name, "added_tokens_decoder"))
            return decoder_parse(parsing);
        if (json_name_is(name, "tokenizer_class"))
            return config_text_parse(file, &parsing->config->class_name);
        if (json_name_is(name, "language_codes"))
            return config_text_parse(file, &parsing->config->language_codes);
        if ((json_name_is(name, "offset") || json_name_is(name, "extra_ids")) && json_kind(&file->scan) == JSON_NUMBER)
            return json_unsigned(&file->scan, &parsing->config->offset) && (parsing->config->offset_given = true);
        /* fallthrough */
    case FOLDER_SPECIAL_TOKENS_MAP:
        if (name->count > 6 && !memcmp(name->bytes + name->count - 6, "_token", 6)) {
            struct config_text text = {0};
            if (!config_text_parse(file, &text))
                return false;
            if (text.text && (json_name_is(name, "eos_token") || json_name_is(name, "bos_token")))
                *(*name->bytes == 'e' ? &into->eos : &into->bos) = token_of(&text);
            for (int i = 0; i < CONFIG_SPECIALS && !parsing->kind; i++)
                if (json_name_is(name, specials[i]))
                    parsing->config->specials[i] = text;
            return named_append(parsing, &text);
        }
        if ((json_name_is(name, "additional_special_tokens") || json_name_is(name, "extra_special_tokens")) &&
            json_kind(&file->scan) <= JSON_ARRAY)
            return named_parse(parsing);
        return parsing->kind ? json_skip(&file->scan) : setting_parse(parsing, name);
    case FOLDER_ADDED_TOKENS: {
        struct config_text text = {0};
        uint64_t id;
        if (!json_file_decode(file, name, &text.text, &text.bytes) || !json_unsigned(&file->scan, &id))
            return false;
        const struct folder_token token = token_of(&text);
        return added_append(parsing, &token, id, (struct added_token){.special = false});
    }
    case FOLDER_MODEL_CONFIG:
        if (json_name_is(name, "model_type"))
            return config_text_parse(file, &parsing->config->model_type);
        if (json_name_is(name, "tokenizer_class"))
            return config_text_parse(file, &parsing->config->model_class);
        /* fallthrough */
    case FOLDER_GENERATION_CONFIG:
    case FOLDER_CONFIGS:
    default:
        if (json_name_is(name, "eos_token_id"))
            return token_id(file, &into->eos);
        if (json_name_is(name, "bos_token_id"))
            return token_id(file, &into->bos);
        return json_skip(&file->scan);
    }
}

/* ---- files ---- */

/* Makes a file count as if it were not there. */
static void file_refuse(struct folder_config *config, struct folder_config_file *into, enum tokmap_status status,
                        const char *fault)
{
    into->status = status;
    config->added_count -= into->added + into->named;
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
            bool good = json_enter_object(&into->json.scan);
            while (good && json_member(&into->json.scan, &name))
                good = member_parse(&parsing, &name);
            if (good)
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
static void added_sort(struct folder_config *config)
{
    uint32_t kept = 0;
    if (config->added_count)
        qsort(config->added, config->added_count, sizeof *config->added, by_id);
    for (uint32_t i = 0; i < config->added_count; i++)
        if (!kept || config->added[i].id == BPE_NONE || config->added[kept - 1].id != config->added[i].id)
            config->added[kept++] = config->added[i];
    for (uint32_t i = 0; i < kept; i++)
        config->added[i].match_bytes = 0;
    config->added_count = kept;
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
    added_sort(config);
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
    free(config->added);
    free(config->path);
    memset(config, 0, sizeof *config);
}
