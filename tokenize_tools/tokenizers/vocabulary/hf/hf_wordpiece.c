/* SPDX-License-Identifier: MIT */
/*
 * hf_wordpiece.c - parses the models, and joins them with the parts around them.
 *
 * Nearly all such files have a BertNormalizer and a BertPreTokenizer, which the engine does in one pass over the text
 * (wp_characters.h). Files with other parts keep them, and the engine encodes each piece.
 */
#include "hf_wordpiece.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "hf_join.h"
#include "words/wp_encode.h"

/* ---- the model ---- */

enum { FIELD_UNKNOWN = 1, FIELD_PREFIX = 2, FIELD_MOST = 4, FIELD_VOCABULARY = 8 };

static bool most_parse(struct json_file *file, uint64_t *most)
{
    const struct json_scan start = file->scan;
    if (json_unsigned(&file->scan, most))
        return true;
    file->scan = start;
    return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                            "model.max_input_chars_per_word must be a whole number from 0 to %" PRIu64, UINT64_MAX);
}

static bool member_parse(struct json_file *file, const struct json_string *name, struct hf_model *model,
                         struct hf_words *words, uint32_t *seen)
{
    static const char *const names[] = {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"};
    uint32_t field = 0;
    while (field < 4 && !json_name_is(name, names[field]))
        field++;
    if (field == 4)
        return json_skip(&file->scan);
    if (*seen >> field & 1)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "the file has model.%s twice; it is damaged", names[field]);
    *seen |= 1u << field;
    switch (1u << field) {
    case FIELD_UNKNOWN:
        return json_file_text(file, &model->unk, &model->unk_bytes);
    case FIELD_PREFIX:
        return json_file_text(file, &words->prefix, &words->prefix_bytes);
    case FIELD_MOST:
        return most_parse(file, &words->characters_most);
    case FIELD_VOCABULARY:
    default:
        return hf_vocabulary_parse(file, &model->vocabulary, "model.vocab");
    }
}

bool hf_words_parse(struct json_file *file, enum hf_model_kind kind, struct hf_model *model, struct hf_words *words)
{
    const uint32_t wanted = kind == HF_WORDPIECE ? FIELD_UNKNOWN | FIELD_PREFIX | FIELD_MOST | FIELD_VOCABULARY
                                                 : FIELD_UNKNOWN | FIELD_VOCABULARY;
    struct json_string name;
    uint32_t seen = 0;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);)
        if (!member_parse(file, &name, model, words, &seen))
            return false;
    if (file->scan.fault.reason)
        return false;
    const uint32_t lacks = wanted & ~seen;
    if (lacks)
        return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.%s is missing; the file is incomplete",
                                lacks & FIELD_UNKNOWN  ? "unk_token"
                                : lacks & FIELD_PREFIX ? "continuing_subword_prefix"
                                : lacks & FIELD_MOST   ? "max_input_chars_per_word"
                                                       : "vocab");
    if (kind == HF_WORD_LEVEL)
        *words = (struct hf_words){.characters_most = UINT64_MAX};
    return model->vocabulary.count ||
           json_file_refuse(file, TOKMAP_ERROR_FORMAT, "model.vocab is empty, so the model has no tokens");
}

/* Returns whether a normalizer is a BertNormalizer, and sets its switches: its steps are some of those that one has, in
 * their order. */
static bool rules_find(const struct normalizer *normalizer, struct wp_rules *rules)
{
    const struct normalizer_step *step = normalizer->steps, *end = step + normalizer->count;
    *rules = (struct wp_rules){false};
    if (step < end && step->kind == NORMALIZE_BERT_CLEAN)
        rules->clean = ++step;
    if (step < end && step->kind == NORMALIZE_BERT_CHINESE)
        rules->chinese = ++step;
    if (end - step >= 2 && step[0].kind == NORMALIZE_NFD && step[1].kind == NORMALIZE_BERT_MARKS)
        rules->strip = step += 2;
    if (step < end && step->kind == NORMALIZE_LOWER)
        rules->lower = ++step;
    return step == end;
}

/* ---- joining ---- */

/* Returns whether the pieces are those of a BertPreTokenizer, which hf_splits_parse() has made two steps. */
static bool is_bert(const struct hf_splits *splits)
{
    return splits->count == 2 && splits->steps[0].kind == HF_WHITESPACE_SPLIT &&
           splits->steps[1].kind == HF_PUNCTUATION && splits->steps[1].behavior == SPLIT_ISOLATED;
}

/* Returns the hash of the model. */
static struct hash128 hash_source(const struct wp_source *source)
{
    static const char what[] = "tokmap words 1";
    const uint64_t fields[] = {source->vocabulary, source->unknown, source->prefix != NULL, source->prefix_bytes,
                               source->characters_most};
    const struct hash_part parts[] = {{what, sizeof what},
                                      {fields, sizeof fields},
                                      {source->prefix ? source->prefix : (const uint8_t *)what, source->prefix_bytes},
                                      {source->offsets, ((size_t)source->vocabulary + 1) * sizeof *source->offsets},
                                      {source->bytes, source->offsets[source->vocabulary]}};
    return hash128_parts(parts, sizeof parts / sizeof parts[0]);
}

bool hf_words_join(struct json_file *file, struct hf_model *model, const struct hf_words *words,
                   const struct hf_splits *splits, struct pipeline_parts *parts)
{
    struct wp_rules rules;
    struct wp_source source = {.path = file->path,
                               .vocabulary = parts->vocabulary,
                               .prefix = words->prefix,
                               .prefix_bytes = words->prefix_bytes,
                               .characters_most = words->characters_most};
    uint8_t *bytes = NULL;
    uint32_t *offsets = NULL;
    assert(!parts->engine && parts->vocabulary >= model->vocabulary.ids);
    file->scan.at = file->scan.end; /* failures concern the file as a whole */
    source.unknown = text_table_find(&model->vocabulary, model->unk, (uint32_t)model->unk_bytes);
    if (source.unknown == TEXT_NONE && (source.vocabulary == 65536 || source.vocabulary > BPE_IDS - 2))
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "model.unk_token is '%.*s', which model.vocab lacks; add it to the vocabulary",
                                shown(model->unk_bytes), (const char *)model->unk);
    parts->engine_raw = is_bert(splits) && rules_find(&parts->normalizer, &rules);
    (void)snprintf(parts->scanner, sizeof parts->scanner, "%s",
                   parts->engine_raw ? "words and punctuation as in BERT" : "step by step");
    if (hf_pretokenizer_steps(file, splits, parts) && hf_texts_make(file, model, parts->vocabulary, &bytes, &offsets) &&
        hf_texts_empty(file, model, parts)) {
        source.bytes = bytes;
        source.offsets = offsets;
        text_table_free(&model->vocabulary); /* its texts have been copied, and a large one takes much memory */
        hash128_store(hash_source(&source), parts->fingerprint);
        file->status = wp_engine_new(&parts->engine, &source, parts->engine_raw ? &rules : NULL, file->error);
        if (!file->status)
            file->status = hf_fingerprint(parts, splits, NULL, file->error);
    }
    hf_texts_end(parts, !file->status, bytes, offsets);
    return !file->status;
}
