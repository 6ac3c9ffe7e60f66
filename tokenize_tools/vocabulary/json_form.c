/* json_form.c - see json_form.h. */
#include "json_form.h"

#include <stdbool.h>
#include <stddef.h>

#include "text/json_scan.h"

enum json_form json_form_of(const char *text, uint64_t count)
{
    static const char *const hf[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                     "pre_tokenizer", "post_processor", "decoder", "model"};
    struct json_scan scan;
    struct json_string name;
    json_begin(&scan, text, (size_t)count);
    if (json_enter_object(&scan))
        while (json_member(&scan, &name)) {
            const enum json_kind kind = json_kind(&scan);
            if (kind == JSON_NUMBER)
                return FORM_ENCODER;
            for (size_t i = 0; i < sizeof hf / sizeof hf[0]; i++)
                if (json_name_is(&name, hf[i]))
                    return FORM_HF;
            if (kind == JSON_OBJECT ? json_name_is(&name, "config")
                                    : kind == JSON_ARRAY && json_name_is(&name, "vocab"))
                return FORM_TEKKEN;
            if (!json_skip(&scan))
                break;
        }
    return FORM_HF; /* its reader reports what is wrong */
}
