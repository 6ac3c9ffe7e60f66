/* train_write.c - see train_write.h. */
#include "train_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "pretokenize/pretokenizer.h"
#include "platform/os.h"
#include "unicode/byte_alphabet.h"

#define FILES 3
#define TRIES 8

/* In the order in which they appear. */
static const char *const endings[FILES] = {".specials.json", ".tiktoken", ".json"};

struct train_files {
    char *paths[FILES], *partials[FILES];
    int fds[FILES]; /* -1: not open */
    bool replace, specials;
};

/* ---- text that grows ---- */

struct growing {
    char *bytes;
    size_t count, room;
    bool failed;
};

static void put(struct growing *g, const void *bytes, size_t count)
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

static void put_text(struct growing *g, const char *text)
{
    put(g, text, strlen(text));
}

static void put_number(struct growing *g, uint64_t number)
{
    char text[24];
    put(g, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, number));
}

/* Inside the quotes of a JSON string. */
static void put_escaped(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char text[8];
        if (bytes[i] == '"' || bytes[i] == '\\') {
            text[0] = '\\';
            text[1] = (char)bytes[i];
            put(g, text, 2);
        } else if (bytes[i] < 0x20) {
            put(g, text, (size_t)snprintf(text, sizeof text, "\\u%04x", bytes[i]));
        } else {
            put(g, bytes + i, 1);
        }
    }
}

static void put_string(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    put(g, "\"", 1);
    put_escaped(g, bytes, count);
    put(g, "\"", 1);
}

static void put_base64(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (uint64_t i = 0; i < count; i += 3) {
        const uint64_t left = count - i;
        const uint32_t three =
            (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0u);
        const char four[4] = {digits[three >> 18], digits[three >> 12 & 63], left > 1 ? digits[three >> 6 & 63] : '=',
                              left > 2 ? digits[three & 63] : '='};
        put(g, four, 4);
    }
}

/* ---- the characters that stand for bytes ---- */

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

static void put_spelt(struct growing *g, const struct alphabet *alphabet, const struct train_text *token)
{
    for (uint64_t i = 0; i < token->count; i++)
        put_escaped(g, alphabet->texts[token->bytes[i]], alphabet->counts[token->bytes[i]]);
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

/* ---- what the files hold ---- */

static void put_rank_file(struct growing *g, const struct train_vocabulary *vocabulary)
{
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        put_base64(g, vocabulary->tokens[id].bytes, vocabulary->tokens[id].count);
        put(g, " ", 1);
        put_number(g, id);
        put(g, "\n", 1);
    }
}

static void put_specials(struct growing *g, const struct train_vocabulary *vocabulary,
                         const struct train_settings *settings)
{
    put(g, "{", 1);
    for (uint32_t i = 0; i < settings->special_count; i++) {
        put_text(g, i ? ",\n  " : "\n  ");
        put_string(g, settings->specials[i].bytes, settings->specials[i].count);
        put(g, ": ", 2);
        put_number(g, vocabulary->count + (uint64_t)i);
    }
    put_text(g, "\n}\n");
}

static void put_split(struct growing *g, const char *regex)
{
    put_text(g, "      {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
    put_string(g, (const uint8_t *)regex, strlen(regex));
    put_text(g, "}, \"behavior\": \"Isolated\", \"invert\": false},\n");
}

static void put_pre_tokenizer(struct growing *g, const char *pattern)
{
    static const char byte_level[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
                                     "\"use_regex\": ";
    const struct split_rules *rules = split_rules_named(pattern);
    put_text(g, "  \"pre_tokenizer\": ");
    if (rules == split_rules_named("gpt2")) { /* the one whose pattern ByteLevel has built in */
        put_text(g, byte_level);
        put_text(g, "true},\n");
        return;
    }
    put_text(g, "{\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n");
    if (rules->deepseek)
        for (int i = 0; i < SPLIT_STEPS; i++)
            put_split(g, split_deepseek_steps[i]);
    else
        put_split(g, split_rules_regex(rules));
    put_text(g, "      ");
    put_text(g, byte_level);
    put_text(g, "false}\n    ]\n  },\n");
}

static void put_tokenizer_json(struct growing *g, const struct train_vocabulary *vocabulary,
                               const struct train_settings *settings)
{
    struct alphabet alphabet;
    alphabet_make(&alphabet);
    put_text(g, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [");
    for (uint32_t i = 0; i < settings->special_count; i++) {
        put_text(g, i ? ",\n    {\"id\": " : "\n    {\"id\": ");
        put_number(g, vocabulary->count + (uint64_t)i);
        put_text(g, ", \"content\": ");
        put_string(g, settings->specials[i].bytes, settings->specials[i].count);
        put_text(g, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                    "\"special\": true}");
    }
    put_text(g, settings->special_count ? "\n  ],\n" : "],\n");
    put_text(g, "  \"normalizer\": null,\n");
    put_pre_tokenizer(g, settings->pattern);
    put_text(
        g, "  \"post_processor\": null,\n  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
           "\"trim_offsets\": true, \"use_regex\": true},\n"
           "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
           "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
           "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n    \"vocab\": {");
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        put_text(g, id ? ",\n      \"" : "\n      \"");
        put_spelt(g, &alphabet, &vocabulary->tokens[id]);
        put_text(g, "\": ");
        put_number(g, id);
    }
    put_text(g, "\n    },\n    \"merges\": [");
    for (uint32_t i = 0; i + 256 < vocabulary->count; i++) {
        put_text(g, i ? ",\n      \"" : "\n      \"");
        put_spelt(g, &alphabet, &vocabulary->tokens[vocabulary->merges[i].left]);
        put(g, " ", 1);
        put_spelt(g, &alphabet, &vocabulary->tokens[vocabulary->merges[i].right]);
        put(g, "\"", 1);
    }
    put_text(g, vocabulary->count > 256 ? "\n    ]\n  }\n}\n" : "]\n  }\n}\n");
}

/* ---- files ---- */

static enum tokmap_status exists_check(const struct train_files *files, struct tokmap_error *error)
{
    struct os_stat stat;
    for (int i = 0; i < FILES; i++)
        if (!files->replace && !os_lstat(files->paths[i], &stat))
            return error_set(error, TOKMAP_ERROR_EXISTS, files->paths[i], TOKMAP_NO_OFFSET,
                             "the output already exists; choose another name, or use options.replace");
    return TOKMAP_OK;
}

/* Creates or takes over a partial file and locks it. Between its opening and its lock another may have renamed or
 * removed it: then what the name leads to is another file, and it is tried again. */
static enum tokmap_status partial_open(const char *path, int *fd, struct tokmap_error *error)
{
    for (int i = 0; i < TRIES; i++) {
        struct os_stat opened, named;
        int system = os_open(path, OS_WRITE_OPEN, fd);
        if (system) {
            *fd = -1;
            return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the output cannot be made");
        }
        system = os_lock(*fd);
        if (!system && !os_fstat(*fd, &opened) && !os_lstat(path, &named) && opened.inode == named.inode &&
            opened.device == named.device) {
            system = os_truncate(*fd, 0);
            if (!system)
                return TOKMAP_OK;
        }
        os_close(*fd);
        *fd = -1;
        if (system)
            break;
    }
    return error_set(error, TOKMAP_ERROR_BUSY, path, TOKMAP_NO_OFFSET, "another command is writing this output");
}

enum tokmap_status train_files_open(struct train_files **files, const char *prefix, bool specials, bool replace,
                                    struct tokmap_error *error)
{
    static const char partial[] = ".partial";
    struct train_files *made = calloc(1, sizeof *made);
    enum tokmap_status status = made ? TOKMAP_OK : error_set_memory(error, "the output's names", sizeof *made);
    *files = NULL;
    if (status)
        return status;
    made->replace = replace;
    made->specials = specials;
    for (int i = 0; i < FILES; i++)
        made->fds[i] = -1;
    for (int i = 0; i < FILES && !status; i++) {
        const size_t bytes = strlen(prefix) + strlen(endings[i]) + sizeof partial;
        made->paths[i] = malloc(bytes);
        made->partials[i] = malloc(bytes);
        if (!made->paths[i] || !made->partials[i]) {
            status = error_set_memory(error, "the output's names", bytes);
            break;
        }
        (void)snprintf(made->paths[i], bytes, "%s%s", prefix, endings[i]);
        (void)snprintf(made->partials[i], bytes, "%s%s%s", prefix, endings[i], partial);
    }
    if (!status)
        status = exists_check(made, error);
    for (int i = 0; i < FILES && !status; i++)
        if (specials || i)
            status = partial_open(made->partials[i], &made->fds[i], error);
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
    for (int i = 0; i < FILES && !status; i++) {
        if (files->fds[i] < 0)
            continue;
        g.count = 0;
        if (i == 0)
            put_specials(&g, vocabulary, settings);
        else if (i == 1)
            put_rank_file(&g, vocabulary);
        else
            put_tokenizer_json(&g, vocabulary, settings);
        status = file_write(files, i, &g, error);
    }
    free(g.bytes);
    if (!status)
        status = exists_check(files, error);
    if (!status && files->replace && !files->specials)
        (void)os_unlink(files->paths[0]); /* it would name tokens that the new files do not have */
    for (int i = 0; i < FILES && !status; i++) {
        if (files->fds[i] < 0)
            continue;
        const int system = os_rename(files->partials[i], files->paths[i]);
        if (system) {
            status = error_set_system(error, system, files->paths[i], TOKMAP_NO_OFFSET, "the output cannot be renamed");
        } else {
            os_close(files->fds[i]);
            files->fds[i] = -1;
        }
    }
    if (!status) {
        const int system = os_sync_folder(files->paths[FILES - 1]);
        if (system)
            status = error_set_system(error, system, files->paths[FILES - 1], TOKMAP_NO_OFFSET,
                                      "the output's folder cannot be synchronised");
    }
    train_files_abort(files);
    return status;
}

const char *train_files_name(const struct train_files *files, uint32_t i)
{
    return i < FILES ? files->paths[i] : i < 2 * FILES ? files->partials[i - FILES] : NULL;
}
