/* SPDX-License-Identifier: MIT */
/* tokenizer_config.c - see tokenizer_config.h. */
#include "tokenizer_config.h"

#include <string.h>

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
