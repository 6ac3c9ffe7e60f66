/* SPDX-License-Identifier: MIT */
/*
 * bpe_files.c - the two files do not describe the pre-tokenizer or the special tokens. If the vocabulary marks the ends
 * of words, or the configuration beside it says so, they are those of a kind below. Otherwise both are those
 * of GPT-2, whose only special token is <|endoftext|>, the one token of its vocabulary that no merge makes. Files that
 * contradict that are refused.
 */
#include "bpe_files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "byte_level.h"
#include "common/error.h"
#include "folder_config.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "text/path.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary/hf/hf_engines.h"
#include "vocabulary/hf/hf_join.h"
#include "vocabulary_file.h"

/*
 * ---- kinds ----
 *
 * Some tokenizers come as a vocabulary and a list of merges without a word about the rest: how text is normalized, how
 * it is split, and which tokens are special. Each kind is what transformers (5.23) converts two such files to: its
 * parts are written here as its tokenizer.json would have them, and the readers of that format parse them. The decoder
 * of CLIP is not the one of its tokenizer.json, which leaves each suffix in the text, but that of its class.
 */

#define BPE_KIND_SPECIALS 5

struct bpe_kind {
    const char *class_name; /* as in config_class_is() */
    const char *suffix, *unk;
    const char *specials[BPE_KIND_SPECIALS]; /* those that the vocabulary may have; NULL: no more */
    const char *eod, *bos;                   /* or NULL */
    bool mapped;                             /* tokens have characters that stand for bytes */
    const char *parts; /* the fields normalizer, pre_tokenizer, and decoder, as a tokenizer.json has them */
    const char *note;  /* for users, where the kind was guessed */
};
#define BERT_WORDS                                                                                                     \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}"
#define GUESSED "the files do not say how text is split and normalized, which is done here as "
#define NAME_IT "; if the vocabulary is of another kind, name its tokenizer.json"

static const struct bpe_kind clip = {
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

/* Returns the kind of a class of transformers, or NULL for any other class. */
static const struct bpe_kind *bpe_kind_of_class(const struct config_text *name)
{
    static const struct bpe_kind *const kinds[] = {&clip, &gpt1, &herbert};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (config_class_is(name, kinds[i]->class_name))
            return kinds[i];
    return NULL;
}

/* Counts marks: a vocabulary that marks the ends of words has about as many tokens with the mark as without; but "</w>"
 * may be a token of any vocabulary. */
static const struct bpe_kind *bpe_kind_of_vocabulary(const struct text_table *vocabulary)
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
    return hf_byte_lacking(vocabulary, none, suffix) < 0 ? &clip : upper ? &herbert : &gpt1;
}

/* ---- making the engine ---- */

static uint32_t find(const struct hf_model *model, const char *text)
{
    _Static_assert(TEXT_NONE == PIPELINE_NO_ID, "a token that the vocabulary lacks must be no id");
    return text ? text_table_find(&model->vocabulary, (const uint8_t *)text, (uint32_t)strlen(text)) : TEXT_NONE;
}

/* Adds the special tokens of a kind that the vocabulary has, and says which of them end and begin documents. Returns
 * false after a failure, as the next function does. */
static bool bpe_kind_specials(struct json_file *file, const struct bpe_kind *kind, const struct hf_model *model,
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

/* Makes the engine of a model of this kind, and all else that `parts` needs. file: of the merges, which have been
 * parsed. Returns false if the files are refused; json_file_status(file) is then the reason. */
static bool bpe_kind_join(struct json_file *file, const struct bpe_kind *kind, struct hf_model *model,
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

/* ---- the kind ----
 *
 * Many tokenizers come in two such files, and the files do not say which: CLIP and GPT-1 mark the ends of words, which
 * shows in the vocabulary, SentencePiece's mark spaces, and Qwen2 splits text by another pattern. Read as GPT-2's, each
 * gives other ids than its own. GPT-2's pattern splits a text between a letter, a digit, and a punctuation character
 * (but the apostrophe), so a merge that joins two of them was made for another one. */

#define KINDS "tokmap reads two files only as BPE of the kinds of GPT-2, CLIP, GPT-1, and HerBERT"

/* ---- the kind: merges ---- */

enum byte_class { OTHER, LETTER, DIGIT, PUNCTUATION, SPACE };

static enum byte_class class_of(int byte)
{
    if ((byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z'))
        return LETTER;
    if (byte >= '0' && byte <= '9')
        return DIGIT;
    if (byte == ' ' || (byte >= '\t' && byte <= '\r'))
        return SPACE;
    return byte > ' ' && byte < 0x7F && byte != '\'' ? PUNCTUATION : OTHER;
}

/* Returns whether GPT-2's pattern always splits a text between two characters of these classes. A space before a word
 * belongs to it. */
static bool always_apart(enum byte_class before, enum byte_class next)
{
    return before != OTHER && next != OTHER && before != next && before != SPACE;
}

/* Checks a merge, whose line has `bytes` bytes without its end. file: of the merges, at the line. number: of the merge.
 * Returns false if the merge is of another kind, and reports that. A line of the wrong form is not a contradiction. */
static bool pair_merge_check(struct json_file *file, const char *line, size_t bytes, uint64_t number)
{
    const unsigned long long merge = (unsigned long long)number;
    const uint8_t *text = (const uint8_t *)line;
    enum byte_class before = OTHER;
    if (bytes && memmem(line, bytes, "</w>", 4))
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "merge %llu (counted from 0) marks the end of a word with </w>, as CLIP's and GPT-1's "
                                "do, but the vocabulary or tokenizer_config.json beside it is not of their kind; name "
                                "the tokenizer.json of this vocabulary",
                                merge);
    for (size_t at = 0, length; at < bytes; at += length) {
        length = 1;
        if (text[at] == ' ')
            continue;
        const int byte = character_byte(code_point_get(text + at, &length));
        if (byte < 0)
            return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                    "merge %llu (counted from 0) has the character '%.*s', which stands for no byte, "
                                    "so the two files are not of a byte-level vocabulary; " KINDS
                                    "; name the tokenizer.json of this vocabulary",
                                    merge, (int)length, line + at);
        const enum byte_class next = class_of(byte);
        if (always_apart(before, next))
            return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                    "merge %llu (counted from 0) is '%.*s', but GPT-2's pattern splits text between "
                                    "such characters, so the two files belong to a tokenizer with another pattern, "
                                    "which they do not say; name its tokenizer.json",
                                    merge, shown(bytes), line);
        before = next;
    }
    return true;
}

/* Checks the vocabulary: it must have a token for the space. Returns false as above. */
static bool pair_vocabulary_check(struct json_file *file, const struct text_table *vocabulary)
{
    uint8_t space[4];
    const size_t bytes = code_point_put(space, byte_character(' '));
    return text_table_find(vocabulary, space, bytes) != TEXT_NONE ||
           json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                            "the vocabulary has no token for the space ('%.*s'), so it is not byte-level; " KINDS
                            "; name the tokenizer.json of this vocabulary",
                            (int)bytes, (const char *)space);
}

/* ---- the kind: tokenizer_config.json ---- */

/* The classes of transformers that read two files as GPT-2 does, and those that say nothing about it. */
static const char gpt2_classes[] =
    "GPT2Tokenizer RobertaTokenizer BartTokenizer LEDTokenizer LongformerTokenizer DebertaTokenizer CodeGenTokenizer "
    "WhisperTokenizer MarkupLMTokenizer LukeTokenizer MvpTokenizer BlenderbotTokenizer";
static const char silent_classes[] = "PreTrainedTokenizer TokenizersBackend";

/* Checks the tokenizer_config.json beside `path`, if there is one: the class that it names must read two files as GPT-2
 * or one of the kinds does, and no token may be added that is found in every text. *kind: that of the class; NULL: it
 * is GPT-2's or, with *silent, not known. Statuses: OK, ERROR_UNSUPPORTED, ERROR_MEMORY, and those of reading a file.
 */
static enum tokmap_status pair_folder_check(const char *path, const struct bpe_kind **kind, bool *silent,
                                            struct tokmap_error *error)
{
    struct folder_config config = {0};
    const struct config_text *const name = &config.class_name, *const added = &config.ordinary;
    enum tokmap_status status = folder_config_beside(&config, path, error);
    *kind = bpe_kind_of_class(name);
    *silent = !name->text || config_class_is(name, silent_classes);
    if (!status && !*silent && !*kind && !config_class_is(name, gpt2_classes))
        status =
            error_set(error, TOKMAP_ERROR_UNSUPPORTED, config.path, TOKMAP_NO_OFFSET,
                      "the tokenizer_class is '%.*s', which reads the two files beside it in a way of its own; " KINDS
                      "; name the tokenizer.json of this vocabulary",
                      shown(name->bytes), (const char *)name->text);
    else if (!status && config.settings[SETTING_PREFIX_SPACE] == VALUE_TRUE)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, config.path, TOKMAP_NO_OFFSET,
                           "add_prefix_space is true, so a space is put before each text, which the two files beside "
                           "it do not say; name the tokenizer.json of this vocabulary");
    else if (!status && added->text)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, config.path, TOKMAP_NO_OFFSET,
                           "the added token '%.*s' is an ordinary one, so it is found in every text, which the two "
                           "files beside it do not say; name the tokenizer.json of this vocabulary",
                           shown(added->bytes), (const char *)added->text);
    folder_config_free(&config);
    return status;
}

/* ---- the two files ---- */

static const char version[] = "#version";

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
static enum tokmap_status find_beside(char **found, const char *path, const char *const names[3],
                                      struct tokmap_error *error)
{
    for (size_t i = 0; i < 3; i++) {
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
    static const char *const merges_names[] = {"vocab.bpe", "merges.txt", "vocab_40000.bpe"};
    static const char *const ids_names[] = {"encoder.json", "vocab.json", "encoder_bpe_40000.json"};
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

/* Reads lines "a b". Lines that begin with #version are comments, as in the reference. kind: NULL for GPT-2's. */
static bool merges_parse(struct json_file *file, struct hf_model *model, const struct bpe_kind *kind)
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
        if (!kind && !pair_merge_check(file, line, bytes, number))
            break;
        const char *space = hf_merge_space(file, line, stop, number);
        if (!space || !hf_merge_add(file, model, (const uint8_t *)line, (size_t)(space - line),
                                    (const uint8_t *)space + 1, (size_t)(stop - space - 1), number++))
            break;
    }
    return hf_merges_finish(file, model);
}

/* Makes the parts of GPT-2's kind. */
static enum tokmap_status gpt2_join(struct json_file *file, struct hf_model *model, struct pipeline_parts *parts)
{
    static const struct bpe_kind gpt2 = {.specials = {"<|endoftext|>"}, .eod = "<|endoftext|>"};
    struct hf_splits splits = {.count = 1};
    struct split_rules rules;
    splits.steps[0] = (struct hf_split){.kind = HF_BYTE_LEVEL, .use_regex = true, .split = true};
    if (!hf_pretokenizer_build(file, &splits, parts, &rules) || !bpe_kind_specials(file, &gpt2, model, parts))
        return json_file_status(file);
    const enum tokmap_status status = byte_level_build(parts, model, &rules, file->path, file->error);
    return status ? status : hf_fingerprint(parts, &splits, &rules, file->error);
}

/* Reads both texts into the model, and makes the parts of it. kind: that of the configuration, or NULL; silent: the
 * configuration does not say it. */
static enum tokmap_status pair_read(const struct halves *halves, struct json_file *ids, struct json_file *merges,
                                    struct hf_model *model, const struct bpe_kind *kind, bool silent,
                                    struct pipeline_parts *parts, struct tokmap_error *error)
{
    bool good = json_file_begin(ids, halves->ids.path, halves->ids.text, (size_t)halves->ids.bytes, error) &&
                hf_vocabulary_parse(ids, &model->vocabulary, "the vocabulary") && json_end(&ids->scan) &&
                (model->vocabulary.count ||
                 json_file_refuse(ids, TOKMAP_ERROR_FORMAT, "the vocabulary is empty; the file is incomplete"));
    if (!good)
        return json_file_status(ids);
    if (!kind && silent && (kind = bpe_kind_of_vocabulary(&model->vocabulary)) != NULL)
        parts->note = kind->note;
    good = json_file_begin(merges, halves->merges.path, halves->merges.text, (size_t)halves->merges.bytes, error) &&
           merges_parse(merges, model, kind);
    if (!good)
        return json_file_status(merges);
    if (kind)
        return bpe_kind_join(merges, kind, model, parts) ? TOKMAP_OK : json_file_status(merges);
    return pair_vocabulary_check(ids, &model->vocabulary) ? gpt2_join(merges, model, parts) : json_file_status(ids);
}

enum tokmap_status bpe_files_open(struct tokenizer **tokenizer, const char *path, const char *text, uint64_t count,
                                  const struct tokmap_tokenizer_options *options, struct tokmap_error *error)
{
    struct halves halves = {.found_path = NULL};
    struct json_file ids = {0}, merges = {0};
    struct hf_model model = {0};
    struct pipeline_parts parts = {.form = "vocab.bpe and encoder.json"};
    const struct bpe_kind *kind;
    bool silent;
    assert(path && text && options);
    *tokenizer = NULL;
    enum tokmap_status status = halves_read(&halves, path, text, count, error);
    if (!status)
        status = pair_folder_check(path, &kind, &silent, error);
    if (!status)
        status = pair_read(&halves, &ids, &merges, &model, kind, silent, &parts, error);
    status = vocabulary_end(tokenizer, status, &parts, path, options, error);
    hf_model_free(&model);
    json_file_end(&ids);
    json_file_end(&merges);
    free(halves.found_path);
    free(halves.found_text);
    return status;
}

/* ---- the file of CLIP ---- */

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
    if (!text_table_index(&model->vocabulary, &duplicate))
        return json_file_memory(file, "a vocabulary", model->vocabulary.count);
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
                      bpe_kind_join(&file, &clip, &model, &parts);
    enum tokmap_status status = json_file_status(&file);
    assert(good == !status);
    status = vocabulary_end(tokenizer, status, &parts, path, options, error);
    hf_model_free(&model);
    json_file_end(&file);
    return status;
}
