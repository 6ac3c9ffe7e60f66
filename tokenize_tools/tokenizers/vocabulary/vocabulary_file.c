/* SPDX-License-Identifier: MIT */
/*
 * vocabulary_file.c - see vocabulary_file.h. A large file is read by several threads: copying it, and making the pages
 * that it is copied to, takes as long as a tenth of all work on it. Each thread reads the next piece that none has
 * taken; a piece begins where a huge page does.
 */
#include "vocabulary_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "engine/added_tokens.h"
#include "json_file.h"
#include "platform/os.h"
#include "text/utf8.h"

#define PIECE_BYTES ((uint64_t)2 << 20)
#define THREADS_MOST 4u

/* Findings of a thread: the first of its pieces that could not be read whole, after which it read no more. */
struct reader {
    uint64_t end; /* end of the bytes that could be read; UINT64_MAX: there is no such piece */
    int failed;   /* 0: the file ends there */
};

struct reading {
    int fd;
    char *text;
    uint64_t bytes;
    uint32_t next; /* the first piece that no thread has taken */
    struct reader readers[THREADS_MOST];
};

static void reading_run(void *user, uint32_t number)
{
    struct reading *reading = user;
    struct reader *reader = &reading->readers[number];
    while (reader->end == UINT64_MAX) {
        const uint64_t from = __atomic_fetch_add(&reading->next, 1, __ATOMIC_RELAXED) * PIECE_BYTES;
        if (from >= reading->bytes)
            return;
        const size_t wanted = (size_t)min64(reading->bytes - from, PIECE_BYTES);
        size_t got;
        reader->failed = os_pread(reading->fd, reading->text + from, wanted, from, &got);
        if (reader->failed || got < wanted)
            reader->end = from + got;
    }
}

/* Reads the file. *got: the bytes before the first place that could not be read, all if there is none. Returns 0, or
 * the errno of that place. 0 there means that the file has become shorter. */
static int read_all(int fd, char *text, uint64_t bytes, uint64_t *got)
{
    struct reading reading = {.fd = fd, .text = text, .bytes = bytes};
    const uint64_t pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    struct reader first = {UINT64_MAX, 0};
    for (uint32_t i = 0; i < THREADS_MOST; i++)
        reading.readers[i].end = UINT64_MAX;
    os_threads_share("tokmap-read", (uint32_t)min64(min64(os_processors(), THREADS_MOST), pieces), reading_run,
                     &reading);
    for (uint32_t i = 0; i < THREADS_MOST; i++)
        if (reading.readers[i].end < first.end)
            first = reading.readers[i];
    *got = min64(first.end, bytes);
    return first.failed;
}

enum tokmap_status vocabulary_file_read(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error)
{
    assert(path && text && bytes);
    int fd, failed = os_open(path, OS_READ_NOW, &fd);
    *text = NULL;
    *bytes = 0;
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the file cannot be opened");
    struct os_stat about;
    enum tokmap_status status = TOKMAP_OK;
    uint64_t got = 0;
    failed = os_fstat(fd, &about);
    if (!failed && about.kind != OS_KIND_FILE)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "this is not a regular file, so it cannot be read as a vocabulary");
    else if (!failed && !about.bytes)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "the file is empty; a vocabulary has at least one token");
    else if (!failed && about.bytes > VOCABULARY_FILE_MOST)
        status =
            error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                      "the file has %" PRIu64 " bytes; tokmap can read vocabulary files of at most 1 GiB", about.bytes);
    else if (!failed && !(*text = os_memory_large((size_t)about.bytes)))
        status = error_set_memory(error, "a vocabulary file", about.bytes);
    else if (!failed)
        failed = read_all(fd, *text, about.bytes, &got);
    if (failed)
        status = error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the file cannot be read");
    if (!status && !got)
        status = error_set(error, TOKMAP_ERROR_TRUNCATED, path, TOKMAP_NO_OFFSET,
                           "the file was emptied while it was read; try again when it is complete");
    if (status) {
        free(*text);
        *text = NULL;
    }
    *bytes = got;
    os_close(fd);
    return status;
}

/* ---- base64 as RFC 4648 defines it: padded, without line breaks, unused bits zero ---- */

/* The value of each character: 0 to 63 for a digit, 64 for '=', 255 for any other. */
#define NONE_4 255, 255, 255, 255
#define NONE_16 NONE_4, NONE_4, NONE_4, NONE_4
#define NONE_128 NONE_16, NONE_16, NONE_16, NONE_16, NONE_16, NONE_16, NONE_16, NONE_16
/* clang-format off */
static const uint8_t digit_values[256] = {
    NONE_16, NONE_16, NONE_4, NONE_4, 255, 255, 255, 62, 255, 255, 255, 63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 255, 255, 255, 64, 255, 255,
    255, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    255, NONE_4,
    255, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
    255, NONE_4,
    NONE_128,
};
/* clang-format on */

uint32_t base64_decode(uint8_t *into, const uint8_t *text, uint64_t count)
{
    uint32_t made = 0;
    if (!count || count % 4 || count > (1u << 24))
        return 0;
    for (uint64_t i = 0; i < count; i += 4) {
        const uint8_t a = digit_values[text[i]], b = digit_values[text[i + 1]], c = digit_values[text[i + 2]];
        const uint8_t d = digit_values[text[i + 3]];
        if (__builtin_expect((a | b | c | d) < 64, 1)) {
            into[made++] = (uint8_t)(a << 2 | b >> 4);
            into[made++] = (uint8_t)(b << 4 | c >> 2);
            into[made++] = (uint8_t)(c << 6 | d);
            continue;
        }
        const bool last = i + 4 == count;
        if ((a | b) > 63 || c > 64 || d > 64 || (c == 64 && d != 64) || (d == 64 && !last))
            return 0;
        if ((c == 64 && (b & 15)) || (c != 64 && d == 64 && (c & 3)))
            return 0; /* the unused bits of the last digit are not zero */
        into[made++] = (uint8_t)(a << 2 | b >> 4);
        if (c != 64)
            into[made++] = (uint8_t)(b << 4 | c >> 2);
        if (d != 64)
            into[made++] = (uint8_t)(c << 6 | d);
    }
    return made;
}

/*
 * ---- names ----
 *
 * The fingerprints here are those that `tokmap tokenizer` prints for the published files. To add a model, open its
 * file, compare some ids with the reference, and copy the fingerprint.
 */

static const struct {
    const char *fingerprint, *name;
} known[] = {
    {"682b3971f7356ce080ca8cdaace6949b", "gpt2"},         {"76df4be1fd2d40272ce75f003ad5485f", "deepseek-v3"},
    {"fcc89d4a47cc03b9af32d2cb4c5fc61c", "gemma"},        {"312d1de33cd50e921fb2b8f4df9d6a30", "gpt-neox-20b"},
    {"365cb76c1a65609e6990d63f8f58e9f0", "llama3"},       {"0dde7283bd249434f765edf9f8c2d673", "llama2"},
    {"184b983f0cfe002c230a39aec71bfe2d", "mistral-nemo"}, {"e07439d43a99537187c745feb804c5b3", "mistral-7b"},
    {"a6efbeecaffc71206b0348303b5e39e5", "qwen2.5"},
};

/* Returns the name of a well-known vocabulary, or NULL. A printed fingerprint is that of the parts and the policy for
 * special tokens; the table has those of the default policy. */
static const char *known_name(const struct pipeline_parts *parts)
{
    uint8_t all[17] = {0};
    char hex[33];
    memcpy(all, parts->fingerprint, 16);
    hash128_store(hash128(all, sizeof all), all);
    hash128_hex(all, hex);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].fingerprint, hex))
            return known[i].name;
    return NULL;
}

/* A part of a path: a file or a folder. */
struct part {
    const char *text;
    size_t bytes;
};

static bool is(const struct part *part, const char *text)
{
    return part->bytes == strlen(text) && !memcmp(part->text, text, part->bytes);
}

/* Cuts the last part off a path of `*bytes` bytes. The part is empty if none is left. */
static struct part part_last(const char *path, size_t *bytes)
{
    while (*bytes && path[*bytes - 1] == '/')
        --*bytes;
    const size_t end = *bytes;
    while (*bytes && path[*bytes - 1] != '/')
        --*bytes;
    return (struct part){path + *bytes, end - *bytes};
}

/* Returns whether a folder is a snapshot in a cache of the Hub: models--OWNER--NAME/snapshots/REVISION. Stores its part
 * OWNER--NAME. */
static bool is_snapshot(const char *path, size_t bytes, struct part *repository)
{
    static const char prefix[] = "models--";
    const struct part snapshots = part_last(path, &bytes);
    const struct part folder = part_last(path, &bytes);
    const size_t skip = sizeof prefix - 1;
    if (!is(&snapshots, "snapshots") || folder.bytes <= skip || memcmp(folder.text, prefix, skip))
        return false;
    *repository = (struct part){folder.text + skip, folder.bytes - skip};
    return true;
}

/* Copies a part to the name, as much of it as fits: without control characters, and for a repository with a slash after
 * its owner. */
static void name_copy(struct pipeline_parts *parts, const struct part *part, bool repository)
{
    size_t made = 0;
    bool owner = repository;
    for (size_t i = 0; i < part->bytes && made + 1 < sizeof parts->name; i++) {
        const bool dashes = owner && i + 1 < part->bytes && !memcmp(part->text + i, "--", 2);
        const unsigned char byte = (unsigned char)part->text[i];
        parts->name[made++] = dashes ? '/' : byte < 0x20 || byte == 0x7F ? '?' : (char)byte;
        i += dashes;
        owner = owner && !dashes;
    }
    parts->name[utf8_cut(parts->name, made)] = '\0'; /* a name that was cut does not end inside a character */
}

/* Sets parts->name: the name that people know, if the fingerprint is that of a well-known vocabulary. Otherwise the
 * name of the file, or that of its folder if many models have a file with this name, such as tokenizer.json. Of a
 * snapshot in the cache of the Hugging Face Hub, the name of the repository. parts->fingerprint is already set. `path`
 * is taken as text, so the name depends on how the path was typed. */
static void vocabulary_name(struct pipeline_parts *parts, const char *path)
{
    static const char *const usual[] = {
        "tokenizer.json", "tekken.json",   "tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
        "source.spm",     "vocab.bpe",     "encoder.json",    "merges.txt",   "vocab.json",
        "vocab.txt",      "tiktoken.model"};
    const char *name = known_name(parts);
    size_t bytes = strlen(path);
    assert(bytes);
    if (name) {
        (void)snprintf(parts->name, sizeof parts->name, "%s", name);
        return;
    }
    const struct part file = part_last(path, &bytes);
    bool common = false;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        common |= is(&file, usual[i]);
    struct part folder = {path, 0}, repository;
    if (common)
        folder = part_last(path, &bytes);
    if (!folder.bytes || is(&folder, ".") || is(&folder, ".."))
        name_copy(parts, &file, false);
    else if (is_snapshot(path, bytes, &repository))
        name_copy(parts, &repository, true);
    else
        name_copy(parts, &folder, false);
}

enum tokmap_status vocabulary_end(struct tokenizer **tokenizer, enum tokmap_status status, struct pipeline_parts *parts,
                                  const char *path, const struct tokmap_tokenizer_options *options,
                                  struct tokmap_error *error)
{
    if (!status) {
        if (!*parts->name)
            vocabulary_name(parts, path);
        status = pipeline_new(tokenizer, parts, options->special, path, error);
    }
    pipeline_parts_free(parts);
    return status;
}

/* ---- special tokens ---- */

void special_list_free(struct special_list *list)
{
    free(list->tokens);
    json_file_end(&list->file);
    free(list->text);
    memset(list, 0, sizeof *list);
}

enum tokmap_status special_list_add(struct special_list *list, const char *text, size_t bytes, uint32_t id,
                                    struct tokmap_error *error)
{
    assert(list->count <= list->room && bytes <= UINT32_MAX);
    if (!list_room(&list->tokens, list->count, &list->room, sizeof *list->tokens))
        return error_set_memory(error, "special tokens", 2 * list->room * sizeof *list->tokens);
    struct added_token *token = &list->tokens[list->count++];
    memset(token, 0, sizeof *token);
    token->text = token->match = (const uint8_t *)text;
    token->bytes = token->match_bytes = (uint32_t)bytes;
    token->id = id;
    token->special = true;
    return TOKMAP_OK;
}

static bool list_parse(struct special_list *list)
{
    struct json_file *file = &list->file;
    struct json_string name;
    const uint8_t *text;
    size_t bytes;
    uint64_t id;
    for (json_enter_object(&file->scan); json_member(&file->scan, &name);) {
        if (!json_file_decode(file, &name, &text, &bytes) || !json_unsigned(&file->scan, &id))
            return false;
        if (!bytes || bytes > UINT16_MAX || id >= BPE_IDS)
            return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                    "a special token has %zu bytes and the id %llu; it must have "
                                    "1 to 65535 bytes and an id below %u",
                                    bytes, (unsigned long long)id, BPE_IDS);
        for (uint32_t i = 0; i < list->count; i++) {
            const struct added_token *token = &list->tokens[i];
            if (token->id == id)
                return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                        "two special tokens have the id %u; give each its own", (unsigned)id);
            if (token->bytes == bytes && !memcmp(token->text, text, bytes))
                return json_file_refuse(file, TOKMAP_ERROR_FORMAT,
                                        "the special token '%.*s' has two ids, %u and %u; remove one of them",
                                        shown(bytes), (const char *)text, (unsigned)token->id, (unsigned)id);
        }
        file->status = special_list_add(list, (const char *)text, bytes, (uint32_t)id, file->error);
        if (file->status)
            return false;
    }
    return json_end(&file->scan);
}

enum tokmap_status special_list_read(struct special_list *list, const char *path, struct tokmap_error *error)
{
    const enum tokmap_status status = vocabulary_file_read(path, &list->text, &list->text_bytes, error);
    if (status)
        return status;
    const bool begun = json_file_begin(&list->file, path, list->text, (size_t)list->text_bytes, error);
    list->file.content = "a JSON object that maps the texts of special tokens to ids";
    if (begun)
        (void)list_parse(list);
    return json_file_status(&list->file);
}
