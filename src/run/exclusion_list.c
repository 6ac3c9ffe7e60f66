/* SPDX-License-Identifier: MIT */
/* exclusion_list.c - see exclusion_list.h. */
#include "exclusion_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "platform/os.h"
#include "text/decimal.h"

#define LINE_MOST 4096                 /* bytes of a line */
#define LIST_MOST ((uint64_t)16 << 30) /* bytes of a list */
#define READ_BYTES ((size_t)64 << 10)  /* at least LINE_MOST + 2 */
#define WORDS_MOST 4                   /* of a line that are looked at */

struct list_reader {
    const char *path;
    uint64_t line;
    const struct run_sources *sources;
    uint64_t last; /* the source of the line before */
    enum tokmap_status (*each)(void *user, const struct exclusion_item *item, struct tokmap_error *error);
    void *user;
    struct tokmap_error *error;
};

struct word {
    const char *at;
    size_t bytes;
};

#define wrong(reader, status, ...)                                                                                     \
    error_set_line((reader)->error, (status), (reader)->path, (reader)->line, __VA_ARGS__)

/* Cuts a line into words; returns how many there are, at most WORDS_MOST. */
static size_t cut(const char *line, size_t bytes, struct word words[WORDS_MOST])
{
    size_t count = 0, at = 0;
    while (count < WORDS_MOST) {
        while (at < bytes && (line[at] == ' ' || line[at] == '\t'))
            at++;
        if (at == bytes)
            break;
        words[count].at = line + at;
        while (at < bytes && line[at] != ' ' && line[at] != '\t')
            at++;
        words[count].bytes = (size_t)(line + at - words[count].at);
        count++;
    }
    return count;
}

static bool is_source(const struct run_source *source, const struct word *name)
{
    return source->name_bytes == name->bytes && memcmp(source->name, name->at, name->bytes) == 0;
}

/* Finds the source that a word names. */
static enum tokmap_status find_source(struct list_reader *reader, const struct word *name, uint64_t *number)
{
    const struct run_sources *sources = reader->sources;
    const int shown = (int)min64(name->bytes, RUN_NAME_MOST);
    *number = reader->last;
    if (is_source(&sources->of[reader->last], name))
        return TOKMAP_OK;
    for (uint64_t i = 0; i < sources->opened; i++) {
        if (!is_source(&sources->of[i], name))
            continue;
        if (i >= sources->count)
            return wrong(reader, TOKMAP_ERROR_FORMAT,
                         "'%.*s' is a validation set, which no step of the run shows; remove the line", shown,
                         name->at);
        *number = reader->last = i;
        return TOKMAP_OK;
    }
    return wrong(reader, TOKMAP_ERROR_FORMAT,
                 "the run has no source '%.*s'; write the name of a source and the number of a document, such as "
                 "'%s 17'",
                 shown, name->at, sources->of[0].name);
}

/* Compares the content id that a comment states for a source with that of its dataset. */
static enum tokmap_status check_content(struct list_reader *reader, const struct word *name, const struct word *id)
{
    struct tokmap_dataset_info info;
    char found[33];
    uint64_t number;
    const enum tokmap_status status = find_source(reader, name, &number);
    if (status)
        return status;
    const struct run_source *source = &reader->sources->of[number];
    dataset_describe(source->dataset, &info);
    hash128_hex(info.content, found);
    if (id->bytes == 32 && memcmp(found, id->at, 32) == 0)
        return TOKMAP_OK;
    return wrong(reader, TOKMAP_ERROR_MISMATCH,
                 "the list is of a dataset with the content id %.*s, but source '%s' is '%.200s' with %s, whose "
                 "documents have other numbers; make the list again with `tokmap find`",
                 (int)min64(id->bytes, 40), id->at, source->name, source->data, found);
}

static enum tokmap_status read_comment(struct list_reader *reader, const char *text, size_t bytes)
{
    struct word words[WORDS_MOST];
    const size_t count = cut(text, bytes, words);
    const size_t key = sizeof EXCLUSION_CONTENT - 1;
    if (!count || words[0].bytes != key || memcmp(words[0].at, EXCLUSION_CONTENT, key) != 0)
        return TOKMAP_OK;
    if (count != 3)
        return wrong(reader, TOKMAP_ERROR_FORMAT,
                     "a comment that begins with '" EXCLUSION_CONTENT "' states the name of a source and the content "
                     "id of its dataset; correct it, or remove the line");
    return check_content(reader, &words[1], &words[2]);
}

/* Reads a line without its end. */
static enum tokmap_status read_line(struct list_reader *reader, const char *line, size_t bytes)
{
    struct word words[WORDS_MOST];
    struct exclusion_item item = {.line = reader->line};
    uint64_t document;
    if (bytes && line[bytes - 1] == '\r')
        bytes--;
    if (reader->line == 1 && bytes >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
        line += 3, bytes -= 3;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)line[i] < 0x20 && line[i] != '\t')
            return wrong(reader, TOKMAP_ERROR_FORMAT,
                         "the line has a control character (0x%02x); a list of documents is plain text, with lines "
                         "such as '%s 17'",
                         (unsigned char)line[i], reader->sources->of[0].name);
    for (size_t i = 0; i < bytes; i++)
        if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
            const bool whole = strspn(line, " \t") == i;
            const enum tokmap_status status = whole ? read_comment(reader, line + i + 1, bytes - i - 1) : TOKMAP_OK;
            if (status)
                return status;
            bytes = i;
        }
    const size_t count = cut(line, bytes, words);
    if (!count)
        return TOKMAP_OK;
    if (count != 2 || !decimal_parse(words[1].at, words[1].bytes, &document))
        return wrong(reader, TOKMAP_ERROR_FORMAT,
                     "'%.*s' is not the name of a source and the number of a document; write both, such as '%s 17'",
                     (int)min64(bytes, 60), line, reader->sources->of[0].name);
    enum tokmap_status status = find_source(reader, &words[0], &item.source);
    if (status)
        return status;
    const struct run_source *source = &reader->sources->of[item.source];
    struct tokmap_error reason = {0};
    status = dataset_document(source->dataset, document, &item.document, &reason);
    if (status == TOKMAP_ERROR_RANGE)
        return wrong(reader, status,
                     "source '%s' (%.200s): %.300s; correct the line, or make the list again with `tokmap find`",
                     source->name, source->data, reason.message);
    if (status)
        return wrong(reader, status, "document %" PRIu64 " of source '%s' (%.200s) cannot be found: %.300s", document,
                     source->name, source->data, reason.message);
    return reader->each(reader->user, &item, reader->error);
}

/* Reads the lines of a file. */
static enum tokmap_status read_lines(struct list_reader *reader, int fd, char *buffer)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t total = 0;
    size_t held = 0;
    for (bool ended = false; !status && !ended;) {
        size_t got, done = 0;
        const int failed = os_read(fd, buffer + held, READ_BYTES - held, &got);
        if (failed)
            return error_set_system(reader->error, failed, reader->path, total, "cannot read the list of documents");
        ended = got == 0;
        held += got;
        total += got;
        if (total > LIST_MOST)
            return error_set(
                reader->error, TOKMAP_ERROR_LIMIT, reader->path, TOKMAP_NO_OFFSET,
                "the list has more than 16 GiB, the limit for a list of documents; leave the documents out "
                "of the dataset, or check that the file is a list");
        while (!status && done < held) {
            const char *line = buffer + done, *end = memchr(line, '\n', held - done);
            const size_t bytes = end ? (size_t)(end - line) : held - done;
            if (!end && !ended && bytes <= LINE_MOST)
                break;
            reader->line++;
            if (bytes > LINE_MOST)
                return wrong(reader, TOKMAP_ERROR_FORMAT,
                             "the line has more than %d bytes; a list of documents has lines such as '%s 17'",
                             LINE_MOST, reader->sources->of[0].name);
            status = read_line(reader, line, bytes);
            done += bytes + (end != NULL);
        }
        held -= done;
        memmove(buffer, buffer + done, held);
    }
    return status;
}

enum tokmap_status exclusion_list_read(const char *path, const struct run_sources *sources,
                                       enum tokmap_status (*each)(void *user, const struct exclusion_item *item,
                                                                  struct tokmap_error *error),
                                       void *user, struct tokmap_error *error)
{
    struct list_reader reader = {.path = path, .sources = sources, .each = each, .user = user, .error = error};
    int fd;
    const int failed = os_open(path, OS_READ, &fd);
    if (failed && strstr(path, "://"))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "a list of documents cannot be read from a URL; copy it to a disk of this machine");
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "cannot open the list of documents");
    char *buffer = malloc(READ_BYTES);
    const enum tokmap_status status =
        buffer ? read_lines(&reader, fd, buffer) : error_set_memory(error, "a list of documents", READ_BYTES);
    free(buffer);
    os_close(fd);
    return status;
}
