/* SPDX-License-Identifier: MIT */
#include "corpus_range.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus_state.h"
#include "parquet_open.h"
#include "record_scan.h"
#include "remote/remote_url.h"

#define READ_BYTES ((size_t)256 << 10)
#define PASS_BYTES ((size_t)64 << 10)

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
    if (!strcmp(path, "-"))
        return TOKMAP_OK;
    if (format == CORPUS_PARQUET)
        *cut = CORPUS_CUT_GROUPS;
    if (remote_kind(path) || format == CORPUS_PARQUET || (format != CORPUS_JSONL && options->format != CORPUS_AUTO))
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
    struct parquet_shared shared = {NULL, NULL};
    const struct corpus_range all = {.begin = 0}; /* whose footer is kept */
    struct tokmap_error why;
    *cut = (struct parquet_cut){.count = 0};
    enum tokmap_status status = parquet_open(&source, path, options, &all, &shared, &why);
    if (!status)
        status = parquet_cut_make(cut, parquet_source_footer(source), part_bytes, &why);
    parquet_source_close(source);
    parquet_shared_free(&shared);
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

/* ---- continue ---- */

static enum tokmap_status changed(const struct corpus *corpus, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_MISMATCH, corpus->file.path ? stream_name(corpus->file.path) : NULL,
                     TOKMAP_NO_OFFSET, "the inputs have changed since this work began; start over with --no-resume");
}

/* Checks that a URL names the file that the work has read a part of: the server says so, or the file was replaced. */
static enum tokmap_status version_compare(const struct corpus *corpus, const struct corpus_place *place,
                                          struct tokmap_error *error)
{
    const struct byte_source *source = stream_source(corpus->stream);
    char what[160] = "has another ETag or date than when this work began, so it was replaced";
    const uint64_t bytes = source->bytes;
    const bool sizes_differ = bytes != place->stored && bytes != UINT64_MAX && place->stored != UINT64_MAX;
    if (source->version == place->version && !sizes_differ)
        return TOKMAP_OK;
    if (sizes_differ)
        (void)snprintf(what, sizeof what, "had %" PRIu64 " bytes when this work began, and now it has %" PRIu64,
                       place->stored, bytes);
    return error_set(error, TOKMAP_ERROR_MISMATCH, corpus->file.path, TOKMAP_NO_OFFSET,
                     "this input %s; bring the old one back and repeat the command to continue, or start over with "
                     "--no-resume",
                     what);
}

/* Reads up to the place, from the nearest frame of a compressed file on, and keeps what the last read returns more. */
static enum tokmap_status pass_over(struct corpus *corpus, const struct corpus_place *place, struct tokmap_error *error)
{
    const uint64_t offset = place->offset;
    char *buffer = malloc(PASS_BYTES);
    enum tokmap_status status = buffer ? TOKMAP_OK : error_set_memory(error, "the beginning of an input", PASS_BYTES);
    uint64_t line = 1;
    char last = '\n';
    bool end = false;
    for (uint64_t done = 0; done < offset && !status;) {
        size_t got = 0;
        if (end)
            status = changed(corpus, error);
        else if (corpus->options.stop && corpus->options.stop(corpus->options.user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        else
            status = stream_read(corpus->stream, buffer, PASS_BYTES, &got, &end, error);
        const uint64_t more = done + got > offset ? done + got - offset : 0;
        if (!status && more) {
            corpus->carry.bytes = malloc((size_t)more);
            corpus->carry.count = corpus->carry.capacity = more;
            if (corpus->carry.bytes)
                memcpy(corpus->carry.bytes, buffer + (got - more), (size_t)more);
            else
                status = error_set_memory(error, "the beginning of an input", more);
        }
        line += record_scan_lines(buffer, got - more);
        last = got > more ? buffer[got - more - 1] : last;
        done += got;
        if (!status && done < offset && stream_seek(corpus->stream, offset))
            break;
        if (!status && done < place->frame_begins && place->frame_begins <= offset &&
            stream_seek_frame(corpus->stream, place->frame_stored, place->frame_begins)) {
            done = place->frame_begins;
            end = false;
        }
    }
    free(buffer);
    if (!status && stream_is_feed(corpus->stream) && (line != place->line || last != '\n')) /* lengths differ */
        status = changed(corpus, error);
    return status;
}

/* Continues a format whose scanner has no state between records. */
static enum tokmap_status lines_resume(struct corpus *corpus, const struct corpus_place *place,
                                       struct tokmap_error *error)
{
    corpus->file.format = (enum corpus_format)place->format;
    corpus->file.begun = true;
    corpus->file.resumed = place->resumed;
    corpus->file.offset = place->offset;
    corpus->file.line = place->line;
    if (corpus->file.format == CORPUS_JSONL) {
        record_scan_begin(&corpus->scan.begin, CORPUS_JSONL);
        corpus->scan.begin.record = place->record;
        corpus->scan.seen = corpus->scan.begin;
    }
    return pass_over(corpus, place, error);
}

/* Reads the open input up to the place without keeping anything. */
static enum tokmap_status read_again(struct corpus *corpus, const struct corpus_place *place,
                                     struct tokmap_error *error)
{
    struct corpus_batch batch = {0};
    const bool parquet = place->format == CORPUS_PARQUET;
    enum tokmap_status status = TOKMAP_OK;
    if (!place->offset) /* the format may be chosen again */
        return TOKMAP_OK;
    corpus->until = parquet ? 0 : place->offset;
    while (!status && corpus->file.open && corpus->file.offset < place->offset) {
        bool full;
        corpus_batch_clear(&batch, 4 * corpus->options.batch_bytes);
        corpus->file.batch_path = NULL;
        corpus->file.batch_places = NULL;
        if (corpus->file.begun && parquet != (corpus->file.format == CORPUS_PARQUET))
            break;
        if (corpus->options.stop && corpus->options.stop(corpus->options.user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        else if (!corpus_batch_reserve(&batch, corpus->options.batch_bytes))
            status = error_set_memory(error, "a batch of the corpus", 0);
        else
            status = corpus->file.reader->read(corpus, &batch, &full, error);
    }
    corpus->until = 0;
    corpus->file.batch_path = NULL;
    corpus->file.batch_places = NULL;
    corpus_batch_free(&batch);
    if (!status && (!corpus->file.open || corpus->file.format != (enum corpus_format)place->format ||
                    corpus->file.offset != place->offset || corpus->file.taken != place->taken))
        status = changed(corpus, error);
    return status;
}

/* Opens the input again that was open. An error of it is not an issue here. */
static enum tokmap_status input_reopen(struct corpus *corpus, const char *path, struct tokmap_error *error)
{
    struct corpus_batch batch = {0};
    enum tokmap_status status = corpus_file_begin(corpus, &batch, path, error);
    if (!status && !corpus->file.open) {
        status = changed(corpus, error);
        if (batch.issue_count && batch.issues[0].error && error) {
            *error = *batch.issues[0].error;
            status = error->status;
        }
    }
    corpus->file.batch_path = NULL;
    corpus_batch_free(&batch);
    return status;
}

enum tokmap_status corpus_resume(struct corpus *corpus, const struct corpus_place *place, uint64_t *carried,
                                 struct tokmap_error *error)
{
    const char *path = NULL;
    enum tokmap_status status = TOKMAP_OK;
    assert(!corpus->named && !corpus->file.open);
    *carried = 0;
    if (place->unfit || (place->open && (!place->inputs || place->format > CORPUS_SEPARATED)))
        return changed(corpus, error);
    for (; corpus->named < place->inputs && !status; corpus->named++) {
        struct tokmap_error why;
        const enum tokmap_status found = inputs_next(corpus->inputs, &path, &why);
        if (found == TOKMAP_END)
            status = changed(corpus, error);
        else if (found == TOKMAP_ERROR_INTERRUPTED || found == TOKMAP_ERROR_MEMORY || found == TOKMAP_ERROR_FORMAT ||
                 (found && place->open && corpus->named + 1 == place->inputs)) {
            status = found;
            if (error)
                *error = why;
        }
    }
    corpus->not_read = *inputs_counts(corpus->inputs);
    corpus->inputs_begun = place->begun;
    corpus->done = place->done;
    corpus->finished_stored = place->finished_stored;
    if (place->open && place->format == CORPUS_PARQUET)
        corpus->parquet_from = (struct parquet_place){place->frame_stored, place->frame_begins, place->record};
    if (status || !place->open)
        return status;
    status = input_reopen(corpus, path, error);
    if (!status)
        status = version_compare(corpus, place, error);
    if (status)
        return status;
    const bool lines = place->format == CORPUS_TEXT || place->format == CORPUS_JSONL;
    if (lines && (corpus->file.format == CORPUS_PARQUET || !byte_source_is_resumable(stream_source(corpus->stream))))
        return changed(corpus, error);
    status = lines ? lines_resume(corpus, place, error) : read_again(corpus, place, error);
    corpus->parquet_from = (struct parquet_place){0};
    *carried = corpus->carry.count;
    return status;
}
