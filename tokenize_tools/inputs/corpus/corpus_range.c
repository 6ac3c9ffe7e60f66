/* SPDX-License-Identifier: MIT */
/* corpus_range.c - see corpus_range.h. */
#include "corpus_range.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus_resume.h"
#include "corpus_state.h"
#include "parquet_documents.h"
#include "record_scan.h"
#include "remote/remote_url.h"

#define READ_BYTES ((size_t)256 << 10)

enum tokmap_status corpus_range_possible(const char *path, const struct corpus_options *options, enum corpus_cut *cut,
                                         struct tokmap_error *error)
{
    char head[4096];
    struct tokmap_error why;
    struct stream *stream;
    size_t got;
    bool end;
    *cut = CORPUS_CUT_NONE;
    const enum corpus_format format = options->format == CORPUS_AUTO ? format_of_name(path) : options->format;
    if (remote_kind(path) || !strcmp(path, "-"))
        return TOKMAP_OK;
    if (format == CORPUS_PARQUET)
        *cut = CORPUS_CUT_GROUPS;
    if (format == CORPUS_PARQUET || (format != CORPUS_JSONL && options->format != CORPUS_AUTO))
        return TOKMAP_OK;
    enum tokmap_status status = stream_new(&stream, NULL, NULL, error);
    if (status)
        return status;
    status = stream_open(stream, path, &why);
    if (!status)
        status = stream_read(stream, head, sizeof head, &got, &end, &why);
    if (!status && format == CORPUS_JSONL && stream_is_regular(stream) && !stream_is_compressed(stream))
        *cut = CORPUS_CUT_LINES;
    if (options->format == CORPUS_AUTO && stream_is_parquet(stream))
        *cut = CORPUS_CUT_GROUPS;
    stream_free(stream);
    /* The contents are the same for all processes. But a failed read may pass, and then others would cut the file. */
    if (status != TOKMAP_ERROR_IO && status != TOKMAP_ERROR_NOT_FOUND && status != TOKMAP_ERROR_MEMORY)
        return TOKMAP_OK;
    if (error)
        *error = why;
    return status;
}

enum tokmap_status corpus_range_groups(const char *path, const struct corpus_options *options, uint64_t part_bytes,
                                       struct parquet_cut *cut, struct tokmap_error *error)
{
    struct parquet_source *source = NULL;
    struct parquet_pool *pool = NULL;
    struct tokmap_error why;
    *cut = (struct parquet_cut){.count = 0};
    enum tokmap_status status = parquet_open(&source, path, options, NULL, &pool, &why);
    if (!status)
        status = parquet_cut_make(cut, parquet_source_footer(source), part_bytes, &why);
    parquet_source_close(source);
    parquet_pool_release(pool);
    if (status != TOKMAP_ERROR_IO && status != TOKMAP_ERROR_NOT_FOUND && status != TOKMAP_ERROR_MEMORY &&
        status != TOKMAP_ERROR_MISMATCH)
        return TOKMAP_OK;
    if (error)
        *error = why;
    return status;
}

/* Reads [at, end) of a file, in buffers that look() gets. It returns true to end the reading. */
static enum tokmap_status file_walk(const char *path, uint64_t at, uint64_t end, bool (*stop)(void *user), void *user,
                                    bool (*look)(uint64_t *found, const char *bytes, size_t count), uint64_t *found,
                                    struct tokmap_error *error)
{
    int fd;
    int system = os_open(path, OS_READ_NOW, &fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the input cannot be opened");
    char *buffer = malloc(READ_BYTES);
    enum tokmap_status status = buffer ? TOKMAP_OK : error_set_memory(error, "the lines of an input", READ_BYTES);
    while (at < end && !status) {
        size_t got = 0;
        if (stop && stop(user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        else if ((system = os_pread(fd, buffer, (size_t)min64(end - at, READ_BYTES), at, &got)))
            status = error_set_system(error, system, path, at, "the input cannot be read");
        if (status || !got || look(found, buffer, got))
            break;
        at += got;
    }
    free(buffer);
    os_close(fd);
    return status;
}

/* *found: the offset of the first of these bytes; becomes that of the byte after the first newline, or of the end. */
static bool newline_find(uint64_t *found, const char *bytes, size_t count)
{
    const char *newline = memchr(bytes, '\n', count);
    *found += newline ? (uint64_t)(newline - bytes) + 1 : count;
    return newline != NULL;
}

enum tokmap_status corpus_range_border(const char *path, uint64_t at, bool (*stop)(void *user), void *user,
                                       uint64_t *border, struct tokmap_error *error)
{
    struct os_stat found;
    *border = at ? at - 1 : 0;
    const enum tokmap_status status =
        at ? file_walk(path, at - 1, UINT64_MAX, stop, user, newline_find, border, error) : TOKMAP_OK;
    if (!status && at && !os_stat(path, &found)) /* the file may end before */
        *border = min64(*border, found.bytes);
    return status;
}

static bool newlines_count(uint64_t *found, const char *bytes, size_t count)
{
    *found += record_scan_lines(bytes, count);
    return false;
}

enum tokmap_status corpus_range_lines(const char *path, uint64_t end, bool (*stop)(void *user), void *user,
                                      uint64_t *lines, struct tokmap_error *error)
{
    *lines = 0;
    return file_walk(path, 0, end, stop, user, newlines_count, lines, error);
}

enum tokmap_status corpus_range_begin(struct corpus *corpus, uint64_t *carried, struct tokmap_error *error)
{
    const uint64_t begin = corpus->options.range.begin;
    /* The bytes before count neither as read nor as done: finished_stored takes them back, modulo 2^64. */
    const struct corpus_place place = {.inputs = 1,
                                       .begun = 1,
                                       .open = 1,
                                       .format = CORPUS_JSONL,
                                       .offset = begin,
                                       .line = 1,
                                       .finished_stored = 0 - begin};
    *carried = 0;
    return begin ? corpus_resume(corpus, &place, carried, error) : TOKMAP_OK;
}
