/* SPDX-License-Identifier: MIT */
/* train_write.c - see train_write.h. */
#include "train_write.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "file_group.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "pretokenize/pretokenizer.h"
#include "text/path.h"
#include "unicode/byte_alphabet.h"

#define FILES 3

/* In the order in which the files appear. */
static const char *const endings[FILES] = {".specials.json", ".tiktoken", ".json"};

struct train_files {
    char *paths[FILES], *partials[FILES], *replaced[FILES];
    int fds[FILES]; /* -1: not open */
    bool replace, specials;
};

/* ---- growing text ---- */

struct growing {
    char *bytes;
    size_t count, room;
    bool failed; /* a lack of memory, which the caller checks once at the end */
};

static void append(struct growing *g, const void *bytes, size_t count)
{
    if (g->room - g->count < count && !g->failed) {
        const size_t wanted = g->count + count + g->room + 4096;
        char *grown = realloc(g->bytes, wanted);
        g->failed = !grown;
        if (grown) {
            g->bytes = grown;
            g->room = wanted;
        }
    }
    if (g->failed)
        return;
    memcpy(g->bytes + g->count, bytes, count);
    g->count += count;
}

static void append_text(struct growing *g, const char *text)
{
    append(g, text, strlen(text));
}

static void append_number(struct growing *g, uint64_t number)
{
    char text[24];
    append(g, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, number));
}

/* Appends text of a JSON string without its quotes. */
static void append_escaped(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char text[8];
        if (bytes[i] == '"' || bytes[i] == '\\') {
            text[0] = '\\';
            text[1] = (char)bytes[i];
            append(g, text, 2);
        } else if (bytes[i] < 0x20) {
            append(g, text, (size_t)snprintf(text, sizeof text, "\\u%04x", bytes[i]));
        } else {
            append(g, bytes + i, 1);
        }
    }
}

static void append_string(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    append(g, "\"", 1);
    append_escaped(g, bytes, count);
    append(g, "\"", 1);
}

static void append_base64(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (uint64_t i = 0; i < count; i += 3) {
        const uint64_t left = count - i;
        const uint32_t three =
            (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0u);
        const char four[4] = {digits[three >> 18], digits[three >> 12 & 63], left > 1 ? digits[three >> 6 & 63] : '=',
                              left > 2 ? digits[three & 63] : '='};
        append(g, four, 4);
    }
}

/* ---- the byte alphabet ---- */

/* The UTF-8 of the characters that represent bytes. */
struct alphabet {
    uint8_t texts[256][2];
    uint8_t counts[256];
};

static void alphabet_make(struct alphabet *alphabet)
{
    for (uint32_t b = 0; b < 256; b++) {
        const uint32_t c = byte_character((uint8_t)b);
        alphabet->counts[b] = c < 0x80 ? 1 : 2;
        alphabet->texts[b][0] = (uint8_t)(c < 0x80 ? c : 0xC0 | c >> 6);
        alphabet->texts[b][1] = (uint8_t)(0x80 | (c & 0x3F));
    }
}

static void append_spelling(struct growing *g, const struct alphabet *alphabet, const struct train_text *token)
{
    for (uint64_t i = 0; i < token->count; i++)
        append_escaped(g, alphabet->texts[token->bytes[i]], alphabet->counts[token->bytes[i]]);
}

bool train_decode_spelling(const struct train_text *special, uint8_t *into, uint64_t *count)
{
    struct alphabet alphabet;
    alphabet_make(&alphabet);
    *count = 0;
    for (uint64_t at = 0; at < special->count;) {
        uint32_t b = 0;
        while (b < 256 && (alphabet.counts[b] > special->count - at ||
                           memcmp(alphabet.texts[b], special->bytes + at, alphabet.counts[b]) != 0))
            b++;
        if (b == 256)
            return false;
        into[(*count)++] = (uint8_t)b;
        at += alphabet.counts[b];
    }
    return *count > 0;
}

/* ---- content of the files ---- */

static void append_rank_file(struct growing *g, const struct train_vocabulary *vocabulary)
{
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        append_base64(g, vocabulary->tokens[id].bytes, vocabulary->tokens[id].count);
        append(g, " ", 1);
        append_number(g, id);
        append(g, "\n", 1);
    }
}

static void append_specials(struct growing *g, const struct train_vocabulary *vocabulary,
                            const struct train_settings *settings)
{
    append(g, "{", 1);
    for (uint32_t i = 0; i < settings->special_count; i++) {
        append_text(g, i ? ",\n  " : "\n  ");
        append_string(g, settings->specials[i].bytes, settings->specials[i].count);
        append(g, ": ", 2);
        append_number(g, vocabulary->count + (uint64_t)i);
    }
    append_text(g, "\n}\n");
}

static void append_split(struct growing *g, const char *regex)
{
    append_text(g, "      {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
    append_string(g, (const uint8_t *)regex, strlen(regex));
    append_text(g, "}, \"behavior\": \"Isolated\", \"invert\": false},\n");
}

static void append_pre_tokenizer(struct growing *g, const char *pattern)
{
    static const char byte_level[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
                                     "\"use_regex\": ";
    const struct split_rules *rules = split_rules_named(pattern);
    append_text(g, "  \"pre_tokenizer\": ");
    if (rules == split_rules_named("gpt2")) { /* the pattern that is built into ByteLevel */
        append_text(g, byte_level);
        append_text(g, "true},\n");
        return;
    }
    append_text(g, "{\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n");
    if (rules->deepseek)
        for (int i = 0; i < SPLIT_STEPS; i++)
            append_split(g, split_deepseek_steps[i]);
    else
        append_split(g, split_rules_regex(rules));
    append_text(g, "      ");
    append_text(g, byte_level);
    append_text(g, "false}\n    ]\n  },\n");
}

static void append_tokenizer_json(struct growing *g, const struct train_vocabulary *vocabulary,
                                  const struct train_settings *settings)
{
    struct alphabet alphabet;
    alphabet_make(&alphabet);
    append_text(g, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    for (uint32_t i = 0; i < settings->special_count; i++) {
        append_text(g, i ? ",\n    {\"id\": " : "\n    {\"id\": ");
        append_number(g, vocabulary->count + (uint64_t)i);
        append_text(g, ", \"content\": ");
        append_string(g, settings->specials[i].bytes, settings->specials[i].count);
        append_text(g, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                       "\"special\": true}");
    }
    append_text(g, settings->special_count ? "\n  ],\n" : "],\n");
    append_text(g, "  \"normalizer\": null,\n");
    append_pre_tokenizer(g, settings->pattern);
    append_text(
        g, "  \"post_processor\": null,\n  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
           "\"trim_offsets\": true, \"use_regex\": true},\n"
           "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
           "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
           "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n    \"vocab\": {");
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        append_text(g, id ? ",\n      \"" : "\n      \"");
        append_spelling(g, &alphabet, &vocabulary->tokens[id]);
        append_text(g, "\": ");
        append_number(g, id);
    }
    append_text(g, "\n    },\n    \"merges\": [");
    for (uint32_t i = 0; i + 256 < vocabulary->count; i++) {
        append_text(g, i ? ",\n      \"" : "\n      \"");
        append_spelling(g, &alphabet, &vocabulary->tokens[vocabulary->merges[i].left]);
        append(g, " ", 1);
        append_spelling(g, &alphabet, &vocabulary->tokens[vocabulary->merges[i].right]);
        append(g, "\"", 1);
    }
    append_text(g, vocabulary->count > 256 ? "\n    ]\n  }\n}\n" : "]\n  }\n}\n");
}

/* ---- files ---- */

static enum tokmap_status exists_check(const struct train_files *files, struct tokmap_error *error)
{
    struct os_stat stat;
    /* Without the locks: what a killed writer has left may be there, too. */
    if (files->fds[FILES - 1] < 0 && !os_lstat(files->partials[FILES - 1], &stat))
        return TOKMAP_OK;
    for (int i = 0; i < FILES; i++)
        if (!files->replace && !os_lstat(files->paths[i], &stat))
            return error_set(error, TOKMAP_ERROR_EXISTS, files->paths[i], TOKMAP_NO_OFFSET,
                             "the output already exists; choose another name, or use --force");
    return TOKMAP_OK;
}

static struct file_group set_of(const struct train_files *files)
{
    return (struct file_group){FILES, files->paths, files->partials, files->replaced};
}

static int take_back(void *user)
{
    const struct file_group group = set_of(user);
    return file_group_take_back(&group);
}

static enum tokmap_status cannot_create(int system, const char *path, struct tokmap_error *error)
{
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET,
                         "another process is writing this output; wait for it, or choose another name");
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the output cannot be created%s",
                            system == EACCES || system == EPERM
                                ? "; its folder may not be writable for you, or the file may belong to another user"
                                : "");
}

/* Creates the partial files and locks them, that of the last file first: whoever has it may look at the others. Without
 * special tokens, what a killed writer has left of theirs is removed. */
static enum tokmap_status partials_open(struct train_files *files, struct tokmap_error *error)
{
    const struct file_group group = set_of(files);
    for (int i = FILES - 1; i >= 0; i--) {
        if (!i && !files->specials) {
            (void)os_unlink(files->partials[i]);
            continue;
        }
        const int system =
            partial_file_open(files->partials[i], i == FILES - 1 ? take_back : NULL, files, &files->fds[i]);
        if (system)
            return cannot_create(system, files->partials[i], error);
    }
    const int system = file_group_finish(&group);
    return system ? cannot_create(system, files->paths[FILES - 1], error) : exists_check(files, error);
}

enum tokmap_status train_files_open(struct train_files **files, const char *prefix, bool specials, bool replace,
                                    struct tokmap_error *error)
{
    static const char partial[] = ".partial", replaced[] = ".replaced";
    assert(prefix);
    *files = NULL;
    if (!*path_name(prefix))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET,
                         "the name of the output is empty or names a folder; give a prefix, for example data/web");
    struct train_files *made = calloc(1, sizeof *made);
    enum tokmap_status status = made ? TOKMAP_OK : error_set_memory(error, "the output's names", sizeof *made);
    if (status)
        return status;
    made->replace = replace;
    made->specials = specials;
    for (int i = 0; i < FILES; i++)
        made->fds[i] = -1;
    for (int i = 0; i < FILES && !status; i++) {
        const size_t bytes = strlen(prefix) + strlen(endings[i]) + sizeof replaced;
        made->paths[i] = malloc(bytes);
        made->partials[i] = malloc(bytes);
        made->replaced[i] = malloc(bytes);
        if (!made->paths[i] || !made->partials[i] || !made->replaced[i]) {
            status = error_set_memory(error, "the output's names", bytes);
            break;
        }
        (void)snprintf(made->paths[i], bytes, "%s%s", prefix, endings[i]);
        (void)snprintf(made->partials[i], bytes, "%s%s%s", prefix, endings[i], partial);
        (void)snprintf(made->replaced[i], bytes, "%s%s%s", prefix, endings[i], replaced);
    }
    if (!status)
        status = exists_check(made, error);
    if (!status)
        status = partials_open(made, error);
    if (status)
        train_files_abort(made);
    else
        *files = made;
    return status;
}

void train_files_abort(struct train_files *files)
{
    if (!files)
        return;
    for (int i = 0; i < FILES; i++) {
        if (files->fds[i] >= 0) {
            (void)os_unlink(files->partials[i]);
            os_close(files->fds[i]);
        }
        free(files->paths[i]);
        free(files->partials[i]);
        free(files->replaced[i]);
    }
    free(files);
}

static enum tokmap_status file_write(struct train_files *files, int i, struct growing *g, struct tokmap_error *error)
{
    if (g->failed)
        return error_set_memory(error, "the vocabulary's files", g->count);
    int system = os_write(files->fds[i], g->bytes, g->count);
    if (!system)
        system = os_sync(files->fds[i]);
    if (system)
        return error_set_system(error, system, files->partials[i], TOKMAP_NO_OFFSET, "the output cannot be written");
    return TOKMAP_OK;
}

enum tokmap_status train_files_commit(struct train_files *files, const struct train_vocabulary *vocabulary,
                                      const struct train_settings *settings, struct tokmap_error *error)
{
    struct growing g = {NULL, 0, 0, false};
    enum tokmap_status status = TOKMAP_OK;
    assert(vocabulary->count >= 256 && (files->specials || !settings->special_count));
    for (int i = 0; i < FILES && !status; i++) {
        if (files->fds[i] < 0)
            continue;
        g.count = 0;
        if (i == 0)
            append_specials(&g, vocabulary, settings);
        else if (i == 1)
            append_rank_file(&g, vocabulary);
        else
            append_tokenizer_json(&g, vocabulary, settings);
        status = file_write(files, i, &g, error);
    }
    free(g.bytes);
    if (!status)
        status = exists_check(files, error);
    const struct file_group group = set_of(files);
    const bool made[FILES] = {files->specials, true, true};
    if (!status) {
        status = file_group_commit(&group, made, error);
        for (int i = 0; i < FILES && !status; i++) { /* the partial files have their names */
            os_close(files->fds[i]);
            files->fds[i] = -1;
        }
    }
    train_files_abort(files);
    return status;
}

const char *train_files_name(const struct train_files *files, uint32_t i)
{
    return i < FILES ? files->paths[i] : i < 2 * FILES ? files->partials[i - FILES] : NULL;
}
