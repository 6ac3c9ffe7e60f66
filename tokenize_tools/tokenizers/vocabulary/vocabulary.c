/* SPDX-License-Identifier: MIT */
/* vocabulary.c - recognizes the format of a vocabulary file and calls its reader. */
#include "vocabulary.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_files.h"
#include "codec/unpack.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "engine/byte_tokenizer.h"
#include "engine/cut_tokenizer.h"
#include "folder.h"
#include "platform/os.h"
#include "rank_file.h"
#include "rwkv_file.h"
#include "sp_file.h"
#include "tekken_file.h"
#include "text/json_scan.h"
#include "text/stand_in.h"
#include "vocabulary/hf/hf_file.h"
#include "vocabulary_file.h"
#include "word_file.h"

/* ---- names of models ---- */

/* Sources of the vocabularies that people call by the name of a model: a repository of Hugging Face, or a rank file of
 * tiktoken. A name is compared without dots, dashes, underscores, and blanks, and with the first entry that it begins
 * with: "Llama-3.1-8B" is llama31. */
static const struct model_name {
    const char *name, *place;
} model_names[] = {
    {"gpt2", "openai-community/gpt2"},
    {"gpt4o", "o200k_base"},
    {"gpt4", "cl100k_base"},
    {"gptoss", "openai/gpt-oss-20b"},
    {"gptneox", "EleutherAI/gpt-neox-20b"},
    {"r50k", "r50k_base"},
    {"p50k", "p50k_base"},
    {"cl100k", "cl100k_base"},
    {"o200k", "o200k_base"},
    {"llama4", "meta-llama/Llama-4-Scout-17B-16E"},
    {"llama31", "meta-llama/Llama-3.1-8B"},
    {"llama32", "meta-llama/Llama-3.2-1B"},
    {"llama33", "meta-llama/Llama-3.3-70B-Instruct"},
    {"llama3", "meta-llama/Meta-Llama-3-8B"},
    {"llama", "meta-llama/Llama-2-7b-hf"},
    {"qwen3", "Qwen/Qwen3-0.6B"},
    {"qwen", "Qwen/Qwen2.5-0.5B"},
    {"mistralnemo", "mistralai/Mistral-Nemo-Base-2407"},
    {"mistral", "mistralai/Mistral-7B-v0.3"},
    {"mixtral", "mistralai/Mixtral-8x7B-v0.1"},
    {"gemma3", "google/gemma-3-1b-pt"},
    {"gemma", "google/gemma-2-2b"},
    {"deepseek", "deepseek-ai/DeepSeek-V3"},
    {"phi4", "microsoft/phi-4"},
    {"phi", "microsoft/Phi-3-mini-4k-instruct"},
    {"olmo", "allenai/OLMo-2-1124-7B"},
    {"smollm", "HuggingFaceTB/SmolLM2-135M"},
    {"pythia", "EleutherAI/pythia-160m"},
    {"starcoder", "bigcode/starcoder2-3b"},
};

/* Returns the place of the vocabulary that a name without a slash means, or NULL. */
static const char *model_place(const char *typed)
{
    char plain[64];
    size_t count = 0;
    for (; *typed && count < sizeof plain - 1; typed++)
        if (!strchr(".-_ ", *typed))
            plain[count++] = *typed >= 'A' && *typed <= 'Z' ? (char)(*typed + 'a' - 'A') : *typed;
    plain[count] = '\0';
    for (size_t i = 0; i < sizeof model_names / sizeof model_names[0]; i++)
        if (!strncmp(plain, model_names[i].name, strlen(model_names[i].name)))
            return model_names[i].place;
    return NULL;
}

/* Reports that there is no such file. What other programs load by a name has to be downloaded first. */
static enum tokmap_status not_found(const char *path, struct tokmap_error *error)
{
    const char *slash = strchr(path, '/'), *dot = strrchr(path, '.');
    char download[400] = "";
    const bool file = dot && (!strcmp(dot, ".json") || !strcmp(dot, ".model") || !strcmp(dot, ".tiktoken"));
    const char *place = file ? NULL : slash ? path : model_place(path);
    if (strstr(path, "://"))
        (void)snprintf(download, sizeof download, "; download the file of this URL first");
    else if (place && !strchr(place, '/'))
        (void)snprintf(download, sizeof download,
                       "; download https://openaipublic.blob.core.windows.net/encodings/%s.tiktoken", place);
    /* OWNER/NAME, but not ./NAME or OWNER/NAME.json */
    else if (place && *path != '.' && slash != path && (!slash || (slash[1] && !strchr(slash + 1, '/'))))
        (void)snprintf(download, sizeof download,
                       "; if this is a %s, name hf://%.100s to a command, or download "
                       "https://huggingface.co/%.100s/resolve/main/tokenizer.json%s",
                       slash ? "repository of Hugging Face" : "model's name", place, place,
                       slash ? "" : ", for which some owners ask for a login");
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET,
                     "there is no file or folder of this name; name a vocabulary file, a folder that contains one, "
                     "or 'bytes'%s",
                     download);
}

/* ---- compressed files: CLIP's is a .gz ---- */

#define PACKED_MOST ((uint64_t)256 << 20) /* bytes that a file may have when it is decompressed */
#define ROOM ((size_t)1 << 20)            /* bytes that are made at once */

static enum tokmap_status unpack(struct unpacker *unpacker, const char *path, const char *text, uint64_t bytes,
                                 struct bytes_buffer *into, struct tokmap_error *error)
{
    for (uint64_t at = 0; at < bytes || !unpacker_may_end(unpacker);) {
        if (into->count > PACKED_MOST)
            return error_set(
                error, TOKMAP_ERROR_LIMIT, path, at,
                "the file has more than 256 MiB when it is decompressed; decompress it yourself and name the result");
        if (!bytes_reserve(into, ROOM))
            return error_set_memory(error, "a vocabulary file", into->count + ROOM);
        struct unpack_step step = {.in = text + at,
                                   .in_bytes = (size_t)(bytes - at),
                                   .out = (char *)into->bytes + into->count,
                                   .out_room = ROOM};
        const enum unpack_result result = unpacker_step(unpacker, &step);
        at += step.used;
        into->count += step.made;
        if (result == UNPACK_MORE && !step.used && !step.made)
            return error_set(error, TOKMAP_ERROR_TRUNCATED, path, at,
                             "the compressed file ends too early; copy or download it again");
        if (result == UNPACK_FOREIGN || result == UNPACK_DAMAGED)
            return error_set(error, TOKMAP_ERROR_FORMAT, path, at,
                             "the compressed file is damaged (%s); copy or download it again",
                             result == UNPACK_DAMAGED ? step.reason : "other bytes come after its end");
        if (result == UNPACK_LIMIT || result == UNPACK_REFUSED)
            return error_set(error, result == UNPACK_LIMIT ? TOKMAP_ERROR_LIMIT : TOKMAP_ERROR_UNSUPPORTED, path, at,
                             "%s", step.reason);
        if (result == UNPACK_MEMORY)
            return error_set_memory(error, "a vocabulary file", into->count + ROOM);
    }
    return into->count ? TOKMAP_OK
                       : error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                                   "the file is empty when it is decompressed; a vocabulary has at least one token");
}

/* Replaces the text of a compressed file, which was allocated by malloc(), by what it decompresses to; leaves the text
 * of any other file as it is. Statuses: OK, ERROR_FORMAT, ERROR_TRUNCATED, ERROR_UNSUPPORTED (built without the
 * library, or nothing is in the file), ERROR_LIMIT, ERROR_MEMORY. */
static enum tokmap_status packed_text_open(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error)
{
    const char *name, *advice;
    struct unpacker *unpacker = NULL;
    struct bytes_buffer into = {0};
    const enum file_type type = file_type_of(*text, (size_t)*bytes, &name, &advice);
    if (!file_type_is_packed(type))
        return TOKMAP_OK;
    enum tokmap_status status = unpacker_open(&unpacker, type, path, error);
    if (!status)
        status = unpack(unpacker, path, *text, *bytes, &into, error);
    unpacker_free(unpacker);
    if (status) {
        bytes_free(&into);
        return status;
    }
    free(*text);
    *text = (char *)into.bytes;
    *bytes = into.count;
    return TOKMAP_OK;
}

/* ---- files ---- */

enum json_form { FORM_HF, FORM_TEKKEN, FORM_ENCODER };

/* Recognizes a JSON format by the first member that only one of them has: encoder.json maps texts to numbers,
 * tekken.json has an object "config" and an array "vocab", tokenizer.json has fields of its own. FORM_HF where nothing
 * is recognized. */
static enum json_form json_form_of(const char *text, uint64_t count)
{
    static const char *const hf[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                     "pre_tokenizer", "post_processor", "decoder", "model"};
    struct json_scan scan;
    struct json_string name;
    json_begin(&scan, text, (size_t)count);
    if (json_enter_object(&scan))
        while (json_member(&scan, &name)) {
            const enum json_kind kind = json_kind(&scan);
            if (kind == JSON_NUMBER)
                return FORM_ENCODER;
            for (size_t i = 0; i < sizeof hf / sizeof hf[0]; i++)
                if (json_name_is(&name, hf[i]))
                    return FORM_HF;
            if (kind == JSON_OBJECT ? json_name_is(&name, "config")
                                    : kind == JSON_ARRAY && json_name_is(&name, "vocab"))
                return FORM_TEKKEN;
            if (!json_skip(&scan))
                break;
        }
    return FORM_HF; /* its reader reports what is wrong */
}

static enum tokmap_status json_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                    const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    switch (json_form_of(text, count)) {
    case FORM_TEKKEN:
        return tekken_file_open(tokenizer, path, text, count, options, error);
    case FORM_ENCODER:
        return bpe_files_open(tokenizer, path, text, count, options, error);
    case FORM_HF:
    default:
        return hf_file_open(tokenizer, path, text, count, options, error);
    }
}

/* Refuses options that a format does not have; ignoring them silently would surprise. */
static enum tokmap_status options_check(const char *path, bool ranks, const struct tokmap_tokenizer_options *options,
                                        struct tokmap_error *error)
{
    const char *given = options->pattern          ? "pattern"
                        : options->pattern_regex  ? "pattern_regex"
                        : options->special_tokens ? "special_tokens"
                                                  : NULL;
    if (ranks || !given)
        return TOKMAP_OK;
    return error_set_field(error, TOKMAP_ERROR_ARGUMENT, path, given,
                           " is for rank files (.tiktoken) only; this file itself defines how text is split and what "
                           "its special tokens are, so leave the option out");
}

/* Refuses what a download leaves where the file should be. */
static enum tokmap_status stand_in_check(const char *path, const char *text, uint64_t bytes, struct tokmap_error *error)
{
    const enum stand_in stand_in = stand_in_of(text, bytes);
    if (stand_in == STAND_IN_NONE)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET, "%s",
                     stand_in == STAND_IN_POINTER ? STAND_IN_POINTER_MESSAGE
                                                  : "the file is a web page; download the file itself (on "
                                                    "huggingface.co its URL has /resolve/, not /blob/)");
}

/* Opens a file, not a folder. folder: that of the file, with what its other files say; NULL: they are not asked. */
static enum tokmap_status file_read(struct tokenizer **tokenizer, const char *path,
                                    const struct tokmap_tokenizer_options *options, struct folder *folder,
                                    struct tokmap_error *error)
{
    char *text;
    uint64_t bytes;
    enum tokmap_status status = vocabulary_file_read(path, &text, &bytes, error);
    if (status)
        return status;
    status = packed_text_open(path, &text, &bytes, error);
    const bool ranks = !status && rank_file_is(text, bytes);
    if (!status)
        status = stand_in_check(path, text, bytes, error);
    if (!status)
        status = options_check(path, ranks, options, error);
    if (status)
        (void)status; /* refused */
    else if (ranks)
        status = rank_tokenizer_new(tokenizer, path, text, bytes, options, folder ? &folder->beside : NULL, error);
    else if (sp_file_is((const uint8_t *)text, bytes)) {
        status = folder ? folder_rule_find(folder, error) : TOKMAP_OK;
        if (!status)
            status = sp_file_open(tokenizer, path, (const uint8_t *)text, bytes, folder ? folder->rule : NULL, options,
                                  error);
    } else if (hf_file_is(text, bytes))
        status = json_open(tokenizer, path, text, bytes, options, error);
    else if (clip_file_is(text, bytes))
        status = clip_file_open(tokenizer, path, text, bytes, options, error);
    else if (rwkv_file_is(text, bytes))
        status = rwkv_file_open(tokenizer, path, text, bytes, options, error);
    else if (bpe_files_is(text, bytes))
        status = bpe_files_open(tokenizer, path, text, bytes, options, error);
    else if (word_file_is(path, text, bytes))
        status = word_file_open(tokenizer, path, text, bytes, options, error);
    else
        status =
            error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                      "the file is not a vocabulary that tokmap can read: tokenizer.json, tekken.json, vocab.bpe with "
                      "encoder.json, a vocab.txt with the token [UNK], a SentencePiece model, a rank file (.tiktoken), "
                      "bpe_simple_vocab_16e6.txt.gz, or "
                      "RWKV's vocabulary");
    free(text);
    return status;
}

static enum tokmap_status folder_open(struct tokenizer **tokenizer, const char *path,
                                      const struct tokmap_tokenizer_options *options, struct folder *folder,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = folder_read(folder, path, error);
    if (!status)
        status = file_read(tokenizer, folder->path, options, folder, error);
    if (!status)
        folder_finish(folder, *tokenizer);
    return status;
}

static enum tokmap_status spec_open(struct tokenizer **tokenizer, const char *spec,
                                    const struct tokmap_tokenizer_options *options, struct folder *folder,
                                    struct tokmap_error *error)
{
    struct os_stat about;
    if (!strcmp(spec, "bytes"))
        return byte_tokenizer_open(tokenizer, error);
    const int failed = os_stat(spec, &about);
    if (failed == ENOENT)
        return not_found(spec, error);
    if (failed)
        return error_set_system(error, failed, spec, TOKMAP_NO_OFFSET, "the tokenizer cannot be read");
    if (about.kind == OS_KIND_FOLDER)
        return folder_open(tokenizer, spec, options, folder, error);
    return file_read(tokenizer, spec, options, NULL, error);
}

enum tokmap_status vocabulary_open_reported(struct tokenizer **tokenizer, const char *spec,
                                            const struct tokmap_tokenizer_options *options, struct folder *folder,
                                            struct tokmap_error *error)
{
    static const struct tokmap_tokenizer_options defaults;
    struct tokenizer_info info;
    assert(tokenizer && spec && folder);
    *tokenizer = NULL;
    options = options ? options : &defaults;
    enum tokmap_status status = spec_open(tokenizer, spec, options, folder, error);
    if (!status)
        info = info_of_tokenizer(*tokenizer);
    if (!status && options->lower_case && strcmp(info.form, "vocab.txt") != 0)
        status = error_set_field(error, TOKMAP_ERROR_ARGUMENT, spec, "lower_case",
                                 " is for a vocab.txt only; this file itself says it, so leave the option out");
    if (!status && options->cut_as)
        status = cut_tokenizer_make(tokenizer, options->cut_as, error);
    if (status) {
        tokenizer_close(*tokenizer);
        *tokenizer = NULL;
    }
    return status;
}

enum tokmap_status vocabulary_open(struct tokenizer **tokenizer, const char *spec,
                                   const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct folder *folder = calloc(1, sizeof *folder);
    assert(tokenizer);
    *tokenizer = NULL;
    if (!folder)
        return error_set_memory(error, "a tokenizer", sizeof *folder);
    const enum tokmap_status status = vocabulary_open_reported(tokenizer, spec, options, folder, error);
    folder_free(folder);
    free(folder);
    return status;
}
