/* SPDX-License-Identifier: MIT */
#include "olmo_documents.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/error.h"
#include "format/foreign/foreign_formats.h"
#include "platform/os.h"
#include "text/path.h"

#define READ_BYTES ((size_t)1 << 16)
#define LINE_MOST ((size_t)1 << 20) /* of a .csv.gz; a line has an id and a path after its two numbers */

static void csv_close(struct olmo_documents *csv)
{
    if (csv->stream)
        stream_close(csv->stream);
    free(csv->path);
    csv->path = NULL;
}

static enum tokmap_status csv_open(struct olmo_documents *csv, const char *program, const char *tokens_path,
                                   struct tokmap_error *error)
{
    const size_t bytes = strlen(tokens_path);
    struct os_stat found;
    enum tokmap_status status = csv->stream ? TOKMAP_OK : stream_new(&csv->stream, NULL, NULL, error);
    csv->path = path_join("", 0, tokens_path, bytes - (bytes > 4 && !strcmp(tokens_path + bytes - 4, ".npy") ? 4 : 0),
                          ".csv.gz");
    csv->buffer.count = csv->at = 0;
    csv->line = csv->before = 0;
    csv->ended = false;
    if (!status && !csv->path)
        status = error_set_memory(error, "the path of a .csv.gz", bytes);
    if (!status && os_stat(csv->path, &found)) {
        cli_say(program, "%s has no .csv.gz beside it, so documents end at the EOD", tokens_path);
        status = TOKMAP_ERROR_NOT_FOUND;
    }
    if (!status)
        status = stream_open(csv->stream, csv->path, error);
    if (status)
        csv_close(csv);
    return status;
}

/* Takes the next line. *text is NULL at the end. */
static enum tokmap_status csv_line(struct olmo_documents *csv, const char **text, size_t *bytes,
                                   struct tokmap_error *error)
{
    for (;;) {
        const size_t left = csv->buffer.count - csv->at;
        const char *from = left ? (const char *)csv->buffer.bytes + csv->at : NULL;
        const char *stop = left ? memchr(from, '\n', left) : NULL;
        if (stop || csv->ended) {
            *text = from;
            *bytes = stop ? (size_t)(stop - from) : left;
            csv->at += *bytes + (stop != NULL);
            csv->line += left != 0;
            return TOKMAP_OK;
        }
        if (left > LINE_MOST)
            return error_set_line(error, TOKMAP_ERROR_LIMIT, csv->path, csv->line + 1,
                                  "the line has more than %zu bytes; this is not a list of documents", LINE_MOST);
        if (left)
            memmove(csv->buffer.bytes, from, left);
        csv->buffer.count = left;
        csv->at = 0;
        if (!bytes_reserve(&csv->buffer, READ_BYTES))
            return error_set_memory(error, "a line of a .csv.gz", READ_BYTES);
        size_t got = 0;
        enum tokmap_status status =
            stream_read(csv->stream, (char *)csv->buffer.bytes + left, READ_BYTES, &got, &csv->ended, error);
        if (status)
            return status;
        csv->buffer.count += got;
    }
}

enum tokmap_status olmo_documents_read(struct olmo_documents *csv, const char *program, const char *tokens_path,
                                       uint64_t tokens, uint64_t *ends, uint64_t capacity, uint64_t *used,
                                       struct tokmap_error *error)
{
    *used = 0;
    enum tokmap_status status = csv->path ? TOKMAP_OK : csv_open(csv, program, tokens_path, error);
    while (!status && *used < capacity) {
        const char *text = NULL;
        size_t bytes = 0;
        status = csv_line(csv, &text, &bytes, error);
        if (!status && !text)
            status = olmo_check_end(csv->path, csv->line, csv->before, tokens, error);
        if (status || !text)
            break;
        if (bytes && text[bytes - 1] == '\r')
            bytes--;
        if (!bytes)
            continue;
        status = olmo_parse_line(csv->path, csv->line, text, bytes, csv->before, tokens, &csv->before, error);
        if (!status)
            ends[(*used)++] = csv->before;
    }
    if (status || !*used)
        csv_close(csv);
    return status;
}

void olmo_documents_free(struct olmo_documents *csv)
{
    csv_close(csv);
    stream_free(csv->stream);
    bytes_free(&csv->buffer);
}
