/* SPDX-License-Identifier: MIT */
/* tokenizer_config.c - see tokenizer_config.h. */
#include "tokenizer_config.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"
#include "text/stand_in.h"
#include "vocabulary_file.h"

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

bool config_added_parse(struct json_file *file, struct config_text *text, bool *special)
{
    struct json_string name;
    if (!json_enter_object(&file->scan))
        return false;
    while (json_member(&file->scan, &name)) {
        const enum json_kind kind = json_kind(&file->scan);
        if (!(json_name_is(&name, "content") && kind == JSON_STRING ? json_file_text(file, &text->text, &text->bytes)
              : json_name_is(&name, "special") && (kind == JSON_TRUE || kind == JSON_FALSE)
                  ? json_bool(&file->scan, special)
                  : json_skip(&file->scan)))
            return false;
    }
    return !file->scan.fault.reason;
}

bool config_text_parse(struct json_file *file, struct config_text *text)
{
    bool special;
    const enum json_kind kind = json_kind(&file->scan);
    return kind == JSON_STRING   ? json_file_text(file, &text->text, &text->bytes)
           : kind == JSON_OBJECT ? config_added_parse(file, text, &special)
                                 : json_skip(&file->scan);
}

/* Parses the object of all added tokens, by their ids. */
static bool all_added_parse(struct json_file *file, struct tokenizer_config *config)
{
    struct json_string id;
    if (!json_enter_object(&file->scan))
        return false;
    while (json_member(&file->scan, &id)) {
        struct config_text text = {0};
        bool special = false;
        if (!(json_kind(&file->scan) == JSON_OBJECT ? config_added_parse(file, &text, &special)
                                                    : json_skip(&file->scan)))
            return false;
        if (!special && !config->added.text)
            config->added = text;
    }
    return !file->scan.fault.reason;
}

static bool member_parse(struct tokenizer_config *config, const struct json_string *name)
{
    static const char *const specials[CONFIG_SPECIALS] = {"unk_token", "sep_token", "pad_token", "cls_token",
                                                          "mask_token"};
    const struct {
        const char *name;
        bool *value;
    } flags[] = {{"do_lower_case", &config->lower},
                 {"tokenize_chinese_chars", &config->chinese},
                 {"do_basic_tokenize", &config->basic},
                 {"strip_accents", &config->strip},
                 {"add_prefix_space", &config->prefix_space}};
    struct json_file *file = &config->file;
    const enum json_kind kind = json_kind(&file->scan);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (!json_name_is(name, flags[i].name) || kind == JSON_NULL)
            continue;
        if (kind != JSON_TRUE && kind != JSON_FALSE)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s must be true, false, or null", flags[i].name);
        config->strip_given |= flags[i].value == &config->strip;
        return json_bool(&file->scan, flags[i].value);
    }
    for (int i = 0; i < CONFIG_SPECIALS; i++)
        if (json_name_is(name, specials[i]))
            return config_text_parse(file, &config->specials[i]);
    if (json_name_is(name, "tokenizer_class"))
        return config_text_parse(file, &config->class_name);
    return json_name_is(name, "added_tokens_decoder") && kind == JSON_OBJECT ? all_added_parse(file, config)
                                                                             : json_skip(&file->scan);
}

enum tokmap_status tokenizer_config_read(struct tokenizer_config *config, const char *vocabulary,
                                         struct tokmap_error *error)
{
    struct json_file *file = &config->file;
    struct json_string name;
    struct os_stat about;
    uint64_t bytes;
    config->path = path_beside(vocabulary, "tokenizer_config.json");
    if (!config->path)
        return error_set_memory(error, "a path", strlen(vocabulary));
    if (os_stat(config->path, &about) || about.kind != OS_KIND_FILE)
        return TOKMAP_OK;
    const enum tokmap_status status = vocabulary_file_read(config->path, &config->text, &bytes, error);
    if (status)
        return status;
    if (stand_in_of(config->text, bytes) == STAND_IN_POINTER)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, config->path, TOKMAP_NO_OFFSET, "%s",
                         STAND_IN_POINTER_MESSAGE);
    config->there = true;
    bool good = json_file_begin(file, config->path, config->text, (size_t)bytes, error);
    file->content = "a JSON object";
    good = good && json_enter_object(&file->scan);
    while (good && json_member(&file->scan, &name))
        good = member_parse(config, &name);
    if (good)
        (void)json_end(&file->scan);
    return json_file_status(file);
}

void tokenizer_config_free(struct tokenizer_config *config)
{
    json_file_end(&config->file);
    free(config->text);
    free(config->path);
}
