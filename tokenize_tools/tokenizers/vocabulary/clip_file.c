/* SPDX-License-Identifier: MIT */
/* clip_file.c - see clip_file.h. */
#include "clip_file.h"

#include <assert.h>
#include <string.h>

#include "bpe_kinds.h"
#include "common/error.h"
#include "engine/pipeline.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary_name.h"

#define MERGES (49152 - 256 - 2) /* of the file's 262,000 */

static const char first_line[] = "\"bpe_simple_vocab_16e6.txt#version";
static const char suffix[] = "</w>";

bool clip_file_is(const char *text, uint64_t count)
{
    return count >= sizeof first_line - 1 && !memcmp(text, first_line, sizeof first_line - 1);
}

/* Adds a token, whose text is these two parts, with the next id. */
static bool token_add(struct json_file *file, struct hf_model *model, const void *left, size_t left_bytes,
                      const void *right, size_t right_bytes)
{
    uint8_t *text = text_arena_alloc(&file->arena, left_bytes + right_bytes + 1);
    enum text_added added = TEXT_NO_MEMORY;
    if (text) {
        memcpy(text, left, left_bytes);
        memcpy(text + left_bytes, right, right_bytes);
        added = text_table_add(&model->vocabulary, text, (uint32_t)(left_bytes + right_bytes), model->vocabulary.count);
    }
    if (added == TEXT_NO_MEMORY)
        file->status = error_set_memory(file->error, "a vocabulary", left_bytes + right_bytes);
    return added == TEXT_ADDED ||
           (added != TEXT_NO_MEMORY &&
            json_file_refuse(file, TOKMAP_ERROR_FORMAT, "two merges make the same token; the file is damaged"));
}

/* Returns byte number `rank` in the order in which CLIP lists them: those that stand for themselves come first. */
static uint8_t byte_at(uint32_t rank)
{
    for (int others = 0; others < 2; others++)
        for (uint32_t byte = 0; byte < 256; byte++)
            if ((byte_character((uint8_t)byte) == byte) != others && !rank--)
                return (uint8_t)byte;
    return 0;
}

static bool bytes_add(struct json_file *file, struct hf_model *model)
{
    uint8_t text[4];
    for (int ends = 0; ends < 2; ends++)
        for (uint32_t rank = 0; rank < 256; rank++) {
            const size_t bytes = code_point_put(text, byte_character(byte_at(rank)));
            if (!token_add(file, model, text, bytes, suffix, ends ? sizeof suffix - 1 : 0))
                return false;
        }
    return true;
}

/* Goes through the merges: adds the tokens that they make or, if that is done, the merges. */
static bool merges_read(struct json_file *file, struct hf_model *model, bool tokens)
{
    const char *const stop = file->scan.end;
    const char *newline = memchr(file->scan.start, '\n', (size_t)(stop - file->scan.start));
    model->merges_begin = newline ? newline + 1 : stop;
    const char *line = model->merges_begin;
    for (uint64_t i = 0; i < MERGES && line < stop; i++) {
        newline = memchr(line, '\n', (size_t)(stop - line));
        const char *end = newline ? newline : stop, *space = hf_merge_space(file, line, end, i);
        if (!space)
            return false;
        const size_t left = (size_t)(space - line), right = (size_t)(end - space - 1);
        file->scan.at = newline ? newline + 1 : stop;
        if (!(tokens ? token_add(file, model, line, left, space + 1, right)
                     : hf_merge_add(file, model, (const uint8_t *)line, left, (const uint8_t *)space + 1, right, i)))
            return false;
        line = file->scan.at;
    }
    return true;
}

static bool model_read(struct json_file *file, struct hf_model *model)
{
    uint32_t duplicate;
    if (!bytes_add(file, model) || !merges_read(file, model, true) ||
        !token_add(file, model, "<|startoftext|>", 15, "", 0) || !token_add(file, model, "<|endoftext|>", 13, "", 0))
        return false;
    if (!text_table_index(&model->vocabulary, &duplicate)) {
        file->status = error_set_memory(file->error, "a vocabulary", model->vocabulary.count);
        return false;
    }
    return merges_read(file, model, false) && hf_merges_finish(file, model);
}

enum tokmap_status clip_file_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct json_file file = {0};
    struct hf_model model = {0};
    struct pipeline_parts parts = {
        .form = "bpe_simple_vocab_16e6.txt",
        .note = "ids are those of CLIPTokenizerFast in transformers; CLIP's own code first repairs text with ftfy and "
                "replaces HTML entities, so texts such as 'it\u2019s' and '&amp;' have other ids there"};
    assert(path && text && options);
    *tokenizer = NULL;
    const bool good = json_file_begin(&file, path, text, (size_t)count, error) && model_read(&file, &model) &&
                      bpe_kind_join(&file, &bpe_kind_clip, &model, &parts);
    enum tokmap_status status = json_file_status(&file);
    assert(good == !status);
    status = vocabulary_end(tokenizer, status, &parts, path, options, error);
    hf_model_free(&model);
    json_file_end(&file);
    return status;
}
