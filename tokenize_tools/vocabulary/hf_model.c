/*
 * hf_model.c - reads the vocabulary and the merges in one pass over the file, without copying a text that has no
 * escapes.
 *
 * A file can list a million tokens and as many merges, and opening it should take a fraction of a second. Almost all of
 * that time would be cache misses of the hash table, so texts are added and looked up in groups: the memory that the
 * whole group needs is prefetched before the first text is handled.
 */
#include "hf_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

#define TOKEN_BYTES_MOST 65535u
#define BYTES_A_TOKEN 64 /* of the file, for a token and its merge: an estimate, by which the table is allocated */
_Static_assert(TEXT_TABLE_MOST == BPE_IDS, "a table holds a token for every id");

void hf_model_shed(struct hf_model *model)
{
    text_table_free(&model->vocabulary);
    free(model->merges);
    bytes_free(&model->results);
    model->merges = NULL;
    model->merge_count = model->merge_room = 0;
}

void hf_model_free(struct hf_model *model)
{
    hf_model_shed(model);
    memset(model, 0, sizeof *model);
}

/* How many bytes of a text a message prints. */
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

/* Tokens that were parsed, and whose slots were prefetched, but that are not in the table yet. */
struct tokens_waiting {
    struct text_entry tokens[TOKENS_WAITING];
    const char *at[TOKENS_WAITING]; /* position in the file, for messages */
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
        case TEXT_DUPLICATE:
            file->scan.at = waiting->at[i];
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s lists the token '%.*s' twice; the file is damaged",
                                    field, shown(token->bytes), (const char *)token->text);
        case TEXT_FULL:
            file->scan.at = waiting->at[i];
            return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                    "%s has more than %u tokens, which is the most that tokmap "
                                    "can read; use a smaller vocabulary",
                                    field, TEXT_TABLE_MOST);
        case TEXT_NO_MEMORY:
        default:
            return no_memory(file, (size_t)vocabulary->room * 2 * sizeof *token);
        }
    }
    waiting->count = 0;
    return true;
}

/* Parses a member, whose name is a token and whose value is the id. */
static bool token_parse(struct json_file *file, const struct json_string *name, const char *field,
                       struct text_entry *token)
{
    const uint8_t *text;
    size_t bytes;
    uint64_t id;
    if (!json_file_decode(file, name, &text, &bytes) || !json_unsigned(&file->scan, &id))
        return false;
    if (id >= BPE_IDS)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "%s: the token '%.*s' has the id %llu; the largest id that tokmap can read is %u",
                                field, shown(bytes), (const char *)text, (unsigned long long)id, BPE_IDS - 1);
    if (bytes > TOKEN_BYTES_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT, "%s: the token with the id %llu has %zu bytes; the longest "
                                "that tokmap can read has %u", field, (unsigned long long)id, bytes, TOKEN_BYTES_MOST);
    *token = (struct text_entry){text, (uint32_t)bytes, (uint32_t)id};
    return true;
}

bool hf_vocabulary_parse(struct json_file *file, struct text_table *vocabulary, const char *field)
{
    struct json_string name;
    struct tokens_waiting waiting;
    uint32_t duplicate;
    waiting.count = 0;
    if (vocabulary->by_id)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the file has %s twice; it is damaged", field);
    if (!json_enter_object(&file->scan))
        return false;
    if (!text_table_reserve(vocabulary, (uint64_t)(file->scan.end - file->scan.at) / BYTES_A_TOKEN))
        return no_memory(file, (size_t)(file->scan.end - file->scan.at));
    while (json_member(&file->scan, &name)) {
        struct text_entry *token = &waiting.tokens[waiting.count];
        if (!token_parse(file, &name, field, token))
            return false;
        text_table_prefetch(vocabulary, token->text, token->bytes);
        waiting.at[waiting.count++] = file->scan.at;
        if (waiting.count == TOKENS_WAITING && !tokens_add(file, vocabulary, &waiting, field))
            return false;
    }
    if (file->scan.fault.reason || !tokens_add(file, vocabulary, &waiting, field))
        return false;
    if (text_table_index(vocabulary, &duplicate))
        return true;
    return duplicate == TEXT_NONE ? no_memory(file, ((size_t)vocabulary->ids + 1) * sizeof *vocabulary->by_id)
                                  : json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                                     "%s: two tokens have the id %u; the file is damaged", field,
                                                     duplicate);
}

static bool absent(struct json_file *file, uint64_t number, const uint8_t *text, size_t bytes)
{
    return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "merge %llu (counted from 0) needs the token '%.*s', which the "
                            "vocabulary lacks; the file is damaged", (unsigned long long)number, shown(bytes),
                            (const char *)text);
}

/* Returns whether the text of an id is these two texts joined. */
static bool is_both(const struct text_table *vocabulary, uint32_t id, const struct text_query *left,
                    const struct text_query *right)
{
    const struct text_entry *entry = text_table_by_id(vocabulary, id);
    return entry && entry->bytes == left->bytes + right->bytes && !memcmp(entry->text, left->text, left->bytes) &&
           !memcmp(entry->text + left->bytes, right->text, right->bytes);
}

/* Looks up the results of the waiting merges from `first` on. Returns false if memory is lacking. */
static bool results_look_up(struct hf_model *model, uint32_t first, uint32_t count, struct text_query *results)
{
    size_t total = 0;
    for (uint32_t i = first; i < count; i++)
        total += (size_t)model->waiting[2 * i].bytes + model->waiting[2 * i + 1].bytes;
    model->results.count = 0;
    if (!bytes_reserve(&model->results, total)) /* now, because texts that were appended must not move */
        return false;
    for (uint32_t i = first; i < count; i++) {
        const struct text_query *left = &model->waiting[2 * i], *right = left + 1;
        results[i] = (struct text_query){.text = model->results.bytes + model->results.count,
                                        .bytes = left->bytes + right->bytes};
        (void)bytes_append(&model->results, left->text, left->bytes);
        (void)bytes_append(&model->results, right->text, right->bytes);
    }
    text_table_find_all(&model->vocabulary, results + first, count - first);
    return true;
}

/* Finds the ids that the waiting merges make. Most files list merges in the order of these ids, so the id after the
 * last one, and the last one itself, are tried before the hash table. */
static bool results_find(struct json_file *file, struct hf_model *model, uint32_t count, struct text_query *results)
{
    uint32_t id = model->last_result, known = 0;
    for (; known < count; known++) {
        const struct text_query *left = &model->waiting[2 * known], *right = left + 1;
        if (is_both(&model->vocabulary, id + 1, left, right))
            id++;
        else if (!is_both(&model->vocabulary, id, left, right))
            break;
        results[known].id = id;
    }
    if (known < count && !results_look_up(model, known, count, results))
        return no_memory(file, model->results.capacity);
    model->last_result = results[count - 1].id;
    return true;
}

/* Makes room for `count` more merges. */
static bool merges_grow(struct json_file *file, struct hf_model *model, uint32_t count)
{
    assert(count <= HF_MERGES_WAITING && model->merge_count <= model->merge_room);
    if (BPE_MERGES - model->merge_count < count)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "the model has more than %u merges, which is the most that tokmap "
                                "can read; use a smaller vocabulary",
                                BPE_MERGES);
    if (model->merge_room - model->merge_count >= count)
        return true;
    const uint32_t room = model->merge_room ? 2 * model->merge_room : 4096;
    struct bpe_merge *grown = realloc(model->merges, room * sizeof *grown);
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
    struct text_query results[HF_MERGES_WAITING];
    model->waiting_count = 0;
    text_table_find_all(&model->vocabulary, model->waiting, 2 * (size_t)count);
    if (count && !results_find(file, model, count, results))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct text_query *lacking = parts[2 * i].id == TEXT_NONE       ? &parts[2 * i]
                                           : parts[2 * i + 1].id == TEXT_NONE ? &parts[2 * i + 1]
                                           : results[i].id == TEXT_NONE        ? &results[i]
                                                                              : NULL;
        if (lacking)
            return absent(file, model->waiting_first + i, lacking->text, lacking->bytes);
    }
    if (!merges_grow(file, model, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        model->merges[model->merge_count++] = (struct bpe_merge){parts[2 * i].id, parts[2 * i + 1].id, results[i].id};
    return true;
}

bool hf_merge_add(struct json_file *file, struct hf_model *model, const uint8_t *left, size_t left_bytes,
                  const uint8_t *right, size_t right_bytes, uint64_t number)
{
    assert(model->waiting_count < HF_MERGES_WAITING && model->vocabulary.by_id);
    if (left_bytes > TOKEN_BYTES_MOST || right_bytes > TOKEN_BYTES_MOST)
        return absent(file, number, left_bytes > right_bytes ? left : right, 64);
    struct text_query *query = &model->waiting[2 * model->waiting_count];
    query[0] = (struct text_query){.text = left, .bytes = (uint32_t)left_bytes};
    query[1] = (struct text_query){.text = right, .bytes = (uint32_t)right_bytes};
    if (!model->waiting_count++)
        model->waiting_first = number;
    return model->waiting_count < HF_MERGES_WAITING || hf_merges_finish(file, model);
}

/* Parses a merge that is written "a b". */
static bool merge_line(struct json_file *file, struct hf_model *model, uint64_t number)
{
    const uint8_t *line;
    size_t bytes;
    if (!json_file_text(file, &line, &bytes))
        return false;
    if (bytes >= 8 && !memcmp(line, "#version", 8)) /* a comment, as in the reference */
        return true;
    const uint8_t *space = memchr(line, ' ', bytes);
    if (!space || memchr(space + 1, ' ', bytes - (size_t)(space + 1 - line)))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "merge %llu (counted from 0) must be two tokens with one space between them",
                                (unsigned long long)number);
    return hf_merge_add(file, model, line, (size_t)(space - line), space + 1, bytes - (size_t)(space + 1 - line),
                        number);
}

/* Parses a merge that is written ["a", "b"]. */
static bool merge_pair(struct json_file *file, struct hf_model *model, uint64_t number)
{
    const uint8_t *text[2];
    size_t bytes[2];
    if (!json_enter_array(&file->scan))
        return false;
    for (int i = 0; i < 2; i++)
        if (!json_element(&file->scan) || !json_file_text(file, &text[i], &bytes[i]))
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "merge %llu (counted from 0) must be an array of two tokens",
                                    (unsigned long long)number);
    if (json_element(&file->scan))
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                "merge %llu (counted from 0) must be an array of two tokens, but has more",
                                (unsigned long long)number);
    return !file->scan.fault.reason && hf_merge_add(file, model, text[0], bytes[0], text[1], bytes[1], number);
}

static bool merges_parse(struct json_file *file, struct hf_model *model)
{
    uint64_t number = 0;
    enum json_kind kind = JSON_NOTHING;
    if (!json_enter_array(&file->scan))
        return false;
    for (; json_element(&file->scan); number++) {
        const enum json_kind next = json_kind(&file->scan);
        if (number && next != kind)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "model.merges contains both strings and arrays; all merges must be written alike");
        kind = next;
        if (!(kind == JSON_ARRAY ? merge_pair(file, model, number) : merge_line(file, model, number)))
            return false;
    }
    return !file->scan.fault.reason && hf_merges_finish(file, model);
}

/* Parses null or "". */
static bool empty_parse(struct json_file *file, const char *field)
{
    const uint8_t *text;
    size_t bytes = 0;
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    return json_file_text(file, &text, &bytes) &&
           (!bytes || json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                       "model.%s is '%.*s'; tokmap can only read models where it is empty",
                                       field, shown(bytes), (const char *)text));
}

static bool dropout_parse(struct json_file *file)
{
    double dropout = 0;
    if (json_kind(&file->scan) == JSON_NULL)
        return json_null(&file->scan);
    if (!json_real(&file->scan, &dropout))
        return false;
    return !(dropout < 0 || dropout > 0) ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.dropout is %g, which makes ids random; set it to "
                            "null", dropout);
}

static bool type_parse(struct json_file *file)
{
    const uint8_t *text;
    size_t bytes;
    if (!json_file_text(file, &text, &bytes))
        return false;
    return (bytes == 3 && !memcmp(text, "BPE", 3)) ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.type is '%.*s'; tokmap can only read BPE models",
                            shown(bytes), (const char *)text);
}

static bool unk_parse(struct json_file *file, struct hf_model *model)
{
    model->unk = NULL;
    return json_kind(&file->scan) == JSON_NULL ? json_null(&file->scan)
                                               : json_file_text(file, &model->unk, &model->unk_bytes);
}

/* Refuses fields that only other models have. Old files lack "type", so their model is recognized by its fields. */
static bool other_model(struct json_file *file, const struct json_string *name)
{
    static const char *const fields[] = {"unk_id", "max_input_chars_per_word"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (json_name_is(name, fields[i]))
            return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "the field model.%s shows that this is a %s model; "
                                    "tokmap can only read BPE models", fields[i], i ? "WordPiece" : "Unigram");
    return true;
}

static bool member_parse(struct json_file *file, struct hf_model *model, const struct json_string *name,
                        struct json_scan *merges)
{
    if (json_name_is(name, "type"))
        return type_parse(file);
    if (json_name_is(name, "dropout"))
        return dropout_parse(file);
    if (json_name_is(name, "unk_token"))
        return unk_parse(file, model);
    if (json_name_is(name, "continuing_subword_prefix"))
        return empty_parse(file, "continuing_subword_prefix");
    if (json_name_is(name, "end_of_word_suffix"))
        return empty_parse(file, "end_of_word_suffix");
    if (json_name_is(name, "fuse_unk"))
        return json_file_flag(file, false, &model->fuse_unk);
    if (json_name_is(name, "byte_fallback"))
        return json_file_flag(file, false, &model->byte_fallback);
    if (json_name_is(name, "ignore_merges"))
        return json_file_flag(file, false, &model->ignore_merges);
    if (json_name_is(name, "vocab") && json_kind(&file->scan) == JSON_ARRAY)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "model.vocab is an array, so this is a Unigram model; "
                                "tokmap can only read BPE models");
    if (json_name_is(name, "vocab"))
        return hf_vocabulary_parse(file, &model->vocabulary, "model.vocab");
    if (json_name_is(name, "merges")) {
        if (merges->start)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the file has model.merges twice; it is damaged");
        *merges = file->scan;
        return model->vocabulary.by_id ? merges_parse(file, model) : json_skip(&file->scan);
    }
    return other_model(file, name) && json_skip(&file->scan);
}

bool hf_model_parse(struct json_file *file, struct hf_model *model)
{
    struct json_string name;
    struct json_scan merges = {0};
    if (!json_enter_object(&file->scan))
        return false;
    bool before = false; /* the merges come before the vocabulary, without which they cannot be parsed */
    while (json_member(&file->scan, &name)) {
        if (!member_parse(file, model, &name, &merges))
            return false;
        before |= merges.start && !model->vocabulary.by_id;
    }
    if (file->scan.fault.reason)
        return false;
    if (!model->vocabulary.by_id || !model->vocabulary.count)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.vocab is missing or empty; the file is incomplete");
    if (!merges.start)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "model.merges is missing; either the model is not BPE, or the file is incomplete");
    if (before) {
        const struct json_scan end = file->scan;
        file->scan = merges;
        if (!merges_parse(file, model))
            return false;
        file->scan = end;
    }
    return true;
}
