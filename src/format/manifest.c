/* SPDX-License-Identifier: MIT */
#include "manifest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "shard_file.h"
#include "text/json_scan.h"
#include "text/path.h"

/* ---- what the about section says ---- */

/* Goes to the value of a member, from the beginning of the section: names inside one another, which end with NULL. */
static bool begin_at(struct json_scan *scan, const struct index *index, const char *const names[])
{
    struct json_string name;
    const char *about;
    uint64_t bytes;
    if (index_about(index, &about, &bytes, NULL))
        return false;
    json_begin(scan, about, bytes);
    for (; *names; names++) {
        bool found = false;
        if (json_kind(scan) == JSON_OBJECT && json_enter_object(scan))
            while (!found && json_member(scan, &name))
                if (!(found = json_name_is(&name, *names)) && !json_skip(scan))
                    break;
        if (!found)
            return false;
    }
    return true;
}

static void text_at(const struct index *index, const char *const names[], char *into, size_t room)
{
    struct json_scan scan;
    struct json_string text;
    if (begin_at(&scan, index, names) && json_kind(&scan) == JSON_STRING && json_text(&scan, &text)) {
        const size_t bytes = text.count < room ? text.count : room - 1;
        memcpy(into, text.bytes, bytes);
        into[bytes] = '\0';
    }
}

void about_facts_read(const struct index *index, struct about_facts *facts)
{
    static const char *const tokenizer[] = {"tokenizer", "name", NULL};
    static const char *const set[] = {"options", "split", "set", NULL};
    static const char *const shares[] = {"options", "split", "shares", NULL};
    struct json_scan scan;
    struct json_string name;
    *facts = (struct about_facts){.sets = 0};
    text_at(index, tokenizer, facts->tokenizer, sizeof facts->tokenizer);
    text_at(index, set, facts->set, sizeof facts->set);
    if (begin_at(&scan, index, shares) && json_kind(&scan) == JSON_OBJECT && json_enter_object(&scan))
        for (facts->sets = 1; json_member(&scan, &name) && json_skip(&scan);)
            facts->sets = facts->sets * 0x9e3779b97f4a7c15 + hash64(name.bytes, name.count);
}

#define HEAD_1 "tokmap-shards "
#define HEAD_2 "# tokmap manifest "
#define GROUP "# shards: "
#define SHARDS_MOST ((uint64_t)1 << 24)
#define TOKENS_MOST ((uint64_t)1 << 62)
#define NUMBER_DIGITS 19 /* of the largest number of a line; one of 19 digits fits 64 bits */

static const uint8_t unknown[16];

/* ---- read ---- */

enum tokmap_status manifest_read(const char *path, struct bytes_buffer *text, struct tokmap_error *error)
{
    struct os_stat found;
    int fd, system = os_open(path, OS_READ_NOW, &fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the manifest cannot be opened");
    enum tokmap_status status = TOKMAP_OK;
    system = os_fstat(fd, &found);
    if (!system && found.bytes > MANIFEST_BYTES_MOST)
        status = error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                           "the manifest has %" PRIu64 " bytes, but the limit is %" PRIu64, found.bytes,
                           MANIFEST_BYTES_MOST);
    else if (!system && !bytes_reserve(text, (size_t)found.bytes + 1))
        status = error_set_memory(error, "the manifest", found.bytes);
    else if (!system)
        system = os_pread(fd, text->bytes, found.bytes, 0, &text->count);
    os_close(fd);
    return system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the manifest cannot be read") : status;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool begins(const char *text, size_t bytes, const char *with)
{
    return bytes >= strlen(with) && !memcmp(text, with, strlen(with));
}

enum tokmap_status manifest_version(const char *path, const char *text, size_t bytes, uint32_t *version,
                                    struct tokmap_error *error)
{
    const bool first = begins(text, bytes, HEAD_1);
    const size_t head = strlen(first ? HEAD_1 : HEAD_2);
    if (!first && !begins(text, bytes, HEAD_2))
        return TOKMAP_ERROR_FORMAT;
    while (bytes > head && is_blank(text[bytes - 1]))
        bytes--;
    *version = first ? 1 : 2;
    if (bytes == head + 1 && text[head] == (first ? '1' : '2'))
        return TOKMAP_OK;
    return error_set_line(error, TOKMAP_ERROR_VERSION, path, 1,
                          "the manifest has version \"%.*s\", but this tokmap reads version %u; use a newer tokmap",
                          (int)min64(bytes - head, 40), text + head, *version);
}

bool manifest_line_states(const char *line, size_t bytes)
{
    return begins(line, bytes, GROUP);
}

struct reading {
    struct manifest *manifest;
    uint64_t line;
    const char *at, *end; /* of the line, what is not read yet */
    const char *zero;     /* the first zero byte of the text; NULL: there is none */
    struct tokmap_error *error;
};

#define BAD(reading, ...)                                                                                              \
    error_set_line((reading)->error, TOKMAP_ERROR_FORMAT, (reading)->manifest->path, (reading)->line, __VA_ARGS__)
#define AGAIN "correct the line, or write the manifest again with `tokmap index MANIFEST`"

/* Reads a word that the line must have here. */
static bool word_read(struct reading *reading, const char *word)
{
    if (!begins(reading->at, (size_t)(reading->end - reading->at), word))
        return false;
    reading->at += strlen(word);
    return true;
}

static inline bool space_read(struct reading *reading)
{
    return reading->at < reading->end && *reading->at++ == ' ';
}

/* Reads a decimal number that begins with no zero. most: below 10^19, so no number of as many digits as it has is too
 * large for 64 bits. */
static inline bool number_read(struct reading *reading, uint64_t most, uint64_t *number)
{
    const char *start = reading->at, *at = start;
    const char *end = reading->end - start > NUMBER_DIGITS ? start + NUMBER_DIGITS : reading->end;
    uint64_t value = 0;
    for (uint32_t digit; at < end && (digit = (uint8_t)(*at - '0')) < 10; at++)
        value = value * 10 + digit;
    reading->at = at;
    *number = value;
    return at > start && value <= most && (*start != '0' || at == start + 1);
}

/* The values of the lower-case digits of base 16, each plus 16; 0 of other bytes. */
static const uint8_t digits[256] = {['0'] = 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, ['a'] = 26, 27, 28, 29, 30, 31};

/* Reads so many bytes in lower-case digits of base 16. */
static inline bool hex_read(struct reading *reading, uint8_t *bytes, size_t count)
{
    const uint8_t *at = (const uint8_t *)reading->at;
    uint32_t all = 16;
    if ((size_t)(reading->end - reading->at) < 2 * count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const uint32_t high = digits[at[2 * i]], low = digits[at[2 * i + 1]];
        all &= high & low;
        bytes[i] = (uint8_t)(high << 4 | (low & 15));
    }
    reading->at += 2 * count;
    return all;
}

static bool number64_read(struct reading *reading, uint64_t *number)
{
    uint8_t bytes[8];
    *number = 0;
    if (!hex_read(reading, bytes, sizeof bytes))
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        *number = *number << 8 | bytes[i];
    return *number != 0;
}

static bool flag_read(struct reading *reading, bool *flag)
{
    *flag = word_read(reading, "yes");
    return *flag || word_read(reading, "no");
}

static bool id_read(struct reading *reading, uint64_t vocabulary, uint64_t *id)
{
    *id = TOKMAP_NO_ID;
    return word_read(reading, "none") || (number_read(reading, UINT32_MAX, id) && *id < vocabulary);
}

static bool set_is_plain(const char *set, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (set[i] <= ' ' || set[i] == 0x7f)
            return false;
    return bytes > 0;
}

/* Reads what follows "# shards: ". */
static enum tokmap_status group_read(struct reading *reading)
{
    struct manifest *manifest = reading->manifest;
    struct manifest_group group = {.width = 0};
    uint64_t width;
    bool good = word_read(reading, "width=") && number_read(reading, 4, &width) && (width == 2 || width == 4) &&
                word_read(reading, " vocabulary=") &&
                number_read(reading, (uint64_t)1 << 8 * width, &group.vocabulary) && word_read(reading, " eod=") &&
                id_read(reading, group.vocabulary, &group.eod_id) && word_read(reading, " bos=") &&
                id_read(reading, group.vocabulary, &group.bos_id) && word_read(reading, " tokenizer=") &&
                (word_read(reading, "none") || hex_read(reading, group.tokenizer, 16)) &&
                word_read(reading, " pages=") && flag_read(reading, &group.pages) && word_read(reading, " sealed=") &&
                flag_read(reading, &group.sealed);
    if (good && reading->at < reading->end) {
        good = word_read(reading, " split=") && number64_read(reading, &group.sets) && word_read(reading, " set=");
        const size_t bytes = (size_t)(reading->end - reading->at);
        good = good && bytes < sizeof group.set && set_is_plain(reading->at, bytes);
        if (good)
            memcpy(group.set, reading->at, bytes);
    }
    if (!good)
        return BAD(reading, "the properties of the shards after \"" GROUP "\" are incomplete or wrong; " AGAIN);
    group.width = (uint32_t)width;
    group.first = manifest->count;
    if (!(manifest->group_count & (manifest->group_count - 1))) {
        const uint64_t capacity = manifest->group_count ? 2 * (uint64_t)manifest->group_count : 1;
        struct manifest_group *groups = realloc(manifest->groups, capacity * sizeof *groups);
        if (!groups)
            return error_set_memory(reading->error, "the manifest", capacity * sizeof *groups);
        manifest->groups = groups;
    }
    manifest->groups[manifest->group_count++] = group;
    return TOKMAP_OK;
}

/* Reads what follows the last tab of a line. */
static enum tokmap_status facts_read(struct reading *reading, struct manifest_shard *shard)
{
    struct manifest *manifest = reading->manifest;
    uint64_t largest;
    if (!manifest->group_count)
        return BAD(reading, "the line states sizes, but there is no line \"" GROUP "...\" before it; " AGAIN);
    const struct manifest_group *group = &manifest->groups[manifest->group_count - 1];
    bool good = number_read(reading, TOKENS_MOST / group->width, &shard->tokens) && space_read(reading) &&
                number_read(reading, INT64_MAX / 4, &shard->documents) && space_read(reading) &&
                number_read(reading, UINT32_MAX, &largest) && space_read(reading) &&
                number_read(reading, INT64_MAX, &shard->index_bytes) && space_read(reading) &&
                hex_read(reading, shard->content, 16);
    if (good && reading->at < reading->end)
        good = space_read(reading) && number64_read(reading, &shard->mask) && reading->at == reading->end;
    if (!good)
        return BAD(reading, "after the tab, a line has the numbers of tokens and documents, the largest id, the bytes "
                            "of the index, and the content id, with a space between them; " AGAIN);
    if (shard->tokens ? !shard->documents || largest >= group->vocabulary : largest != 0)
        return BAD(reading,
                   "no shard has %" PRIu64 " tokens, %" PRIu64 " documents, and the largest id %" PRIu64
                   ", with a vocabulary of %" PRIu64 " ids; " AGAIN,
                   shard->tokens, shard->documents, largest, group->vocabulary);
    shard->largest_id = (uint32_t)largest;
    shard->group = manifest->group_count - 1;
    manifest->stated++;
    return TOKMAP_OK;
}

/* Adds the shard that follows those of the manifest, after it is filled, and its name. */
static enum tokmap_status shard_add(struct reading *reading, const char *name, size_t bytes)
{
    struct manifest *manifest = reading->manifest;
    struct bytes_buffer *names = &manifest->names;
    if (!bytes_reserve(names, bytes + 1))
        return error_set_memory(reading->error, "the manifest", names->count);
    manifest->shards[manifest->count++].name = (uint32_t)names->count;
    memcpy(names->bytes + names->count, name, bytes);
    names->bytes[names->count + bytes] = '\0';
    names->count += bytes + 1;
    return TOKMAP_OK;
}

/* Reads a line after the first one. */
static enum tokmap_status line_read(struct reading *reading, uint32_t version)
{
    struct manifest *manifest = reading->manifest;
    const char *start = reading->at, *end = reading->end;
    if (reading->zero && reading->zero < end)
        return BAD(reading, "the line contains a zero byte; a manifest is a text file with one prefix per line");
    while (end > start && end[-1] == '\r')
        reading->end = --end;
    const bool note = start < end && *start == '#';
    const char *tab = version == 2 && !note ? memrchr(start, '\t', (size_t)(end - start)) : NULL;
    if (version == 2 && note && word_read(reading, GROUP))
        return group_read(reading);
    if (tab)
        end = tab;
    while (start < end && is_blank(*start))
        start++;
    while (start < end && is_blank(end[-1]))
        end--;
    if (start == end && (!tab || tab + 1 == reading->end))
        return TOKMAP_OK;
    if (start < end && *start == '#')
        return TOKMAP_OK;
    if (start == end)
        return BAD(reading, "the line has no name before the tab; " AGAIN);
    if (manifest->count == SHARDS_MOST)
        return error_set(reading->error, TOKMAP_ERROR_LIMIT, manifest->path, TOKMAP_NO_OFFSET,
                         "the dataset has more than %" PRIu64 " shards; use fewer and larger shards", SHARDS_MOST);
    struct manifest_shard *shard = &manifest->shards[manifest->count];
    *shard = (struct manifest_shard){.line = (uint32_t)reading->line, .group = MANIFEST_UNSTATED};
    reading->at = tab ? tab + 1 : reading->end;
    const enum tokmap_status status = reading->at < reading->end ? facts_read(reading, shard) : TOKMAP_OK;
    return status ? status : shard_add(reading, start, (size_t)(end - start));
}

/* Returns the number of lines, also of one without an end. */
static uint64_t lines_count(const char *at, const char *end)
{
    uint64_t count = 1;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        count++;
        at++;
    }
    return count;
}

enum tokmap_status manifest_parse(struct manifest *manifest, const char *path, const char *text, uint64_t bytes,
                                  struct tokmap_error *error)
{
    uint32_t version = 0;
    memset(manifest, 0, sizeof *manifest);
    manifest->path = strdup(path);
    if (!manifest->path)
        return error_set_memory(error, "the path of a manifest", strlen(path));
    struct reading reading = {.manifest = manifest, .error = error, .zero = memchr(text, '\0', bytes)};
    const char *at = text, *end = text + bytes;
    const uint64_t most = min64(lines_count(text, end), SHARDS_MOST);
    const size_t names = bytes / 4; /* of lines with facts, it is more than the names; otherwise they grow */
    manifest->shards = os_memory_large(most * sizeof *manifest->shards);
    manifest->names = (struct bytes_buffer){.bytes = os_memory_large(names + 1), .capacity = names + 1};
    if (!manifest->shards || !manifest->names.bytes)
        return error_set_memory(error, "the manifest", most * sizeof *manifest->shards);
    while (at < end || !reading.line) {
        const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        reading.at = at;
        reading.end = stop ? stop : end;
        at = reading.end + 1;
        const enum tokmap_status status =
            ++reading.line == 1
                ? manifest_version(path, reading.at, (size_t)(reading.end - reading.at), &version, error)
                : line_read(&reading, version);
        if (status)
            return status;
    }
    manifest->lines = reading.line;
    if (!manifest->count)
        return error_set_line(error, TOKMAP_ERROR_NOT_FOUND, path, reading.line,
                              "the manifest names no shard; write one prefix per line below the first line");
    return TOKMAP_OK;
}

char *manifest_index_path(const struct manifest *manifest, const struct manifest_shard *shard)
{
    const char *name = manifest_name(manifest, shard);
    const size_t folder_bytes = path_is_absolute(name) ? 0 : path_folder_bytes(manifest->path);
    return shard_file_index(manifest->path, folder_bytes, name, strlen(name));
}

void manifest_free(struct manifest *manifest)
{
    free(manifest->path);
    free(manifest->shards);
    free(manifest->groups);
    bytes_free(&manifest->names);
    memset(manifest, 0, sizeof *manifest);
}

/* ---- facts ---- */

/* Returns what a manifest states of a shard by its index, but not the place in a split. False: there are no words for
 * the shard. */
static bool facts_of(const struct index *index, struct manifest_shard *shard, struct manifest_group *group)
{
    const struct section_shard *head = &index->shard;
    *shard = (struct manifest_shard){.tokens = head->tokens,
                                     .documents = head->documents,
                                     .index_bytes = index->file_bytes,
                                     .mask = index->streams.offset ? index->streams.hash : 0,
                                     .largest_id = (uint32_t)head->largest_id};
    memset(group, 0, sizeof *group);
    group->width = head->width;
    group->pages = index_has_token_pages(index);
    group->sealed = index_is_sealed(index);
    group->vocabulary = head->vocabulary;
    group->eod_id = head->eod_id;
    group->bos_id = head->bos_id;
    memcpy(group->tokenizer, head->tokenizer, sizeof group->tokenizer);
    memcpy(shard->content, head->content, sizeof shard->content);
    return !index->store.offset && !index->streams.offset == !shard->mask;
}

/* Finds a property of the shards in which two groups differ, apart from the split; NULL if there is none. */
static const char *difference_of(const struct manifest_group *a, const struct manifest_group *b)
{
    return a->width != b->width                                           ? "width"
           : a->vocabulary != b->vocabulary                               ? "vocabulary"
           : a->eod_id != b->eod_id                                       ? "EOD"
           : a->bos_id != b->bos_id                                       ? "BOS"
           : memcmp(a->tokenizer, b->tokenizer, sizeof a->tokenizer) != 0 ? "tokenizer"
           : a->pages != b->pages                                         ? "hashes of pages"
           : a->sealed != b->sealed                                       ? "sealing"
                                                                          : NULL;
}

enum tokmap_status manifest_compare(const struct manifest *manifest, const struct manifest_shard *shard,
                                    const struct index *index, struct tokmap_error *error)
{
    struct manifest_shard found;
    struct manifest_group group;
    char said[40] = "", is[40] = "";
    const bool has_words = facts_of(index, &found, &group);
    const uint64_t numbers[][2] = {{shard->tokens, found.tokens},
                                   {shard->documents, found.documents},
                                   {shard->largest_id, found.largest_id},
                                   {shard->index_bytes, found.index_bytes}};
    static const char *const names[] = {"number of tokens", "number of documents", "largest id", "size of the index"};
    const char *what = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !what; i++)
        if (numbers[i][0] != numbers[i][1]) {
            what = names[i];
            (void)snprintf(said, sizeof said, " (%" PRIu64, numbers[i][0]);
            (void)snprintf(is, sizeof is, ", not %" PRIu64 ")", numbers[i][1]);
        }
    if (!what && memcmp(shard->content, found.content, sizeof found.content) != 0)
        what = "content id";
    if (!what && (shard->mask != found.mask || !has_words))
        what = "mask or store of tokens";
    if (!what)
        what = difference_of(&manifest->groups[shard->group], &group);
    if (!what)
        return TOKMAP_OK;
    return error_set_line(error, TOKMAP_ERROR_MISMATCH, manifest->path, shard->line,
                          "the line states another %s%s%s than the shard %.200s has, which was replaced after the "
                          "manifest was written; restore the shard, or write the manifest again with `tokmap index "
                          "MANIFEST`",
                          what, said, is, index->path);
}

/* ---- write ---- */

__attribute__((format(printf, 2, 3))) static bool printed(struct bytes_buffer *text, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int bytes = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return bytes >= 0 && (size_t)bytes < sizeof line && bytes_append(text, line, (size_t)bytes);
}

static bool id_add(struct bytes_buffer *text, const char *name, uint64_t id)
{
    return id == TOKMAP_NO_ID ? printed(text, " %s=none", name) : printed(text, " %s=%" PRIu64, name, id);
}

static bool group_add(struct bytes_buffer *text, const struct manifest_group *group)
{
    char hex[33] = "none";
    if (memcmp(group->tokenizer, unknown, sizeof unknown) != 0)
        hash128_hex(group->tokenizer, hex);
    return printed(text, GROUP "width=%u vocabulary=%" PRIu64, group->width, group->vocabulary) &&
           id_add(text, "eod", group->eod_id) && id_add(text, "bos", group->bos_id) &&
           printed(text, " tokenizer=%s pages=%s sealed=%s", hex, group->pages ? "yes" : "no",
                   group->sealed ? "yes" : "no") &&
           (!group->sets || printed(text, " split=%016" PRIx64 " set=%s", group->sets, group->set)) &&
           printed(text, "\n");
}

/* Adds the set of a split to which a shard belongs. Returns false if there are no words for it. */
static bool set_of(struct manifest_text *text, const struct index *index, struct manifest_group *group)
{
    if (!text->about || text->about != index->about.hash) {
        about_facts_read(index, &text->facts);
        text->about = index->about.hash;
    }
    if (!text->facts.set[0])
        return true;
    group->sets = text->facts.sets;
    memcpy(group->set, text->facts.set, sizeof group->set);
    return group->sets && set_is_plain(group->set, strlen(group->set));
}

bool manifest_text_begin(struct manifest_text *text)
{
    return text->text.count || printed(&text->text, HEAD_2 "2\n");
}

bool manifest_text_add(struct manifest_text *text, const char *name, const struct index *index)
{
    struct manifest_shard shard;
    struct manifest_group group;
    const bool stated = index && facts_of(index, &shard, &group) && set_of(text, index, &group);
    if (!manifest_text_begin(text))
        return false;
    if (stated && memcmp(&group, &text->group, sizeof group) != 0) {
        if (!group_add(&text->text, &group))
            return false;
        text->group = group;
    }
    /* White space at the front of a name would be cut off, and '#' begins a comment. */
    if (!bytes_append(&text->text, "./", strchr(" \t\r#", *name) ? 2 : 0) ||
        !bytes_append(&text->text, name, strlen(name)))
        return false;
    if (!stated)
        return bytes_append(&text->text, "\t\n", strchr(name, '\t') ? 2 : 0) &&
               (strchr(name, '\t') || bytes_append(&text->text, "\n", 1));
    char hex[33];
    hash128_hex(shard.content, hex);
    return printed(&text->text, "\t%" PRIu64 " %" PRIu64 " %u %" PRIu64 " %s", shard.tokens, shard.documents,
                   shard.largest_id, shard.index_bytes, hex) &&
           (!shard.mask || printed(&text->text, " %016" PRIx64, shard.mask)) && printed(&text->text, "\n");
}

void manifest_text_free(struct manifest_text *text)
{
    bytes_free(&text->text);
    memset(text, 0, sizeof *text);
}
