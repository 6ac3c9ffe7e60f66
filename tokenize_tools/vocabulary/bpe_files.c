/*
 * bpe_files.c - the two files say nothing of how text is split and what is special: it is as in GPT-2, whose <|endoftext|>
 * is the one token that no merge gives.
 */
#include "bpe_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "byte_level.h"
#include "common/error.h"
#include "hf_fingerprint.h"
#include "hf_pretokenizer.h"
#include "platform/os.h"
#include "text/path.h"
#include "vocabulary_file.h"

static const char version[] = "#version";
static const char end_of_text[] = "<|endoftext|>";

struct pair_of_files {
    char *merges_path, *ids_path;
    char *merges, *ids;
    uint64_t merges_bytes, ids_bytes;
};

bool bpe_files_is(const char *text, uint64_t count)
{
    return count >= sizeof version - 1 && !memcmp(text, version, sizeof version - 1);
}

/* The first of the names that is there beside path. */
static char *find_beside(const char *path, const char *const *names, struct tokmap_error *error)
{
    for (size_t i = 0; names[i]; i++) {
        struct os_stat about;
        char *found = path_beside(path, names[i]);
        if (!found) {
            (void)error_set_memory(error, "a path", strlen(path));
            return NULL;
        }
        if (!os_stat(found, &about) && about.kind == OS_KIND_FILE)
            return found;
        free(found);
    }
    (void)error_set(error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET,
                    "the file is half of a tokenizer: '%s' or '%s' must lie beside it", names[0], names[1]);
    return NULL;
}

static enum tokmap_status find_both(struct pair_of_files *files, const char *path, struct tokmap_error *error)
{
    static const char *const merges[] = {"vocab.bpe", "merges.txt", NULL};
    static const char *const ids[] = {"encoder.json", "vocab.json", NULL};
    char *text;
    uint64_t bytes;
    error->status = TOKMAP_OK;
    enum tokmap_status status = vocabulary_file_read(path, &text, &bytes, error);
    if (status)
        return status;
    const bool is_merges = bpe_files_is(text, bytes);
    free(text);
    files->merges_path = is_merges ? strdup(path) : find_beside(path, merges, error);
    files->ids_path = !is_merges ? strdup(path) : find_beside(path, ids, error);
    if (!files->merges_path || !files->ids_path)
        return error->status ? error->status : error_set_memory(error, "a path", strlen(path));
    status = vocabulary_file_read(files->merges_path, &files->merges, &files->merges_bytes, error);
    return status ? status : vocabulary_file_read(files->ids_path, &files->ids, &files->ids_bytes, error);
}

static void files_free(struct pair_of_files *files)
{
    free(files->merges);
    free(files->ids);
    free(files->merges_path);
    free(files->ids_path);
}

/* Lines "a b"; those that begin with #version are comments. */
static bool merges_take(struct json_file *file, struct hf_model *model)
{
    const char *end = file->scan.end;
    uint64_t number = 0;
    for (const char *line = file->scan.start, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        next = newline ? newline + 1 : end;
        file->scan.at = line;
        if (stop > line && stop[-1] == '\r')
            stop--;
        const size_t bytes = (size_t)(stop - line);
        if (bytes >= sizeof version - 1 && !memcmp(line, version, sizeof version - 1))
            continue;
        const char *space = memchr(line, ' ', bytes);
        if (!space || memchr(space + 1, ' ', (size_t)(stop - space - 1)))
            return json_file_refuse(file, TOKMAP_ERROR_FORMAT, "merge %llu (from 0) is not two tokens with one space "
                                    "between", (unsigned long long)number);
        if (!hf_merge_add(file, model, (const uint8_t *)line, (size_t)(space - line), (const uint8_t *)space + 1,
                          (size_t)(stop - space - 1), number++))
            return false;
    }
    return hf_merges_finish(file, model);
}

static enum tokmap_status tokens_add(struct pipeline_parts *parts, const struct hf_model *model, const char *path,
                                     struct tokmap_error *error)
{
    struct added_token token = {.text = (const uint8_t *)end_of_text, .match = (const uint8_t *)end_of_text,
                                .bytes = sizeof end_of_text - 1, .match_bytes = sizeof end_of_text - 1, .special = true};
    token.id = text_table_find(&model->vocabulary, token.text, token.bytes);
    parts->vocabulary = model->vocabulary.ids;
    parts->eod = token.id; /* TEXT_NONE is PIPELINE_NO_ID */
    parts->bos = PIPELINE_NO_ID;
    return added_tokens_new(&parts->added, &token, token.id != TEXT_NONE, path, error);
}

enum tokmap_status bpe_files_open(struct tokenizer **tokenizer, const char *path,
                                  const struct tokenizer_options *options, struct tokmap_error *error)
{
    struct pair_of_files files = {0};
    struct json_file ids = {0}, merges = {0};
    struct hf_model model = {0};
    struct pipeline_parts parts = {.form = "vocab.bpe and encoder.json"};
    struct hf_splits splits = {.count = 1};
    struct split_rules rules;
    struct tokmap_error own;
    splits.steps[0] = (struct hf_split){.kind = HF_BYTE_LEVEL, .use_regex = true, .split = true};
    *tokenizer = NULL;
    if (!error)
        error = &own;
    enum tokmap_status status = find_both(&files, path, error);
    if (!status) {
        const bool good = json_file_begin(&ids, files.ids_path, files.ids, (size_t)files.ids_bytes, error) &&
                          hf_vocabulary_take(&ids, &model.vocabulary, "the vocabulary") && json_end(&ids.scan);
        status = good ? TOKMAP_OK : json_file_status(&ids);
    }
    if (!status) {
        const bool good = json_file_begin(&merges, files.merges_path, files.merges, (size_t)files.merges_bytes, error) &&
                          merges_take(&merges, &model) && hf_pretokenizer_build(&merges, &splits, &parts, &rules);
        status = good ? TOKMAP_OK : json_file_status(&merges);
    }
    (void)snprintf(parts.name, sizeof parts.name, "vocab.bpe");
    if (!status)
        status = tokens_add(&parts, &model, path, error);
    if (!status)
        status = byte_level_build(&parts, &model, &rules, path, error);
    if (!status)
        status = hf_fingerprint(&parts, &splits, &rules, error);
    if (!status)
        status = pipeline_new(tokenizer, &parts, options->special, path, error);
    pipeline_parts_free(&parts);
    hf_model_free(&model);
    json_file_end(&ids);
    json_file_end(&merges);
    files_free(&files);
    return status;
}
