/* SPDX-License-Identifier: MIT */
/* hf_bpe_words.c - see hf_bpe_words.h. */
#include "hf_bpe_words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "hf_characters.h"
#include "hf_join.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary/byte_level.h"

int hf_byte_lacking(const struct text_table *vocabulary, struct bpe_affix prefix, struct bpe_affix suffix)
{
    uint8_t text[1024];
    for (int byte = 0; byte < 256; byte++)
        for (int place = 0; place < 4; place++) {
            size_t used = place & 1 ? prefix.bytes : 0;
            if (used)
                memcpy(text, prefix.text, used);
            used += code_point_put(text + used, byte_character((uint8_t)byte));
            if (place & 2 && suffix.bytes) {
                memcpy(text + used, suffix.text, suffix.bytes);
                used += suffix.bytes;
            }
            if (text_table_find(vocabulary, text, (uint32_t)used) == TEXT_NONE)
                return byte;
        }
    return -1;
}

/* Returns whether some characters without a token become the tokens of their bytes, and others do not. *any: whether
 * some byte has a token. */
static bool bytes_depend(const struct hf_model *model, bool *any)
{
    bool lacks = false;
    *any = false;
    for (unsigned byte = 0; byte < 0xF5; byte++) { /* in UTF-8, no byte is higher */
        char name[8];
        const uint8_t text = (uint8_t)byte;
        (void)snprintf(name, sizeof name, "<0x%02X>", byte);
        if (text_table_find(&model->vocabulary, (const uint8_t *)name, 6) != TEXT_NONE)
            *any = true;
        else if (byte < 0x80 ? text_table_find(&model->vocabulary, &text, 1) == TEXT_NONE
                             : byte != 0xC0 && byte != 0xC1)
            lacks = true;
    }
    return lacks;
}

bool hf_bpe_words_wanted(const struct hf_model *model, const struct hf_splits *splits, bool mapped, bool marks)
{
    bool any = false, depend;
    if (model->prefix.bytes || model->suffix.bytes)
        return true;
    if (mapped)
        return (model->unk || model->ignore_merges) && !model->byte_fallback &&
               hf_byte_lacking(&model->vocabulary, model->prefix, model->suffix) >= 0;
    for (uint32_t i = 0; i < splits->count; i++)
        marks = marks && !(splits->steps[i].kind == HF_METASPACE && splits->steps[i].split);
    depend = model->byte_fallback && bytes_depend(model, &any);
    return (depend && any) || (!any && !model->unk) || (model->ignore_merges && !marks);
}

/* Returns the hash of the model. */
static struct hash128 hash_words(const struct bpe_words_source *source)
{
    static const char what[] = "tokmap words bpe 1";
    const uint32_t fields[] = {source->vocabulary,   source->merge_count,  source->unk,
                               source->prefix.bytes, source->fuse_unk,     source->byte_fallback,
                               source->whole,        source->suffix.bytes, source->mapped};
    const uint8_t *names = source->names ? source->names : source->bytes;
    const uint32_t *offsets = source->names ? source->name_offsets : source->offsets;
    const struct hash_part parts[] = {{what, sizeof what},
                                      {fields, sizeof fields},
                                      {source->prefix.text, source->prefix.bytes},
                                      {source->suffix.text, source->suffix.bytes},
                                      {offsets, ((size_t)source->vocabulary + 1) * sizeof *offsets},
                                      {names, offsets[source->vocabulary]},
                                      {source->merges, (size_t)source->merge_count * sizeof *source->merges}};
    return hash128_parts(parts, sizeof parts / sizeof parts[0]);
}

/* Gives the file's decoder a copy of the texts as the file spells them. */
static bool decoder_texts(struct json_file *file, const struct hf_model *model, struct pipeline_parts *parts)
{
    struct text_decoder *decoder = &parts->decoder;
    if (!parts->decoder_given)
        return true;
    decoder->vocabulary = parts->vocabulary;
    return hf_texts_make(file, model, parts->vocabulary, &decoder->texts, &decoder->offsets);
}

/* Refuses what the engine cannot reproduce, and finds the unknown token. */
static bool unknown_find(struct json_file *file, const struct hf_model *model, bool mapped, uint32_t *unk)
{
    const int lacking = mapped ? hf_byte_lacking(&model->vocabulary, model->prefix, model->suffix) : 0;
    *unk = BPE_NONE;
    if (mapped && model->byte_fallback && lacking >= 0)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED, BYTE_LEVEL_FALLBACK, (unsigned)lacking);
    if (!model->unk)
        return true;
    *unk = text_table_find(&model->vocabulary, model->unk, (uint32_t)model->unk_bytes);
    return *unk != BPE_NONE || lacking < 0 ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                            "model.unk_token is '%.*s', which the vocabulary lacks, so the reference fails on texts "
                            "with a character that has no token; add the token, or set the field to null",
                            shown(model->unk_bytes), (const char *)model->unk);
}

bool hf_bpe_words_join(struct json_file *file, struct hf_model *model, const struct hf_splits *splits, bool mapped,
                       struct pipeline_parts *parts)
{
    static const struct bpe_merge no_merges[1];
    struct bpe_words_source source = {.path = file->path,
                                      .vocabulary = parts->vocabulary,
                                      .merges = model->merges ? model->merges : no_merges,
                                      .merge_count = model->merge_count,
                                      .prefix = model->prefix,
                                      .suffix = model->suffix,
                                      .fuse_unk = model->fuse_unk,
                                      .byte_fallback = model->byte_fallback && !mapped,
                                      .whole = model->ignore_merges,
                                      .mapped = mapped,
                                      .front = !mapped && hf_characters_front(&parts->normalizer, splits)};
    assert(!parts->engine && parts->vocabulary >= model->vocabulary.ids);
    file->scan.at = file->scan.end; /* failures concern the file as a whole */
    if (!unknown_find(file, model, mapped, &source.unk) ||
        !(mapped ? hf_pretokenizer_build(file, splits, parts, NULL) : hf_pretokenizer_steps(file, splits, parts)))
        return false;
    if (!mapped)
        (void)snprintf(parts->scanner, sizeof parts->scanner, "%s", splits->count ? "step by step" : "not split");
    bool good = true;
    if (mapped) {
        file->status = byte_level_texts(parts, model, file->path, &source.bytes, &source.offsets, file->error);
        good = !file->status && hf_texts_make(file, model, parts->vocabulary, &source.names, &source.name_offsets);
        hf_decoder_of_bytes(parts);
    } else {
        good = hf_texts_make(file, model, parts->vocabulary, &source.bytes, &source.offsets) &&
               decoder_texts(file, model, parts) && hf_texts_empty(file, model, parts);
    }
    if (!good) {
        free(source.bytes);
        free(source.offsets);
        free(source.names);
        free(source.name_offsets);
        return false;
    }
    hash128_store(hash_words(&source), parts->fingerprint);
    text_table_free(&model->vocabulary); /* its texts have been copied, and a large one takes much memory */
    file->status = bpe_words_new(&parts->engine, &source, file->error);
    parts->ids_per_byte_most = 1;
    if (!file->status)
        file->status = hf_fingerprint(parts, splits, NULL, file->error);
    return !file->status;
}
