/* SPDX-License-Identifier: MIT */
/*
 * vocabulary_name.c - the fingerprints here are those that `tokmap tokenizer` prints for the published files.
 *
 * To add a model, open its file, compare some ids with the reference, and copy the fingerprint.
 */
#include "vocabulary_name.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "text/utf8.h"

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

void vocabulary_name(struct pipeline_parts *parts, const char *path)
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
