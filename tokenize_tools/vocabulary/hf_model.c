/* hf_model.c - "vocab" may hold 10^6 tokens and "merges" as many: each is read once, where it stands in the file. */
#include "hf_model.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"

#define TOKEN_BYTES_MOST 65535u
#define BYTES_A_TOKEN 64 /* of the file, for vocabulary and merges together: about */

void hf_model_free(struct hf_model *model)
{
    text_table_free(&model->vocabulary);
    free(model->merges);
    bytes_free(&model->wholes);
    memset(model, 0, sizeof *model);
}

static int shown(size_t bytes)
{
    return bytes < 64 ? (int)bytes : 64;
}

static bool no_memory(struct json_file *file, size_t bytes)
{
    if (!file->status)
        file->status = error_set_memory(file->error, "a vocabulary", bytes);
    return false;
}

#define TOKENS_WAITING 16

/* Tokens on their way into the table, whose memory was asked for when they came. */
struct tokens_waiting {
    struct text_entry tokens[TOKENS_WAITING];
    const char *at[TOKENS_WAITING]; /* where the scan was */
    uint32_t count;
};

static bool tokens_add(struct json_file *file, struct text_table *vocabulary, struct tokens_waiting *waiting,
                       const char *field)
{
    for (uint32_t i = 0; i < waiting->count; i++) {
        const struct text_entry *token = &waiting->tokens[i];
        switch (text_table_add(vocabulary, token->text, token->bytes, token->id)) {
        case TEXT_ADDED:
            break;
        case TEXT_TWICE:
            file->scan.at = waiting->at[i];
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s: the token '%.*s' stands twice", field,
                                    shown(token->bytes), (const char *)token->text);
        case TEXT_NO_MEMORY:
        default:
            return no_memory(file, token->bytes);
        }
    }
    waiting->count = 0;
    return true;
}

/* A member: its name is a token, its value the id. */
static bool token_take(struct json_file *file, const struct json_string *name, const char *field,
                       struct text_entry *token)
{
    const uint8_t *text;
    size_t bytes;
    uint64_t id;
    if (!json_file_bytes(file, name, &text, &bytes) || !json_unsigned(&file->scan, &id))
        return false;
    if (id >= BPE_IDS)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT, "%s: the token '%.*s' has an id of %u or more, which is not "
                                "supported", field, shown(bytes), (const char *)text, BPE_IDS);
    if (bytes > TOKEN_BYTES_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT, "%s: a token of %zu bytes is longer than is supported (%u)",
                                field, bytes, TOKEN_BYTES_MOST);
    *token = (struct text_entry){text, (uint32_t)bytes, (uint32_t)id};
    return true;
}

bool hf_vocabulary_take(struct json_file *file, struct text_table *vocabulary, const char *field)
{
    struct json_string name;
    struct tokens_waiting waiting;
    uint32_t twice;
    waiting.count = 0;
    if (vocabulary->by_id)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s stands twice", field);
    if (!json_enter_object(&file->scan))
        return false;
    if (!text_table_reserve(vocabulary, (uint64_t)(file->scan.end - file->scan.at) / BYTES_A_TOKEN))
        return no_memory(file, (size_t)(file->scan.end - file->scan.at));
    while (json_member(&file->scan, &name)) {
        struct text_entry *token = &waiting.tokens[waiting.count];
        if (!token_take(file, &name, field, token))
            return false;
        text_table_expect(vocabulary, token->text, token->bytes);
        waiting.at[waiting.count++] = file->scan.at;
        if (waiting.count == TOKENS_WAITING && !tokens_add(file, vocabulary, &waiting, field))
            return false;
    }
    if (file->scan.fault.reason || !tokens_add(file, vocabulary, &waiting, field))
        return false;
    if (text_table_index(vocabulary, &twice))
        return true;
    return twice == TEXT_NONE ? no_memory(file, vocabulary->ids)
                              : json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s: two tokens have the id %u", field, twice);
}

static bool absent(struct json_file *file, uint64_t number, const uint8_t *text, size_t bytes)
{
    return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "merge %llu (from 0) names '%.*s', which is not in the vocabulary",
                            (unsigned long long)number, shown(bytes), (const char *)text);
}

/* Whether the text of an id is that of these two together. */
static bool is_both(const struct text_table *vocabulary, uint32_t id, const struct text_query *left,
                    const struct text_query *right)
{
    const struct text_entry *entry = text_table_by_id(vocabulary, id);
    return entry && entry->bytes == left->bytes + right->bytes && !memcmp(entry->text, left->text, left->bytes) &&
           !memcmp(entry->text + left->bytes, right->text, right->bytes);
}

/* Looks up what the merges from `first` on make. False: memory. */
static bool wholes_look_up(struct hf_model *model, uint32_t first, uint32_t count, struct text_query *wholes)
{
    size_t total = 0;
    for (uint32_t i = first; i < count; i++)
        total += (size_t)model->waiting[2 * i].bytes + model->waiting[2 * i + 1].bytes;
    model->wholes.count = 0;
    if (!bytes_reserve(&model->wholes, total)) /* so that it does not move below */
        return false;
    for (uint32_t i = first; i < count; i++) {
        const struct text_query *left = &model->waiting[2 * i], *right = left + 1;
        wholes[i] = (struct text_query){.text = model->wholes.bytes + model->wholes.count,
                                        .bytes = left->bytes + right->bytes};
        (void)bytes_append(&model->wholes, left->text, left->bytes);
        (void)bytes_append(&model->wholes, right->text, right->bytes);
    }
    text_table_find_all(&model->vocabulary, wholes + first, count - first);
    return true;
}

/* The ids of what the waiting merges make. Most lists go by ids: the one after the last, or that one again, is tried
 * first. */
static bool wholes_find(struct json_file *file, struct hf_model *model, uint32_t count, struct text_query *wholes)
{
    uint32_t id = model->last_whole, known = 0;
    for (; known < count; known++) {
        const struct text_query *left = &model->waiting[2 * known], *right = left + 1;
        if (is_both(&model->vocabulary, id + 1, left, right))
            id++;
        else if (!is_both(&model->vocabulary, id, left, right))
            break;
        wholes[known].id = id;
    }
    if (known < count && !wholes_look_up(model, known, count, wholes))
        return no_memory(file, model->wholes.capacity);
    model->last_whole = wholes[count - 1].id;
    return true;
}

static bool merges_grow(struct json_file *file, struct hf_model *model, uint32_t count)
{
    if (model->merge_room - model->merge_count >= count)
        return true;
    const uint32_t room = model->merge_room ? 2 * model->merge_room : 4096;
    struct bpe_merge *grown = room > 2 * (BPE_MERGES + 1) ? NULL : realloc(model->merges, room * sizeof *grown);
    if (!grown)
        return no_memory(file, room * sizeof *grown);
    model->merges = grown;
    model->merge_room = room;
    return true;
}

bool hf_merges_finish(struct json_file *file, struct hf_model *model)
{
    const uint32_t count = model->waiting_count;
    const struct text_query *parts = model->waiting;
    struct text_query wholes[HF_MERGES_WAITING];
    model->waiting_count = 0;
    text_table_find_all(&model->vocabulary, model->waiting, 2 * (size_t)count);
    if (count && !wholes_find(file, model, count, wholes))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct text_query *lacking = parts[2 * i].id == TEXT_NONE       ? &parts[2 * i]
                                           : parts[2 * i + 1].id == TEXT_NONE ? &parts[2 * i + 1]
                                           : wholes[i].id == TEXT_NONE        ? &wholes[i]
                                                                              : NULL;
        if (lacking)
            return absent(file, model->waiting_first + i, lacking->text, lacking->bytes);
    }
    if (!merges_grow(file, model, count))
        return false;
    if (BPE_MERGES - model->merge_count < count)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT, "more than %u merges are not supported", BPE_MERGES);
    for (uint32_t i = 0; i < count; i++)
        model->merges[model->merge_count++] = (struct bpe_merge){parts[2 * i].id, parts[2 * i + 1].id, wholes[i].id};
    return true;
}

bool hf_merge_add(struct json_file *file, struct hf_model *model, const uint8_t *left, size_t left_bytes,
                  const uint8_t *right, size_t right_bytes, uint64_t number)
{
    if (left_bytes > TOKEN_BYTES_MOST || right_bytes > TOKEN_BYTES_MOST)
        return absent(file, number, left_bytes > right_bytes ? left : right, 64);
    struct text_query *query = &model->waiting[2 * model->waiting_count];
    query[0] = (struct text_query){.text = left, .bytes = (uint32_t)left_bytes};
    query[1] = (struct text_query){.text = right, .bytes = (uint32_t)right_bytes};
    if (!model->waiting_count++)
        model->waiting_first = number;
    return model->waiting_count < HF_MERGES_WAITING || hf_merges_finish(file, model);
}

/* "a b" */
static bool merge_line(struct json_file *file, struct hf_model *model, uint64_t number)
{
    const uint8_t *line;
    size_t bytes;
    if (!json_file_text(file, &line, &bytes))
        return false;
    if (bytes >= 8 && !memcmp(line, "#version", 8)) /* the reference takes it for a comment */
        return true;
    const uint8_t *space = memchr(line, ' ', bytes);
    if (!space || memchr(space + 1, ' ', bytes - (size_t)(space + 1 - line)))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "merge %llu (from 0) is not two tokens with one space between",
                                (unsigned long long)number);
    return hf_merge_add(file, model, line, (size_t)(space - line), space + 1, bytes - (size_t)(space + 1 - line), number);
}

/* ["a", "b"] */
static bool merge_pair(struct json_file *file, struct hf_model *model, uint64_t number)
{
    const uint8_t *text[2];
    size_t bytes[2];
    if (!json_enter_array(&file->scan))
        return false;
    for (int i = 0; i < 2; i++)
        if (!json_element(&file->scan) || !json_file_text(file, &text[i], &bytes[i]))
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "merge %llu (from 0) is not two tokens",
                                    (unsigned long long)number);
    if (json_element(&file->scan))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "merge %llu (from 0) is more than two tokens",
                                (unsigned long long)number);
    return !file->scan.fault.reason && hf_merge_add(file, model, text[0], bytes[0], text[1], bytes[1], number);
}

static bool merges_take(struct json_file *file, struct hf_model *model)
{
    uint64_t number = 0;
    enum json_kind kind = JSON_NOTHING;
    if (!json_enter_array(&file->scan))
        return false;
    for (; json_element(&file->scan); number++) {
        const enum json_kind here = json_kind(&file->scan);
        if (number && here != kind)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.merges mixes pairs and lines");
        kind = here;
        if (!(kind == JSON_ARRAY ? merge_pair(file, model, number) : merge_line(file, model, number)))
            return false;
    }
    return !file->scan.fault.reason && hf_merges_finish(file, model);
}

/* null or "". */
static bool empty_take(struct json_file *file, const char *field)
{
    const uint8_t *text;
    size_t bytes = 0;
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    return json_file_text(file, &text, &bytes) &&
           (!bytes || json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.%s is '%.*s': not supported", field,
                                       shown(bytes), (const char *)text));
}

static bool dropout_take(struct json_file *file)
{
    double dropout = 0;
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    if (!json_real(&file->scan, &dropout))
        return false;
    return !(dropout < 0 || dropout > 0) ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.dropout is %g: merges left to chance give no defined "
                            "ids; set it to null", dropout);
}

static bool type_take(struct json_file *file)
{
    const uint8_t *text;
    size_t bytes;
    if (!json_file_text(file, &text, &bytes))
        return false;
    return (bytes == 3 && !memcmp(text, "BPE", 3)) ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.type is '%.*s': only BPE is supported", shown(bytes),
                            (const char *)text);
}

static bool unk_take(struct json_file *file, struct hf_model *model)
{
    model->unk = NULL;
    return json_kind(&file->scan) == JSON_NULL ? json_null(&file->scan)
                                               : json_file_text(file, &model->unk, &model->unk_bytes);
}

/* Fields that only other models have: the file may lack "type", as old ones do. */
static bool other_model(struct json_file *file, const struct json_string *name)
{
    static const char *const fields[] = {"unk_id", "max_input_chars_per_word"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (json_name_is(name, fields[i]))
            return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.%s: the model is not BPE (%s): only BPE is "
                                    "supported", fields[i], i ? "WordPiece" : "Unigram");
    return true;
}

static bool member_take(struct json_file *file, struct hf_model *model, const struct json_string *name,
                        struct json_scan *merges)
{
    if (json_name_is(name, "type"))
        return type_take(file);
    if (json_name_is(name, "dropout"))
        return dropout_take(file);
    if (json_name_is(name, "unk_token"))
        return unk_take(file, model);
    if (json_name_is(name, "continuing_subword_prefix"))
        return empty_take(file, "continuing_subword_prefix");
    if (json_name_is(name, "end_of_word_suffix"))
        return empty_take(file, "end_of_word_suffix");
    if (json_name_is(name, "fuse_unk"))
        return json_file_flag(file, false, &model->fuse_unk);
    if (json_name_is(name, "byte_fallback"))
        return json_file_flag(file, false, &model->byte_fallback);
    if (json_name_is(name, "ignore_merges"))
        return json_file_flag(file, false, &model->ignore_merges);
    if (json_name_is(name, "vocab") && json_kind(&file->scan) == JSON_ARRAY)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.vocab is a list: the model is not BPE (Unigram): "
                                "only BPE is supported");
    if (json_name_is(name, "vocab"))
        return hf_vocabulary_take(file, &model->vocabulary, "model.vocab");
    if (json_name_is(name, "merges")) {
        if (merges->start)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.merges stands twice");
        *merges = file->scan;
        return model->vocabulary.by_id ? merges_take(file, model) : json_skip(&file->scan);
    }
    return other_model(file, name) && json_skip(&file->scan);
}

bool hf_model_take(struct json_file *file, struct hf_model *model)
{
    struct json_string name;
    struct json_scan merges = {0};
    if (!json_enter_object(&file->scan))
        return false;
    bool before = false; /* merges came before the vocabulary, and wait for it */
    while (json_member(&file->scan, &name)) {
        if (!member_take(file, model, &name, &merges))
            return false;
        before |= merges.start && !model->vocabulary.by_id;
    }
    if (file->scan.fault.reason)
        return false;
    if (!model->vocabulary.by_id || !model->vocabulary.count)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.vocab is missing or empty");
    if (!merges.start)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.merges is missing: the model is not BPE, or the "
                                "file is damaged");
    if (before) {
        const struct json_scan end = file->scan;
        file->scan = merges;
        if (!merges_take(file, model))
            return false;
        file->scan = end;
    }
    return true;
}
