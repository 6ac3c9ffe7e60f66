/* SPDX-License-Identifier: MIT */
/* hf_bert.c - the steps are those of bert_steps.h, and NFD and Lowercase, in the order in which the reference takes
 * them. */
#include "hf_bert.h"

/* Parses true or false, or null for strip_accents. */
static bool switch_parse(struct json_file *file, bool may_be_null, bool if_null, bool *value)
{
    return may_be_null ? json_file_flag(file, if_null, value) : json_bool(&file->scan, value);
}

static bool step_add(struct json_file *file, struct normalizer *normalizer, enum normalizer_kind kind)
{
    if (normalizer->count == NORMALIZER_STEPS_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "normalizer has more than %d steps, which is the most that tokmap can read",
                                NORMALIZER_STEPS_MOST);
    normalizer->steps[normalizer->count++] = (struct normalizer_step){.kind = kind};
    return true;
}

bool hf_bert_normalizer_parse(struct json_file *file, struct normalizer *normalizer)
{
    static const char *const names[] = {"clean_text", "handle_chinese_chars", "lowercase", "strip_accents"};
    bool on[4] = {false}, given[4] = {false}, null = true;
    struct json_string name;
    if (!json_enter_object(&file->scan))
        return false;
    while (json_member(&file->scan, &name)) {
        uint32_t field = 0;
        while (field < 4 && !json_name_is(&name, names[field]))
            field++;
        if (field == 3)
            null = json_kind(&file->scan) == JSON_NULL;
        if (!(field < 4 ? switch_parse(file, field == 3, false, &on[field]) : json_skip(&file->scan)))
            return false;
        given[field % 4] |= field < 4;
    }
    if (file->scan.fault.reason)
        return false;
    for (uint32_t i = 0; i < 3; i++)
        if (!given[i])
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "the field normalizer.BertNormalizer.%s is missing; the file is incomplete",
                                    names[i]);
    const bool lower = on[2], strip = null ? lower : on[3];
    return (!on[0] || step_add(file, normalizer, NORMALIZE_BERT_CLEAN)) &&
           (!on[1] || step_add(file, normalizer, NORMALIZE_BERT_CHINESE)) &&
           (!strip ||
            (step_add(file, normalizer, NORMALIZE_NFD) && step_add(file, normalizer, NORMALIZE_BERT_MARKS))) &&
           (!lower || step_add(file, normalizer, NORMALIZE_LOWER));
}
