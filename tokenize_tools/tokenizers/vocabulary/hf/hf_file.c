/* SPDX-License-Identifier: MIT */
/*
 * hf_file.c - parses the file from front to back, then joins its parts.
 *
 * The ids that "added_tokens" lists are not used. The reference ignores them, too: an added token that the model
 * contains gets the model's id, any other gets the next number after the model's count of tokens.
 *
 * A byte-level file of BPE is recognized by its ByteLevel step. In every other file the BPE merges characters
 * (hf_engines.h).
 */
#include "hf_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "hf_engines.h"
#include "hf_frame.h"
#include "hf_join.h"
#include "hf_model.h"
#include "hf_parts.h"
#include "vocabulary/byte_level.h"
#include "vocabulary/vocabulary_file.h"

#define ADDED_MOST (1u << 20)               /* entries of "added_tokens" */
#define NORMALIZED_FREE (UINT64_C(4) << 20) /* see normalized_most() */

struct reading {
    struct json_file file;
    enum hf_model_kind kind;
    uint32_t refused; /* kinds: see struct hf_text */
    struct hf_model model;
    struct hf_unigram unigram;
    struct hf_words words; /* of WordPiece */
    struct hf_splits splits;
    struct hf_frame frame;
    struct special_list added;
    struct pipeline_parts parts;
    uint32_t seen; /* bit i: the field number i of field_parse was parsed */
    bool by_words; /* see hf_bpe_words_wanted() */
    bool ignores_truncation, ignores_padding;
};

/* ---- added tokens ---- */

struct added_fields {
    struct added_token token;
    uint32_t given; /* bit i: the field number i of added_member was parsed */
};

static bool added_member(struct json_file *file, const struct json_string *name, struct added_fields *fields)
{
    struct added_token *token = &fields->token;
    static const char *const names[] = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"};
    bool *const flags[] = {
        NULL, NULL, &token->single_word, &token->lstrip, &token->rstrip, &token->normalized, &token->special};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!json_name_is(name, names[i]))
            continue;
        if (fields->given >> i & 1)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "added_tokens: a token has the field %s twice; the file is damaged", names[i]);
        fields->given |= 1u << i;
        uint64_t id;
        size_t bytes;
        if (i == 0)
            return json_unsigned(&file->scan, &id) &&
                   (id <= UINT32_MAX ||
                    json_file_refuse(file, TOKMAP_ERROR_FORMAT, "added_tokens: the id %llu does not fit 32 bits",
                                     (unsigned long long)id));
        if (i > 1)
            return json_bool(&file->scan, flags[i]);
        if (!json_file_text(file, &token->text, &bytes))
            return false;
        token->bytes = (uint32_t)bytes;
        return bytes <= UINT16_MAX ||
               json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "added_tokens: a token of %zu bytes is too long; the limit is %u bytes", bytes,
                                UINT16_MAX);
    }
    return json_skip(&file->scan);
}

static bool added_parse(struct reading *reading)
{
    struct json_file *file = &reading->file;
    struct json_string name;
    for (json_enter_array(&file->scan); json_element(&file->scan);) {
        struct added_fields fields;
        memset(&fields, 0, sizeof fields);
        for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
            if (!added_member(file, &name, &fields))
                return false;
        if (file->scan.fault.reason)
            return false;
        if (fields.given != 127)
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                    "added_tokens: a token lacks one of the fields id, "
                                    "content, single_word, lstrip, rstrip, normalized, special");
        if (reading->added.count == ADDED_MOST)
            return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                    "added_tokens has more than %u tokens, which is the most that tokmap can read; "
                                    "remove some from the file",
                                    ADDED_MOST);
        file->status = special_list_add(&reading->added, NULL, 0, 0, file->error);
        if (file->status)
            return false;
        reading->added.tokens[reading->added.count - 1] = fields.token;
    }
    return !file->scan.fault.reason;
}

/* Returns the most bytes that the normalizer may make of all added tokens. Otherwise a short file could need memory
 * without limit: Replace "a" by 60,000 bytes, and tokens of many a's. */
static uint64_t normalized_most(const struct json_file *file)
{
    return (uint64_t)(file->scan.end - file->scan.start) / 2 + NORMALIZED_FREE;
}

/* Sets *made to the normalized form of a token's text: the text itself, or a copy in the file's memory. */
static void added_normalize(struct reading *reading, struct normalizer_state *state, const struct added_token *token,
                            const uint8_t **made, uint32_t *made_bytes)
{
    struct json_file *file = &reading->file;
    const uint8_t *normal;
    size_t bytes;
    *made = token->text;
    *made_bytes = token->bytes;
    if (!token->normalized || !reading->parts.normalizer.count)
        return;
    file->status = normalizer_run(state, token->text, token->bytes, &normal, &bytes, file->error);
    if (file->status == TOKMAP_ERROR_LIMIT && !state->room)
        file->status = error_set(file->error, TOKMAP_ERROR_LIMIT, file->path, TOKMAP_NO_OFFSET,
                                 "the normalizer would make more than %" PRIu64
                                 " bytes of the added tokens, which is the most for a file of this size; remove added "
                                 "tokens, or set their \"normalized\" to false",
                                 normalized_most(file));
    if (file->status || (normal == token->text && bytes == token->bytes))
        return;
    uint8_t *copy = text_arena_alloc(&file->arena, bytes + 1);
    if (!copy) {
        json_file_memory(file, "added tokens", bytes);
        return;
    }
    memcpy(copy, normal, bytes);
    *made = copy;
    *made_bytes = (uint32_t)bytes;
}

/* Sets what each entry decodes to, or the text that is searched for: of a normalized token its normalized form, as in
 * the reference. */
static bool added_normalize_all(struct reading *reading, bool decoded)
{
    struct json_file *file = &reading->file;
    struct normalizer_state state;
    file->status = normalizer_state_init(&state, &reading->parts.normalizer, file->error);
    state.room = normalized_most(file);
    for (uint32_t i = 0; i < reading->added.count && !file->status; i++) {
        struct added_token *token = &reading->added.tokens[i];
        added_normalize(reading, &state, token, decoded ? &token->decoded : &token->match,
                        decoded ? &token->decoded_bytes : &token->match_bytes);
    }
    normalizer_state_free(&state);
    return !file->status;
}

/* Hides added tokens: where special tokens are left out, the reference leaves out each token whose decoded form is the
 * text of a special token: not a special token that normalization changes. */
static bool added_hidden(struct reading *reading)
{
    struct json_file *file = &reading->file;
    struct text_table specials = {0};
    bool good = true;
    for (uint32_t i = 0; i < reading->added.count && good; i++) {
        const struct added_token *token = &reading->added.tokens[i];
        good = !token->special || text_table_add(&specials, token->text, token->bytes, i) != TEXT_NO_MEMORY;
    }
    for (uint32_t i = 0; i < reading->added.count && good; i++) {
        struct added_token *token = &reading->added.tokens[i];
        token->hidden = text_table_find(&specials, token->decoded, token->decoded_bytes) != TEXT_NONE;
    }
    if (!good)
        file->status =
            error_set_memory(file->error, "added tokens", reading->added.count * sizeof *reading->added.tokens);
    text_table_free(&specials);
    return good;
}

/* Gives added tokens their ids. A text that is listed twice is one token, as in the reference: with the id of its
 * first entry and the flags of its last, and it is special if any of the entries is. It decodes to its normalized form
 * if any of them is normalized. Empty texts are dropped. */
static bool added_number(struct reading *reading)
{
    struct json_file *file = &reading->file;
    struct text_table places = {0};
    uint32_t kept = 0, next = reading->model.vocabulary.count;
    for (uint32_t i = 0; i < reading->added.count && !file->status; i++) {
        struct added_token token = reading->added.tokens[i];
        if (!token.bytes)
            continue;
        const uint32_t place = text_table_find(&places, token.text, token.bytes);
        if (place != TEXT_NONE) {
            token.id = reading->added.tokens[place].id;
            token.special |= reading->added.tokens[place].special;
            if (!token.normalized) {
                token.decoded = reading->added.tokens[place].decoded;
                token.decoded_bytes = reading->added.tokens[place].decoded_bytes;
            }
            reading->added.tokens[place] = token;
            continue;
        }
        const uint32_t id = text_table_find(&reading->model.vocabulary, token.text, token.bytes);
        token.id = id != TEXT_NONE ? id : next++;
        if (text_table_add(&places, token.text, token.bytes, kept) != TEXT_ADDED)
            file->status = error_set_memory(file->error, "added tokens", (kept + (uint64_t)1) * 2 * sizeof token);
        reading->added.tokens[kept++] = token;
    }
    reading->added.count = kept;
    text_table_free(&places);
    if (!file->status && next > BPE_IDS)
        json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                         "added_tokens: the largest id would be %u, but the largest that "
                         "tokmap can read is %u",
                         next - 1, BPE_IDS - 1);
    return !file->status;
}

/* Refuses an added token whose number is the id of another token. New numbers begin at the count of the model's
 * tokens, so this happens where the ids of the model have holes. */
static bool added_apart(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->added.count; i++) {
        const struct added_token *token = &reading->added.tokens[i];
        const struct text_entry *entry = text_table_by_id(&reading->model.vocabulary, token->id);
        if (entry && (entry->bytes != token->bytes || memcmp(entry->text, token->text, token->bytes)))
            return json_file_refuse(&reading->file, TOKMAP_ERROR_UNSUPPORTED,
                                    "added_tokens: '%.*s' would get the id %u, "
                                    "which is that of another token, because model.vocab skips ids",
                                    (int)token->bytes, (const char *)token->text, token->id);
    }
    return true;
}

static bool added_build(struct reading *reading)
{
    struct json_file *file = &reading->file;
    if (added_normalize_all(reading, false))
        file->status = added_tokens_new(&reading->parts.added, reading->added.tokens, reading->added.count, file->path,
                                        file->error);
    return !file->status;
}

/* ---- the file ---- */

static bool version_parse(struct json_file *file)
{
    const uint8_t *text;
    size_t bytes;
    if (!json_file_text(file, &text, &bytes))
        return false;
    return (bytes == 3 && !memcmp(text, "1.0", 3)) ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "version is '%.*s'; tokmap can only read version 1.0",
                            shown(bytes), (const char *)text);
}

/* Parses "truncation" or "padding". Both say how one caller of the reference wants its batches; the vocabulary does
 * not depend on them. The encode function of the tokenizers library (0.23) obeys them. transformers (5.23) does not:
 * it switches both off in every call that does not ask for them, so models are trained on ids without either. tokmap
 * ignores both fields, and a note reports that. */
static bool ignored_parse(struct json_file *file, const char *field, bool *ignored)
{
    const enum json_kind kind = json_kind(&file->scan);
    if (kind == JSON_NULL)
        return json_null(&file->scan);
    if (kind != JSON_OBJECT)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "%s must be null or an object; set it to null", field);
    *ignored = true;
    return json_skip(&file->scan);
}

/* Returns the note about ignored fields, or NULL if no field was ignored. */
static const char *ignored_note(bool truncation, bool padding)
{
    if (truncation && padding)
        return "the file's truncation and padding are ignored, as transformers ignores them: documents are neither cut "
               "off nor filled up";
    if (truncation)
        return "the file's truncation is ignored, as transformers ignores it: documents are not cut off";
    if (padding)
        return "the file's padding is ignored, as transformers ignores it: documents are not filled up";
    return NULL;
}

/* Parses "model". Every kind fills reading->model.vocabulary, by which added tokens get their ids. */
static bool model_parse(struct reading *reading)
{
    struct json_file *file = &reading->file;
    if (!hf_model_kind_find(file, &reading->kind))
        return false;
    if (reading->refused >> reading->kind & 1)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, "the model is of another type");
    switch (reading->kind) {
    case HF_BPE:
        return hf_model_parse(file, &reading->model);
    case HF_UNIGRAM:
        return hf_unigram_parse(file, &reading->model, &reading->unigram);
    case HF_WORDPIECE:
    case HF_WORD_LEVEL:
    default:
        return hf_words_parse(file, reading->kind, &reading->model, &reading->words);
    }
}

static bool field_parse(struct reading *reading, const struct json_string *name)
{
    static const char *const names[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                        "pre_tokenizer", "post_processor", "model",   "decoder"};
    struct json_file *file = &reading->file;
    const uint32_t fields = sizeof names / sizeof names[0];
    uint32_t field = 0;
    while (field < fields && !json_name_is(name, names[field]))
        field++;
    if (field < fields && reading->seen >> field & 1)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the file has %s twice; it is damaged", names[field]);
    if (field < fields)
        reading->seen |= 1u << field;
    switch (field) {
    case 0:
        return version_parse(file);
    case 1:
        return ignored_parse(file, "truncation", &reading->ignores_truncation);
    case 2:
        return ignored_parse(file, "padding", &reading->ignores_padding);
    case 3:
        return added_parse(reading);
    case 4:
        return hf_normalizer_parse(file, &reading->parts.normalizer);
    case 5:
        return hf_splits_parse(file, &reading->splits);
    case 6:
        return hf_frame_parse(file, &reading->frame);
    case 7:
        return model_parse(reading);
    case 8:
        return hf_decoder_parse(file, &reading->parts);
    default:
        return json_skip(&file->scan);
    }
}

static bool file_parse(struct reading *reading)
{
    struct json_file *file = &reading->file;
    struct json_string name;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!field_parse(reading, &name))
            return false;
    if (!json_end(&file->scan))
        return false;
    return reading->model.vocabulary.count ||
           json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the field model is missing, so the file is not a tokenizer");
}

/* ---- joining ---- */

static bool is_byte_level(const struct hf_splits *splits)
{
    for (uint32_t i = 0; i < splits->count; i++)
        if (splits->steps[i].kind == HF_BYTE_LEVEL)
            return true;
    return false;
}

static bool bytes_join(struct reading *reading)
{
    struct json_file *file = &reading->file;
    struct split_rules rules;
    if (!hf_pretokenizer_build(file, &reading->splits, &reading->parts, &rules))
        return false;
    file->status = byte_level_build(&reading->parts, &reading->model, &rules, file->path, file->error);
    if (!file->status)
        file->status = hf_fingerprint(&reading->parts, &reading->splits, &rules, file->error);
    hf_decoder_of_bytes(&reading->parts);
    return !file->status;
}

/* Makes the engine and what it needs of the normalizer and the pre-tokenizer. plain: see hf_engines.h. */
static bool engine_join(struct reading *reading, bool plain)
{
    switch (reading->kind) {
    case HF_BPE:
        if (reading->by_words)
            return hf_bpe_words_join(&reading->file, &reading->model, &reading->splits, is_byte_level(&reading->splits),
                                     &reading->parts);
        return is_byte_level(&reading->splits)
                   ? bytes_join(reading)
                   : hf_characters_join(&reading->file, &reading->model, &reading->splits, plain, &reading->parts);
    case HF_UNIGRAM:
        return hf_unigram_join(&reading->file, &reading->model, &reading->unigram, &reading->splits, &reading->parts);
    case HF_WORDPIECE:
    case HF_WORD_LEVEL:
    default:
        return hf_words_join(&reading->file, &reading->model, &reading->words, &reading->splits, &reading->parts);
    }
}

static bool join(struct reading *reading)
{
    struct pipeline_parts *parts = &reading->parts;
    assert(reading->model.vocabulary.indexed);
    static const uint8_t mark[] = {0xE2, 0x96, 0x81};
    const bool mapped = is_byte_level(&reading->splits);
    if (mapped && reading->kind != HF_BPE)
        return json_file_refuse(&reading->file, TOKMAP_ERROR_UNSUPPORTED,
                                "pre_tokenizer.type is 'ByteLevel', which tokmap can only read with a model of the "
                                "type BPE");
    /* Where the reference puts text in at an empty match, it loses count of it, and its ByteLevel fails. */
    for (uint32_t i = 0; mapped && i < parts->normalizer.count; i++)
        if (parts->normalizer.steps[i].regex && regex_may_be_empty(parts->normalizer.steps[i].regex))
            return json_file_refuse(&reading->file, TOKMAP_ERROR_UNSUPPORTED,
                                    "normalizer.Replace.pattern matches the empty text, and the reference fails on "
                                    "that with the pre-tokenizer ByteLevel");
    bool plain = reading->kind == HF_BPE && !mapped &&
                 text_table_find(&reading->model.vocabulary, mark, sizeof mark) != TEXT_NONE &&
                 hf_characters_plain(&parts->normalizer, &reading->splits);
    reading->by_words =
        reading->kind == HF_BPE && hf_bpe_words_wanted(&reading->model, &reading->splits, mapped,
                                                       plain && (parts->normalizer.count || reading->splits.count));
    plain = plain && !reading->by_words;
    if ((parts->decoder_given && !added_normalize_all(reading, true)) || !added_number(reading) ||
        !added_apart(reading) || (parts->decoder_given && !added_hidden(reading)))
        return false;
    if (plain && !hf_characters_spaces(&parts->normalizer, reading->added.tokens, reading->added.count))
        return json_file_memory(&reading->file, "a normalizer", 4);
    if (!added_build(reading))
        return false;
    parts->vocabulary = reading->model.vocabulary.ids;
    for (uint32_t i = 0; i < reading->added.count; i++)
        if (reading->added.tokens[i].id >= parts->vocabulary)
            parts->vocabulary = reading->added.tokens[i].id + 1;
    parts->note = ignored_note(reading->ignores_truncation, reading->ignores_padding);
    parts->bos = reading->frame.before < parts->vocabulary ? reading->frame.before : pipeline_usual_bos(parts->added);
    parts->eod = reading->frame.after < parts->vocabulary ? reading->frame.after : pipeline_usual_eod(parts->added);
    parts->framed_eod = reading->frame.after < parts->vocabulary;
    hf_frame_describe(&reading->frame, parts->frame, sizeof parts->frame);
    return engine_join(reading, plain);
}

bool hf_file_is(const char *text, uint64_t count)
{
    while (count && (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\n')) {
        text++;
        count--;
    }
    return count && *text == '{';
}

enum tokmap_status hf_text_open(struct tokenizer **tokenizer, const struct hf_text *text,
                                const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    assert(text->path && text->text && options);
    *tokenizer = NULL;
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return error_set_memory(error, "reading a vocabulary file", sizeof *reading);
    reading->refused = text->refused;
    reading->frame = (struct hf_frame){.before = PIPELINE_NO_ID, .after = PIPELINE_NO_ID};
    const bool good = json_file_begin(&reading->file, text->path, text->text, (size_t)text->count, error) &&
                      file_parse(reading) && join(reading);
    enum tokmap_status status = json_file_status(&reading->file);
    assert(good == !status);
    reading->parts.form = text->form;
    status = vocabulary_end(tokenizer, status, &reading->parts, text->path, options, error);
    hf_model_free(&reading->model);
    hf_unigram_free(&reading->unigram);
    special_list_free(&reading->added);
    json_file_end(&reading->file);
    free(reading);
    return status;
}

enum tokmap_status hf_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    return hf_text_open(tokenizer, &(struct hf_text){path, text, count, "tokenizer.json", 0}, options, error);
}
