/* SPDX-License-Identifier: MIT */
/*
 * bpe_kinds.c - each kind is what transformers (5.23) converts two such files to: its parts are written here as its
 * tokenizer.json would have them, and the readers of that format parse them. The decoder of CLIP is not the one of its
 * tokenizer.json, which leaves each suffix in the text, but that of its class.
 */
#include "bpe_kinds.h"

#include <assert.h>
#include <string.h>

#include "common/error.h"
#include "engine/pipeline.h"
#include "vocabulary/hf/hf_bpe_words.h"
#include "vocabulary/hf/hf_decoder.h"

#define BERT_WORDS                                                                                                     \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}"
#define GUESSED "the files do not say how text is split and normalized, which is done here as "
#define NAME_IT "; if the vocabulary is of another kind, name its tokenizer.json"

const struct bpe_kind bpe_kind_clip = {
    .class_name = "CLIPTokenizer",
    .suffix = "</w>",
    .unk = "<|endoftext|>",
    .specials = {"<|startoftext|>", "<|endoftext|>"},
    .eod = "<|endoftext|>",
    .bos = "<|startoftext|>",
    .mapped = true,
    .parts = "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Replace\","
             "\"pattern\":{\"Regex\":\"\\\\s+\"},\"content\":\" \"},{\"type\":\"Lowercase\"}]},"
             "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
             "\"<\\\\|startoftext\\\\|>|<\\\\|endoftext\\\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{N}]|"
             "[^\\\\s\\\\p{L}\\\\p{N}]+\"},\"behavior\":\"Removed\",\"invert\":true},"
             "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}]},"
             "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"},{\"type\":\"Replace\","
             "\"pattern\":{\"String\":\"</w>\"},\"content\":\" \"},{\"type\":\"Strip\",\"content\":\" \",\"start\":0,"
             "\"stop\":1}]}}",
    .note = GUESSED "CLIP does" NAME_IT};

static const struct bpe_kind gpt1 = {
    .class_name = "OpenAIGPTTokenizer",
    .suffix = "</w>",
    .unk = "<unk>",
    .specials = {"<unk>"},
    .parts = "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
             "\"strip_accents\":null,\"lowercase\":true}," BERT_WORDS "}",
    .note = GUESSED "OpenAI's GPT-1 does (lower case, words as in BERT)" NAME_IT};

static const struct bpe_kind herbert = {
    .class_name = "HerbertTokenizer",
    .suffix = "</w>",
    .unk = "<unk>",
    .specials = {"<s>", "</s>", "<unk>", "<pad>", "<mask>"},
    .eod = "</s>",
    .bos = "<s>",
    .parts = "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
             "\"strip_accents\":false,\"lowercase\":false}," BERT_WORDS "}",
    .note = GUESSED "HerBERT does (letters keep their case, words as in BERT)" NAME_IT};

const struct bpe_kind *bpe_kind_of_class(const struct config_text *name)
{
    static const struct bpe_kind *const kinds[] = {&bpe_kind_clip, &gpt1, &herbert};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (config_class_is(name, kinds[i]->class_name))
            return kinds[i];
    return NULL;
}

/* Counts marks: a vocabulary that marks the ends of words has about as many tokens with the mark as without; but "</w>"
 * may be a token of any vocabulary. */
const struct bpe_kind *bpe_kind_of_vocabulary(const struct text_table *vocabulary)
{
    const struct bpe_affix none = {NULL, 0}, suffix = {(const uint8_t *)"</w>", 4};
    uint32_t marked = 0;
    bool upper = false;
    for (uint32_t i = 0; i < vocabulary->count; i++) {
        const struct text_entry *entry = &vocabulary->entries[i];
        marked += entry->bytes > 4 && !memcmp(entry->text + entry->bytes - 4, "</w>", 4);
        upper |=
            entry->bytes == 5 && entry->text[0] >= 'A' && entry->text[0] <= 'Z' && !memcmp(entry->text + 1, "</w>", 4);
    }
    if (marked < vocabulary->count / 8 + 1)
        return NULL;
    return hf_byte_lacking(vocabulary, none, suffix) < 0 ? &bpe_kind_clip : upper ? &herbert : &gpt1;
}

/* ---- making the engine ---- */

static uint32_t find(const struct hf_model *model, const char *text)
{
    _Static_assert(TEXT_NONE == PIPELINE_NO_ID, "a token that the vocabulary lacks must be no id");
    return text ? text_table_find(&model->vocabulary, (const uint8_t *)text, (uint32_t)strlen(text)) : TEXT_NONE;
}

bool bpe_kind_specials(struct json_file *file, const struct bpe_kind *kind, const struct hf_model *model,
                       struct pipeline_parts *parts)
{
    struct special_list list = {0};
    for (size_t i = 0; i < BPE_KIND_SPECIALS && kind->specials[i] && !file->status; i++) {
        const uint32_t id = find(model, kind->specials[i]);
        if (id != TEXT_NONE)
            file->status = special_list_add(&list, kind->specials[i], strlen(kind->specials[i]), id, file->error);
    }
    if (!file->status)
        file->status = added_tokens_new(&parts->added, list.tokens, list.count, file->path, file->error);
    special_list_free(&list);
    parts->vocabulary = model->vocabulary.ids;
    parts->eod = find(model, kind->eod);
    parts->bos = find(model, kind->bos);
    return !file->status;
}

/* Parses the texts of a kind. A fault is one of this file. */
static bool parts_parse(struct json_file *own, struct hf_splits *splits, struct pipeline_parts *parts)
{
    struct json_string name;
    bool good = json_enter_object(&own->scan);
    while (good && json_member(&own->scan, &name))
        good = json_name_is(&name, "normalizer")      ? hf_normalizer_parse(own, &parts->normalizer)
               : json_name_is(&name, "pre_tokenizer") ? hf_splits_parse(own, splits)
                                                      : hf_decoder_parse(own, parts);
    return good && json_end(&own->scan);
}

bool bpe_kind_join(struct json_file *file, const struct bpe_kind *kind, struct hf_model *model,
                   struct pipeline_parts *parts)
{
    struct json_file own = {0};
    struct hf_splits splits = {.count = 0};
    bool good = json_file_begin(&own, file->path, kind->parts, strlen(kind->parts), file->error) &&
                parts_parse(&own, &splits, parts);
    if (!good)
        file->status = json_file_status(&own);
    model->suffix = (struct bpe_affix){(const uint8_t *)kind->suffix, (uint32_t)strlen(kind->suffix)};
    model->unk = (const uint8_t *)kind->unk;
    model->unk_bytes = strlen(kind->unk);
    good = good && bpe_kind_specials(file, kind, model, parts) &&
           hf_bpe_words_join(file, model, &splits, kind->mapped, parts);
    json_file_end(&own);
    return good;
}
