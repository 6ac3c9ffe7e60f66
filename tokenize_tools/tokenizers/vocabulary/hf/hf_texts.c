/* SPDX-License-Identifier: MIT */
/* hf_texts.c - see hf_texts.h. */
#include "hf_texts.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"

bool hf_texts_make(struct json_file *file, const struct hf_model *model, uint32_t vocabulary, uint8_t **bytes,
                   uint32_t **offsets)
{
    size_t total = 16;
    for (uint32_t i = 0; i < model->vocabulary.count; i++)
        total += model->vocabulary.entries[i].bytes;
    if (total > UINT32_MAX)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "the tokens of the vocabulary have %zu bytes, but tokmap can read at "
                                "most 4 GiB; use a smaller vocabulary",
                                total - 16);
    *bytes = os_memory_large(total);
    *offsets = os_memory_large(((size_t)vocabulary + 1) * sizeof **offsets);
    if (!*bytes || !*offsets) {
        file->status = error_set_memory(file->error, "a vocabulary", total);
        return false;
    }
    uint32_t used = 0;
    for (uint32_t id = 0; id < vocabulary; id++) {
        const struct text_entry *entry = text_table_by_id(&model->vocabulary, id);
        (*offsets)[id] = used;
        if (entry)
            memcpy(*bytes + used, entry->text, entry->bytes);
        used += entry ? entry->bytes : 0;
    }
    (*offsets)[vocabulary] = used;
    return true;
}

void hf_texts_end(struct pipeline_parts *parts, bool good, uint8_t *bytes, uint32_t *offsets)
{
    if (good && parts->decoder_given) {
        parts->decoder.texts = bytes;
        parts->decoder.offsets = offsets;
        parts->decoder.vocabulary = parts->vocabulary;
    } else {
        free(bytes);
        free(offsets);
    }
}

bool hf_texts_empty(struct json_file *file, const struct hf_model *model, struct pipeline_parts *parts)
{
    static const uint8_t empty[1];
    const uint32_t id = text_table_find(&model->vocabulary, empty, 0);
    if (id == TEXT_NONE)
        return true;
    parts->texts = malloc(sizeof *parts->texts);
    if (!parts->texts) {
        file->status = error_set_memory(file->error, "a vocabulary", sizeof *parts->texts);
        return false;
    }
    parts->texts[0] = (struct pipeline_text){.id = id, .bytes = 0, .text = empty};
    parts->text_count = 1;
    return true;
}
