/*
 * bpe_files.c - the two files do not describe the pre-tokenizer or the special tokens. Both are those of GPT-2, whose
 * only special token is <|endoftext|>, the one token of its vocabulary that no merge makes. Files that contradict that
 * are refused (pair_kind.h).
 */
#include "bpe_files.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "byte_level.h"
#include "common/error.h"
#include "hf_fingerprint.h"
#include "hf_pretokenizer.h"
#include "pair_kind.h"
#include "platform/os.h"
#include "text/path.h"
#include "tokenizer/pipeline.h"
#include "vocabulary_name.h"
#include "vocabulary_file.h"

static const char version[] = "#version";
static const char end_of_text[] = "<|endoftext|>";

/* One of the two files. */
struct half {
    const char *path, *text;
    uint64_t bytes;
};

/* The two files. The struct owns the path and the text of the file that this unit found and read; the caller owns
 * those of the file that it was given. */
struct halves {
    struct half merges, ids;
    char *found_path, *found_text;
};

bool bpe_files_is(const char *text, uint64_t count)
{
    return count >= sizeof version - 1 && !memcmp(text, version, sizeof version - 1);
}

/* Sets *found to the path of the first of the names that is a file in the folder of path; the caller frees it. */
static enum tokmap_status find_beside(char **found, const char *path, const char *const names[2],
                                      struct tokmap_error *error)
{
    for (size_t i = 0; i < 2; i++) {
        struct os_stat about;
        *found = path_beside(path, names[i]);
        if (!*found)
            return error_set_memory(error, "a path", strlen(path) + strlen(names[i]));
        if (!os_stat(*found, &about) && about.kind == OS_KIND_FILE)
            return TOKMAP_OK;
        free(*found);
        *found = NULL;
    }
    return error_set(
        error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET,
        "the file is one of the two files of a tokenizer; put the other one, '%s' or '%s', into the same folder",
        names[0], names[1]);
}

static enum tokmap_status halves_read(struct halves *halves, const char *path, const char *text, uint64_t count,
                                      struct tokmap_error *error)
{
    static const char *const merges_names[] = {"vocab.bpe", "merges.txt"};
    static const char *const ids_names[] = {"encoder.json", "vocab.json"};
    const bool is_merges = bpe_files_is(text, count);
    struct half *given = is_merges ? &halves->merges : &halves->ids;
    struct half *other = is_merges ? &halves->ids : &halves->merges;
    *given = (struct half){path, text, count};
    enum tokmap_status status = find_beside(&halves->found_path, path, is_merges ? ids_names : merges_names, error);
    if (!status)
        status = vocabulary_file_read(halves->found_path, &halves->found_text, &other->bytes, error);
    other->path = halves->found_path;
    other->text = halves->found_text;
    return status;
}

/* Reads lines "a b". Lines that begin with #version are comments, as in the reference. */
static bool merges_parse(struct json_file *file, struct hf_model *model)
{
    const char *end = file->scan.end;
    uint64_t number = 0;
    model->merges_begin = file->scan.start;
    for (const char *line = file->scan.start, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        next = newline ? newline + 1 : end;
        file->scan.at = line; /* the position of an error */
        if (stop > line && stop[-1] == '\r')
            stop--;
        const size_t bytes = (size_t)(stop - line);
        if (bytes >= sizeof version - 1 && !memcmp(line, version, sizeof version - 1))
            continue;
        if (!pair_merge_check(file, line, bytes, number))
            break;
        const char *space = memchr(line, ' ', bytes);
        if (!space || memchr(space + 1, ' ', (size_t)(stop - space - 1))) {
            (void)json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                   "merge %llu (counted from 0) must be two tokens with one space between them",
                                   (unsigned long long)number);
            break;
        }
        if (!hf_merge_add(file, model, (const uint8_t *)line, (size_t)(space - line), (const uint8_t *)space + 1,
                          (size_t)(stop - space - 1), number++))
            break;
    }
    return hf_merges_finish(file, model);
}

static enum tokmap_status tokens_add(struct pipeline_parts *parts, const struct hf_model *model, const char *path,
                                     struct tokmap_error *error)
{
    struct added_token token = {.text = (const uint8_t *)end_of_text,
                                .match = (const uint8_t *)end_of_text,
                                .bytes = sizeof end_of_text - 1,
                                .match_bytes = sizeof end_of_text - 1,
                                .special = true};
    _Static_assert(TEXT_NONE == PIPELINE_NO_ID, "a token that the vocabulary lacks must be no id");
    token.id = text_table_find(&model->vocabulary, token.text, token.bytes);
    parts->vocabulary = model->vocabulary.ids;
    parts->eod = token.id;
    parts->bos = PIPELINE_NO_ID;
    return added_tokens_new(&parts->added, &token, token.id != TEXT_NONE, path, error);
}

/* Reads both texts into the model, and the pre-tokenizer of GPT-2 into the parts. */
static enum tokmap_status model_parse(const struct halves *halves, struct json_file *ids, struct json_file *merges,
                                      struct hf_model *model, const struct hf_splits *splits,
                                      struct pipeline_parts *parts, struct split_rules *rules,
                                      struct tokmap_error *error)
{
    bool good = json_file_begin(ids, halves->ids.path, halves->ids.text, (size_t)halves->ids.bytes, error) &&
                hf_vocabulary_parse(ids, &model->vocabulary, "the vocabulary") && json_end(&ids->scan) &&
                (model->vocabulary.count ||
                 json_file_refuse(ids, TOKMAP_ERROR_FORMAT, "the vocabulary is empty; the file is incomplete"));
    if (!good)
        return json_file_status(ids);
    good = json_file_begin(merges, halves->merges.path, halves->merges.text, (size_t)halves->merges.bytes, error) &&
           merges_parse(merges, model) && hf_pretokenizer_build(merges, splits, parts, rules);
    if (!good)
        return json_file_status(merges);
    return pair_vocabulary_check(ids, &model->vocabulary) ? TOKMAP_OK : json_file_status(ids);
}

enum tokmap_status bpe_files_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct halves halves = {.found_path = NULL};
    struct json_file ids = {0}, merges = {0};
    struct hf_model model = {0};
    struct pipeline_parts parts = {.form = "vocab.bpe and encoder.json"};
    struct hf_splits splits = {.count = 1};
    struct split_rules rules;
    assert(path && text && options);
    splits.steps[0] = (struct hf_split){.kind = HF_BYTE_LEVEL, .use_regex = true, .split = true};
    *tokenizer = NULL;
    enum tokmap_status status = halves_read(&halves, path, text, count, error);
    if (!status)
        status = pair_folder_check(path, error);
    if (!status)
        status = model_parse(&halves, &ids, &merges, &model, &splits, &parts, &rules, error);
    if (!status)
        status = tokens_add(&parts, &model, path, error);
    if (!status)
        status = byte_level_build(&parts, &model, &rules, path, error);
    if (!status)
        status = hf_fingerprint(&parts, &splits, &rules, error);
    if (!status) {
        vocabulary_name(&parts, path);
        status = pipeline_new(tokenizer, &parts, options->special, path, error);
    }
    pipeline_parts_free(&parts);
    hf_model_free(&model);
    json_file_end(&ids);
    json_file_end(&merges);
    free(halves.found_path);
    free(halves.found_text);
    return status;
}
