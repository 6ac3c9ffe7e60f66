/* SPDX-License-Identifier: MIT */
/*
 * hf_characters.c - the mark is U+2581, which such models use in place of a space.
 *
 * Example of a plain file (Llama 2): the normalizer prepends the mark and replaces every space by it. "a b" becomes
 * "(mark)a(mark)b". The engine does the same by itself while it reads the text (sp_source: prefix and escape), which
 * saves a pass and a copy. Files that do something else keep their normalizer and pre-tokenizer, and the engine encodes
 * each piece as it is.
 */
#include "hf_characters.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "hf_join.h"
#include "sentencepiece/sp_engine.h"

static const char mark[] = "\xE2\x96\x81";
#define MARK 0x2581

static bool is_text(const uint8_t *bytes, size_t count, const char *text)
{
    return count == strlen(text) && !memcmp(bytes, text, count);
}

/* Plain normalizers do nothing, or replace spaces by the mark and perhaps prepend the mark (or a space, if the
 * replacement comes after). */
static bool normalizer_plain(const struct normalizer *normalizer)
{
    bool prepends = false, escapes = false;
    for (uint32_t i = 0; i < normalizer->count; i++) {
        const struct normalizer_step *step = &normalizer->steps[i];
        const bool marks = is_text(step->content, step->content_bytes, mark);
        if (step->kind == NORMALIZE_PREPEND && !prepends &&
            (marks || (!escapes && is_text(step->content, step->content_bytes, " "))))
            prepends = true;
        else if (step->kind == NORMALIZE_REPLACE && !step->regex && !escapes && marks &&
                 is_text(step->pattern, step->pattern_bytes, " "))
            escapes = true;
        else
            return false;
    }
    return escapes || !prepends;
}

/* Sets the prefix and the escape of the engine from a plain normalizer, before or after hf_characters_spaces. */
static void normalizer_read(const struct normalizer *normalizer, struct sp_source *source)
{
    source->prefix = SP_PREFIX_NEVER;
    for (uint32_t i = 0; i < normalizer->count; i++)
        if (normalizer->steps[i].kind == NORMALIZE_PREPEND)
            source->prefix = SP_PREFIX_ALWAYS;
        else
            source->escape = true;
}

/* If added tokens are searched for in normalized text, the normalizer must run before the engine, which reads text
 * with spaces faster than text with marks. A plain normalizer leaves no spaces, and its marks stand for spaces only.
 * So the normalizer can make spaces where the file says marks, in texts and in tokens alike. The exception are
 * tokens that strip spaces, because they do not strip marks. */
bool hf_characters_spaces(struct normalizer *normalizer, const struct added_token *added, uint32_t count)
{
    if (!normalizer->count)
        return true;
    for (uint32_t i = 0; i < count; i++)
        if (added[i].normalized && (added[i].lstrip || added[i].rstrip))
            return true;
    for (uint32_t i = 0; i < normalizer->count; i++) {
        struct normalizer_step *step = &normalizer->steps[i];
        uint8_t *content = malloc(1), *pattern = malloc(3);
        if (!content || !pattern) {
            free(content);
            free(pattern);
            return false;
        }
        free(step->content);
        free(step->pattern);
        content[0] = ' ';
        memcpy(pattern, mark, 3);
        step->content = content;
        step->content_bytes = 1;
        step->pattern = pattern;
        step->pattern_bytes = 3;
    }
    return true;
}

/* Sets the fields of the engine that follow from the pre-tokenizer. Returns false if it is not plain. */
static bool splits_read(const struct hf_splits *splits, struct sp_source *source)
{
    for (uint32_t i = 0; i < splits->count; i++) {
        const struct hf_split *step = &splits->steps[i];
        /* Gemma splits at spaces after all of them were replaced: this step does nothing. */
        if (step->kind == HF_SPLIT && !step->is_regex && step->pattern_bytes == 1 && step->pattern[0] == ' ' &&
            source->escape && !(step->behavior == SPLIT_REMOVED && step->invert))
            continue;
        if (step->kind != HF_METASPACE || step->replacement != MARK || splits->count > 1 || source->escape ||
            source->prefix != SP_PREFIX_NEVER)
            return false;
        source->escape = true;
        source->split = step->split;
        source->prefix = step->prepend == HF_PREPEND_ALWAYS  ? SP_PREFIX_UNLESS
                         : step->prepend == HF_PREPEND_FIRST ? SP_PREFIX_FIRST
                                                             : SP_PREFIX_NEVER;
    }
    return true;
}

bool hf_characters_plain(const struct normalizer *normalizer, const struct hf_splits *splits)
{
    struct sp_source source = {.escape = false};
    if (!normalizer_plain(normalizer))
        return false;
    normalizer_read(normalizer, &source);
    return splits_read(splits, &source);
}

bool hf_characters_front(const struct normalizer *normalizer, const struct hf_splits *splits)
{
    for (uint32_t i = 0; i < normalizer->count; i++) {
        const struct normalizer_step *step = &normalizer->steps[i];
        if (step->kind == NORMALIZE_PREPEND &&
            (is_text(step->content, step->content_bytes, mark) || is_text(step->content, step->content_bytes, " ")))
            return true;
    }
    for (uint32_t i = 0; i < splits->count; i++)
        if (splits->steps[i].kind == HF_METASPACE && splits->steps[i].prepend != HF_PREPEND_NEVER)
            return true;
    return false;
}

/* Returns whether the normalizer must run before the engine, because added tokens are searched for in its result. */
static bool normalized_first(const struct pipeline_parts *parts)
{
    return parts->normalizer.count && added_tokens_any(parts->added, ADDED_NORMALIZED, true);
}

/* Returns the hash of the model. */
static struct hash128 hash_source(const struct sp_source *source)
{
    const uint32_t fields[] = {source->vocabulary,    source->merge_count, source->unk,
                               source->byte_fallback, source->fuse_unk,    source->ignore_merges,
                               source->escape,        source->split,       (uint32_t)source->prefix};
    static const char what[] = "tokmap characters bpe 1";
    const struct hash_part parts[] = {{what, sizeof what},
                                      {fields, sizeof fields},
                                      {source->offsets, ((size_t)source->vocabulary + 1) * sizeof *source->offsets},
                                      {source->bytes, source->offsets[source->vocabulary]},
                                      {source->merges, (size_t)source->merge_count * sizeof *source->merges}};
    return hash128_parts(parts, sizeof parts / sizeof parts[0]);
}

/* Sets what the engine must know about the normalizer and the pre-tokenizer, and adds the steps that it does not
 * perform to the pretokenizer. Returns false if a step is refused. */
static bool source_fill(struct json_file *file, const struct hf_splits *splits, bool plain, struct sp_source *source,
                        struct pipeline_parts *parts)
{
    if (!plain) {
        source->prefix = SP_PREFIX_NEVER;
        source->front = hf_characters_front(&parts->normalizer, splits);
        (void)snprintf(parts->scanner, sizeof parts->scanner, "%sbetween characters that no token joins",
                       splits->count ? "step by step, then " : "");
        return hf_pretokenizer_steps(file, splits, parts);
    }
    normalizer_read(&parts->normalizer, source);
    (void)splits_read(splits, source);
    source->front = source->prefix != SP_PREFIX_NEVER;
    (void)snprintf(parts->scanner, sizeof parts->scanner, "between characters that no token joins");
    return true;
}

bool hf_characters_join(struct json_file *file, struct hf_model *model, const struct hf_splits *splits, bool plain,
                        struct pipeline_parts *parts)
{
    static const struct bpe_merge no_merges[1];
    struct sp_source source = {.path = file->path,
                               .vocabulary = parts->vocabulary,
                               .merge_count = model->merge_count,
                               .merges_checked = true,
                               .fuse_unk = model->fuse_unk,
                               .byte_fallback = model->byte_fallback,
                               .ignore_merges = model->ignore_merges};
    uint8_t *bytes = NULL;
    uint32_t *offsets = NULL;
    assert(!parts->engine && parts->vocabulary >= model->vocabulary.ids);
    file->scan.at = file->scan.end; /* failures concern the file as a whole */
    source.merges = model->merges ? model->merges : no_merges;
    source.unk = model->unk ? text_table_find(&model->vocabulary, model->unk, (uint32_t)model->unk_bytes) : BPE_NONE;
    if (!source_fill(file, splits, plain, &source, parts))
        return false;
    if (hf_texts_make(file, model, parts->vocabulary, &bytes, &offsets) && hf_texts_empty(file, model, parts)) {
        source.bytes = bytes;
        source.offsets = offsets;
        hash128_store(hash_source(&source), parts->fingerprint);
        text_table_free(&model->vocabulary); /* its texts have been copied, and a large one takes much memory */
        if (plain && normalized_first(parts))
            source.prefix = source.prefix == SP_PREFIX_ALWAYS ? SP_PREFIX_NEVER : source.prefix;
        else if (plain)
            normalizer_free(&parts->normalizer);
        file->status = sp_engine_new(&parts->engine, &source, file->error);
        parts->ids_per_byte_most = 2;
        parts->engine_cuts = true;
    }
    hf_texts_end(parts, !file->status, bytes, offsets);
    if (!file->status)
        file->status = hf_fingerprint(parts, splits, NULL, file->error);
    return !file->status;
}
