/* SPDX-License-Identifier: MIT */
/*
 * corpus.c - see corpus.h. Fills batches with raw bytes, and cuts them where a line or a character ends.
 *
 * Bytes are read directly to their final position in the batch, so that nothing is copied. The bytes after the last
 * cut, which are less than a line or a character, are carried over into the next batch.
 *
 * Example, with a batch of 32 bytes and lines of 13 bytes: the first read fills the batch with 32 bytes, which are
 * lines 0 and 1 and 6 bytes of line 2. The cut is at byte 26: the batch becomes one part of 26 bytes, and 6 bytes are
 * carried over and begin the next batch. (The size of a real batch is at least 8 KiB.) Records that are not lines are
 * cut in the same way, by a scanner that reads each byte once (record_scan.h).
 *
 * A record that is longer than a batch makes its batch grow, up to options.record_limit, because records are parsed
 * whole. A text document does not: it continues in further parts, and memory stays small for a text of any size. There
 * are two exceptions, in which a text must be held whole (`whole`): the tokenizer cannot process parts; or the document
 * may have to be skipped, which must be known before its first part is packed, and the input is a pipe, which cannot be
 * read twice. A regular file can be read twice: where invalid documents are skipped, a text that does not fit in a
 * batch is first read to its end and only checked (text_prescan()).
 */
#include "corpus.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus_state.h"
#include "parquet_documents.h"
#include "remote/remote_url.h"
#include "stream.h"
#include "text/utf8.h"

#define READ_LEAST 4096 /* bytes of free space that make a read worth its call */
#define ITEMS_MOST 1024 /* a batch with more parts or issues is complete */
#define BOM "\xef\xbb\xbf"

enum tokmap_status corpus_open(struct corpus **corpus, const char *const *operands, size_t count,
                               const struct corpus_options *options, struct tokmap_error *error)
{
    assert(operands || !count);
    struct corpus *made = calloc(1, sizeof *made);
    *corpus = NULL;
    if (!made)
        return error_set_memory(error, "the reader of the inputs", sizeof *made);
    made->options = *options;
    made->options.batch_bytes = max64(options->batch_bytes, 2 * READ_LEAST);
    enum tokmap_status status =
        inputs_new(&made->inputs, operands, count, &made->options.select, options->stop, options->user, error);
    if (!status)
        status = stream_new(&made->stream, options->stop, options->user, error);
    if (status) {
        corpus_close(made);
        return status;
    }
    stream_feed(made->stream, options->feeder, options->feed);
    stream_watch(made->stream, &made->options.select.watch);
    *corpus = made;
    return TOKMAP_OK;
}

void corpus_close(struct corpus *corpus)
{
    if (!corpus)
        return;
    stream_free(corpus->stream);
    parquet_source_close(corpus->parquet);
    next_input_free(&corpus->next);
    parquet_shared_free(&corpus->parquet_shared);
    inputs_free(corpus->inputs);
    free(corpus->file.path);
    free(corpus->carry.bytes);
    free(corpus);
}

enum tokmap_status corpus_exclude(struct corpus *corpus, const char *path, struct tokmap_error *error)
{
    return excluded_files_add(&corpus->excluded, path, error);
}

void corpus_exclude_kinds(struct corpus *corpus, enum excluded_kind (*kind_of)(const void *user, const char *path),
                          const void *user)
{
    corpus->excluded.kind_of = kind_of;
    corpus->excluded.user = user;
}

static bool has_records(const struct corpus *corpus)
{
    return corpus->file.format > CORPUS_TEXT;
}

/* ---- one file ---- */

static uint64_t current_limit(const struct corpus *corpus)
{
    return has_records(corpus) ? corpus->options.record_limit : corpus->options.document_limit;
}

/* ---- streams of bytes ---- */

/* Keeps bytes [from, from + count) of the batch for the next call. */
static enum tokmap_status carry_over(struct corpus *corpus, const struct corpus_batch *batch, uint64_t from,
                                     uint64_t count, struct tokmap_error *error)
{
    assert(from + count <= batch->capacity);
    if (count > corpus->carry.capacity) {
        char *grown = realloc(corpus->carry.bytes, count);
        if (!grown)
            return corpus_no_memory(error);
        corpus->carry.bytes = grown;
        corpus->carry.capacity = count;
    }
    if (count)
        memcpy(corpus->carry.bytes, batch->bytes + from, count);
    corpus->carry.count = count;
    return TOKMAP_OK;
}

/* Copies the places of the columns of a table into the batch, once per batch and file. */
static bool places_keep(struct corpus *corpus, struct corpus_batch *batch)
{
    const char *names[RECORD_FIELDS_MOST];
    if (corpus->file.batch_places || (corpus->file.format != CORPUS_CSV && corpus->file.format != CORPUS_TSV))
        return true;
    const size_t bytes = record_fields(&corpus->options, names) * sizeof corpus->file.places[0];
    uint64_t *copy = corpus_batch_take(batch, bytes);
    if (copy)
        memcpy(copy, corpus->file.places, bytes);
    corpus->file.batch_places = copy;
    return copy != NULL;
}

/* Makes a part of the first `count` bytes from batch->filled on. end: the document ends with them. */
static enum tokmap_status part_add(struct corpus *corpus, struct corpus_batch *batch, uint64_t count, bool end,
                                   struct tokmap_error *error)
{
    /* If this batch has a part of the document already, the new bytes are adjacent to it: the part grows. */
    if (!has_records(corpus) && corpus->file.resumed && corpus->file.batch_path) {
        struct corpus_part *last = &batch->parts[batch->part_count - 1];
        assert(last->unfinished && last->end == batch->filled);
        last->end += count;
        last->unfinished = !end;
        corpus->file.offset += count;
        batch->filled += count;
        return TOKMAP_OK;
    }
    if (!corpus->file.batch_path)
        corpus->file.batch_path = corpus_batch_add_path(batch, corpus->file.path);
    struct corpus_part *part = corpus->file.batch_path ? corpus_batch_add_part(batch) : NULL;
    if (!part || !places_keep(corpus, batch))
        return corpus_no_memory(error);
    part->path = corpus->file.batch_path;
    part->input = corpus->inputs_begun - 1;
    part->begin = batch->filled;
    part->end = batch->filled + count;
    part->offset = corpus->file.offset;
    part->format = corpus->file.format;
    if (has_records(corpus)) {
        const uint64_t lines = record_scan_lines(batch->bytes + part->begin, count);
        part->line = corpus->file.line;
        part->scan = corpus->scan.begin;
        part->columns = corpus->file.columns;
        part->places = corpus->file.batch_places;
        corpus->file.line += lines;
        if (corpus->file.format == CORPUS_JSONL)
            corpus->scan.begin.record += lines;
        else
            corpus->scan.begin = corpus->scan.cut;
        corpus->scan.seen_bytes -= min64(count, corpus->scan.seen_bytes);
        corpus->scan.cut_bytes = 0;
    } else {
        part->resumed = corpus->file.resumed;
        part->unfinished = !end;
        corpus->file.resumed = true;
    }
    corpus->file.offset += count;
    batch->filled += count;
    return TOKMAP_OK;
}

/* Looks for the end of a record that began in earlier bytes. Returns true and sets *used to the bytes up to its end. */
static bool record_ends(struct corpus *corpus, const char *bytes, uint64_t count, uint64_t *used)
{
    enum record_kind kind = RECORD_UNFINISHED;
    *used = count;
    if (has_records(corpus))
        *used = record_scan_take(&corpus->scan.seen, bytes, count, &kind);
    return kind != RECORD_UNFINISHED;
}

/* Counts and closes a file that has been read to its end, when nothing is carried over. */
static enum tokmap_status file_read_end(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error)
{
    struct judgment judgment;
    enum tokmap_status status = TOKMAP_OK;
    if (corpus->file.format == CORPUS_WARC &&
        warc_end_judge(corpus->file.path, &corpus->scan.seen.warc, &judgment) == JUDGED_WRONG)
        status = corpus_file_left_out(corpus, batch, corpus->file.path, 0, judgment.reason, &judgment.why, error);
    else
        corpus_batch_count_file(batch, corpus->file.format);
    corpus_file_end(corpus, batch);
    return status;
}

/* Skips a record or document that is over its limit: reads to its end without keeping it, and adds an issue. `have`
 * bytes of it are in the batch. */
static enum tokmap_status skip_over_limit(struct corpus *corpus, struct corpus_batch *batch, uint64_t have, bool end,
                                          struct tokmap_error *error)
{
    struct corpus_issue *issue = corpus_issue_add(corpus, batch, CORPUS_ISSUE_LIMIT, corpus->file.path);
    if (!issue)
        return corpus_no_memory(error);
    const bool records = has_records(corpus);
    issue->limit = current_limit(corpus);
    issue->record = corpus->scan.begin.record;
    issue->line = records ? corpus->file.line : 0;
    issue->offset = corpus->file.offset;
    corpus->carry.count = 0;
    corpus->file.line += record_scan_lines(batch->bytes + batch->filled, have);
    if (corpus->file.format == CORPUS_JSONL)
        corpus->scan.seen = corpus->scan.begin;
    uint64_t skipped = have;
    char *buffer = batch->bytes + batch->filled;
    const size_t room = (size_t)min64(batch->capacity - batch->filled, corpus->options.batch_bytes);
    struct tokmap_error why;
    enum tokmap_status status = TOKMAP_OK;
    bool found = false;
    while (!corpus->done && !end && !found && !status) {
        size_t got;
        status = stream_read(corpus->stream, buffer, room, &got, &end, &why);
        batch->counts.stream_bytes += got;
        uint64_t used = got;
        found = got && record_ends(corpus, buffer, got, &used);
        corpus->file.line += record_scan_lines(buffer, used);
        if (found) {
            const enum tokmap_status carried = carry_over(corpus, batch, batch->filled + used, got - used, error);
            if (carried)
                return carried;
        }
        skipped += used;
    }
    issue->bytes = skipped;
    issue->left_out = CORPUS_REASON_TOO_LONG;
    issue->is_file = !records && !status; /* if the read failed, the file is counted below */
    corpus_batch_count_issue(batch, issue);
    corpus->file.offset += skipped;
    corpus->scan.begin = corpus->scan.seen;
    corpus->scan.cut_bytes = corpus->scan.seen_bytes = 0;
    if (status) {
        status = corpus_file_failed(corpus, batch, corpus->file.path, corpus->carry.count, status, &why, error);
        corpus_file_end(corpus, batch);
        return status;
    }
    if (end && !corpus->carry.count && records)
        return file_read_end(corpus, batch, error);
    if (end && !corpus->carry.count)
        corpus_file_end(corpus, batch);
    return TOKMAP_OK;
}

/* Reads a whole text file and only checks it. Sets *bytes to its size and *offset to the position of the first invalid
 * byte, or to TOKMAP_NO_OFFSET. */
static enum tokmap_status text_prescan(const struct corpus *corpus, uint64_t *bytes, uint64_t *offset,
                                       struct tokmap_error *error)
{
    const size_t room = corpus->options.batch_bytes;
    struct stream *stream;
    char *buffer = malloc(room);
    *bytes = 0;
    *offset = TOKMAP_NO_OFFSET;
    if (!buffer)
        return corpus_no_memory(error);
    enum tokmap_status status = stream_new(&stream, corpus->options.stop, corpus->options.user, error);
    if (!status)
        status = stream_open(stream, corpus->file.path, error);
    uint64_t have = 0;
    for (bool end = false; !status && !end;) {
        size_t got;
        status = stream_read(stream, buffer + have, room - have, &got, &end, error);
        *bytes += got;
        have += got;
        const uint64_t cut = end ? have : utf8_cut(buffer, have);
        if (*offset == TOKMAP_NO_OFFSET && corpus->options.invalid != CORPUS_INVALID_REPLACE) {
            const uint64_t valid = utf8_valid_prefix(buffer, cut);
            if (valid < cut)
                *offset = *bytes - have + valid;
        }
        memmove(buffer, buffer + cut, have - cut);
        have -= cut;
    }
    stream_free(stream);
    free(buffer);
    return status;
}

/* Checks a text that does not fit in a batch before its first part is delivered, where invalid documents are skipped.
 * Sets *skip if it cannot be used; its issue and its bytes are then recorded, and the file is closed. */
static enum tokmap_status text_check(struct corpus *corpus, struct corpus_batch *batch, uint64_t have, bool *skip,
                                     struct tokmap_error *error)
{
    struct tokmap_error why;
    uint64_t bytes, offset;
    *skip = false;
    enum tokmap_status status = text_prescan(corpus, &bytes, &offset, &why);
    if (!status && offset == TOKMAP_NO_OFFSET)
        return TOKMAP_OK;
    *skip = true;
    bytes = max64(bytes, have);
    batch->counts.stream_bytes += bytes - have;
    if (status) {
        status = corpus_file_failed(corpus, batch, corpus->file.path, bytes, status, &why, error);
    } else {
        struct corpus_issue *issue = corpus_issue_add(corpus, batch, CORPUS_ISSUE_ENCODING, corpus->file.path);
        if (!issue)
            return corpus_no_memory(error);
        issue->reason = "";
        issue->offset = offset;
        issue->bytes = bytes;
        issue->left_out = CORPUS_REASON_ENCODING;
        issue->is_file = true;
        corpus_batch_count_issue(batch, issue);
    }
    corpus_file_end(corpus, batch);
    return status;
}

/* Returns how many of the `have` bytes from batch->filled on are whole records; 0 if none ends in them. The first
 * `seen` bytes contain no newline. */
static uint64_t whole_records(struct corpus *corpus, const struct corpus_batch *batch, uint64_t have, uint64_t seen)
{
    const char *bytes = batch->bytes + batch->filled;
    assert(seen <= have && corpus->scan.seen_bytes <= have);
    if (corpus->file.format == CORPUS_JSONL) {
        const char *newline = memrchr(bytes + seen, '\n', have - seen);
        return newline ? (uint64_t)(newline - bytes) + 1 : 0;
    }
    if (!corpus->scan.seen_bytes)
        corpus->scan.seen = corpus->scan.begin;
    while (corpus->scan.seen_bytes < have) {
        enum record_kind kind;
        corpus->scan.seen_bytes += record_scan_take(&corpus->scan.seen, bytes + corpus->scan.seen_bytes,
                                                    have - corpus->scan.seen_bytes, &kind);
        if (kind == RECORD_UNFINISHED)
            break;
        corpus->scan.cut_bytes = corpus->scan.seen_bytes;
        corpus->scan.cut = corpus->scan.seen;
    }
    return corpus->scan.cut_bytes;
}

/* Actions on the bytes that were read. BATCH_FULL: process the batch without them, and carry them over. */
enum cut_decision { CUT, READ_MORE, BATCH_FULL, OVER_LIMIT };

/* Decides about the `have` bytes from batch->filled on; the first `seen` of them contain no newline. For CUT, *cut is
 * the number of bytes that make a part. */
static enum cut_decision choose_cut(struct corpus *corpus, const struct corpus_batch *batch, uint64_t have,
                                    uint64_t seen, bool end, uint64_t *cut)
{
    const char *bytes = batch->bytes + batch->filled;
    const uint64_t limit = current_limit(corpus);
    const bool room = batch->capacity - batch->filled - have >= READ_LEAST;
    assert(batch->filled + have <= batch->capacity && seen <= have);
    *cut = have;
    if (has_records(corpus)) {
        if (end) {
            if (corpus->file.format == CORPUS_WARC)
                (void)whole_records(corpus, batch, have, seen); /* file_read_end() judges how the file ends */
            return CUT;
        }
        *cut = whole_records(corpus, batch, have, seen);
        if (*cut)
            return CUT;
    } else if (!corpus->file.whole) {
        const struct corpus_options *options = &corpus->options;
        *cut = end ? have : options->cut ? options->cut(options->cut_user, bytes, have) : utf8_cut(bytes, have);
        if (*cut || end)
            return CUT;
    } else if (end) {
        return have > limit ? OVER_LIMIT : CUT;
    }
    if (have > limit)
        return OVER_LIMIT;
    return room || !batch->filled ? READ_MORE : BATCH_FULL;
}

/* Makes room for a read after `have` bytes: a line or document that fills its batch makes the batch grow. */
static enum tokmap_status room_grow(struct corpus *corpus, struct corpus_batch *batch, uint64_t have,
                                    struct tokmap_error *error)
{
    if (batch->capacity - batch->filled - have >= READ_LEAST)
        return TOKMAP_OK;
    const uint64_t usual = corpus->options.batch_bytes;
    if (batch->capacity <= 4 * usual && 2 * batch->capacity > 4 * usual && corpus->options.before_large)
        corpus->options.before_large(corpus->options.user);
    /* The capacity doubles, but not beyond what a line or document within its limit can need. */
    uint64_t most, capacity = 2 * max64(batch->capacity, usual);
    if (!add_overflows(current_limit(corpus), 2 * usual, &most) && have <= current_limit(corpus))
        capacity = min64(capacity, most);
    if (!corpus_batch_reserve(batch, max64(capacity, batch->filled + have + READ_LEAST)))
        return error_set_memory(error, "a long line or document", capacity);
    return TOKMAP_OK;
}

/* Takes the first `count` of the bytes from batch->filled on, which are in no part: a byte order mark, a header. */
static void structure_take(struct corpus *corpus, struct corpus_batch *batch, uint64_t count, uint64_t *have)
{
    assert(count <= *have);
    corpus->file.line += record_scan_lines(batch->bytes + batch->filled, count);
    batch->counts.structure_bytes += count;
    batch->filled += count;
    corpus->file.offset += count;
    *have -= count;
}

static struct first_bytes first_bytes(struct corpus *corpus, const char *bytes, uint64_t count, bool end)
{
    return (struct first_bytes){corpus->file.path, bytes, count, end, &corpus->options, &corpus->file.first_line};
}

/* Takes the header of a table, which is its first line that is not blank. */
static enum judged header_take(struct corpus *corpus, struct corpus_batch *batch, uint64_t *have, bool end,
                               struct judgment *judgment)
{
    for (;;) {
        const char *bytes = batch->bytes + batch->filled;
        enum record_kind kind;
        corpus->scan.seen_bytes += record_scan_take(&corpus->scan.seen, bytes + corpus->scan.seen_bytes,
                                                    *have - corpus->scan.seen_bytes, &kind);
        const uint64_t taken = corpus->scan.seen_bytes;
        if ((kind != RECORD_UNFINISHED ? taken : *have) > corpus->options.record_limit) {
            (void)error_set(&judgment->why, TOKMAP_ERROR_LIMIT, stream_name(corpus->file.path), corpus->file.offset,
                            "the header is longer than the limit of %" PRIu64
                            " bytes, perhaps because a quote is not closed; raise --max-record",
                            corpus->options.record_limit);
            judgment->reason = CORPUS_REASON_TOO_LONG;
            return JUDGED_WRONG;
        }
        if (kind == RECORD_UNFINISHED && !end)
            return JUDGED_MORE;
        const bool blank = kind == RECORD_BLANK || (kind == RECORD_UNFINISHED && !corpus->scan.seen.filled);
        if (!blank) {
            const struct first_bytes header = first_bytes(corpus, bytes, taken, true);
            const enum judged judged = header_read(&header, corpus->file.format, corpus->file.line, corpus->file.offset,
                                                   &corpus->file.columns, corpus->file.places, judgment);
            if (judged != JUDGED)
                return judged;
        }
        batch->counts.blank_lines += kind == RECORD_BLANK;
        structure_take(corpus, batch, taken, have);
        corpus->scan.seen_bytes = 0;
        record_scan_begin(&corpus->scan.seen, corpus->file.format);
        if (!blank || kind == RECORD_UNFINISHED)
            return JUDGED;
    }
}

/* Judges the first bytes of a file, and takes what precedes its records. */
static enum judged file_judge(struct corpus *corpus, struct corpus_batch *batch, uint64_t *have, bool end,
                              struct judgment *judgment)
{
    /* A pipe without a byte is the sign of a command that has failed. A file without a byte is an empty document. */
    if (end && !*have && !corpus->file.offset && stream_source(corpus->stream)->stat.kind != OS_KIND_FILE) {
        (void)error_set(&judgment->why, TOKMAP_ERROR_INPUT, stream_name(corpus->file.path), TOKMAP_NO_OFFSET,
                        "the input ended without a byte; check the command that writes it");
        judgment->reason = CORPUS_REASON_EMPTY;
        return JUDGED_WRONG;
    }
    if (corpus->file.format == CORPUS_AUTO) {
        const struct first_bytes first = first_bytes(corpus, batch->bytes + batch->filled, *have, end);
        const enum judged judged = format_choose(&first, &corpus->file.format, judgment);
        if (judged != JUDGED)
            return judged;
    }
    if (corpus->file.format == CORPUS_WARC && corpus->options.content != CORPUS_CONTENT_TEXT) {
        const struct first_bytes first = first_bytes(corpus, batch->bytes, 0, end);
        return warc_has_no_fields(&first, judgment);
    }
    if (corpus->file.format == CORPUS_TEXT && corpus->options.separator)
        corpus->file.format = CORPUS_SEPARATED;
    if (corpus->file.format == CORPUS_TEXT)
        return JUDGED;
    if (corpus->file.format == CORPUS_SEPARATED) {
        record_scan_begin_separated(&corpus->scan.begin, corpus->options.separator, corpus->options.separator_bytes);
        corpus->scan.seen = corpus->scan.begin;
        return JUDGED;
    }
    if (!corpus->file.offset) {
        /* A short read can end inside the mark. */
        const char *bytes = batch->bytes + batch->filled;
        if (*have < 3 && !end && *have && !memcmp(bytes, BOM, *have))
            return JUDGED_MORE;
        if (*have >= 3 && !memcmp(bytes, BOM, 3))
            structure_take(corpus, batch, 3, have);
    }
    if (!corpus->scan.seen_bytes) {
        record_scan_begin(&corpus->scan.begin, corpus->file.format);
        corpus->scan.seen = corpus->scan.begin;
    }
    if (corpus->file.format == CORPUS_CSV || corpus->file.format == CORPUS_TSV)
        return header_take(corpus, batch, have, end, judgment);
    return JUDGED;
}

/* Ends a file whose read has failed after `have` bytes that are in no part yet. Delivers the whole records among them,
 * makes the error an issue, and closes the file. */
static enum tokmap_status file_damaged(struct corpus *corpus, struct corpus_batch *batch, uint64_t have,
                                       enum tokmap_status status, const struct tokmap_error *why,
                                       struct tokmap_error *error)
{
    const bool started = corpus->file.resumed;
    /* Whole records before the damage are used, and an issue in one of them precedes the issue of the file. */
    const uint64_t cut = corpus->file.begun && has_records(corpus) ? whole_records(corpus, batch, have, 0) : 0;
    if (cut) {
        const enum tokmap_status added = part_add(corpus, batch, cut, false, error);
        if (added)
            return added;
        have -= cut;
    }
    status = corpus_file_failed(corpus, batch, corpus->file.path, have, status, why, error);
    if (!status && started)
        batch->issues[batch->issue_count - 1].fatal = true;
    corpus_file_end(corpus, batch);
    return status;
}

/* Leaves out a file because of its first bytes, and closes it. How many bytes have been read depends on the size of the
 * batch, so the `have` bytes that are not used are not counted. */
static enum tokmap_status file_refused(struct corpus *corpus, struct corpus_batch *batch, uint64_t have,
                                       const struct judgment *judgment, struct tokmap_error *error)
{
    const uint64_t stored = batch->counts.stored_bytes;
    const enum tokmap_status status =
        corpus_file_left_out(corpus, batch, corpus->file.path, 0, judgment->reason, &judgment->why, error);
    corpus_file_end(corpus, batch);
    batch->counts.stream_bytes -= have;
    batch->counts.stored_bytes = stored;
    return status;
}

/* While it is resumed: no record ends where one ended in the work that is continued. */
static enum tokmap_status changed_since(const struct corpus *corpus, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_MISMATCH, stream_name(corpus->file.path), corpus->until,
                     "the input has changed since this work began; start over with --no-resume");
}

/* Adds bytes of the open file to the batch. Sets *full if the batch should be processed now. */
static enum tokmap_status file_read(struct corpus *corpus, struct corpus_batch *batch, bool *full,
                                    struct tokmap_error *error)
{
    uint64_t have = corpus->carry.count, cut = 0, seen = 0;
    enum cut_decision decision;
    bool end = false;
    if (batch->capacity - batch->filled < have + READ_LEAST && batch->filled) {
        *full = true;
        return TOKMAP_OK;
    }
    enum tokmap_status status = corpus_batch_reserve(batch, have + READ_LEAST) ? TOKMAP_OK : corpus_no_memory(error);
    if (status)
        return status;
    if (have)
        memcpy(batch->bytes + batch->filled, corpus->carry.bytes, have);
    corpus->carry.count = 0;
    do {
        status = room_grow(corpus, batch, have, error);
        if (status)
            return status;
        struct tokmap_error why;
        size_t got;
        /* Not more than a batch at a time, because the bytes after the end of a long line are carried over. */
        const uint64_t room = min64(batch->capacity - batch->filled - have, corpus->options.batch_bytes);
        status = stream_read(corpus->stream, batch->bytes + batch->filled + have, (size_t)room, &got, &end, &why);
        batch->counts.stream_bytes += got;
        have += got;
        if (status && corpus->options.format == CORPUS_AUTO && stream_is_parquet(corpus->stream))
            return parquet_file_begin(corpus, batch, error);
        if (status)
            return file_damaged(corpus, batch, have, status, &why, error);
        decision = READ_MORE;
        if (!corpus->file.begun) {
            struct judgment judgment;
            const enum judged judged = file_judge(corpus, batch, &have, end, &judgment);
            if (judged == JUDGED_WRONG)
                return file_refused(corpus, batch, have, &judgment, error);
            corpus->file.begun = judged == JUDGED;
        }
        if (corpus->file.begun) {
            const uint64_t shown = corpus->until ? min64(have, corpus->until - corpus->file.offset) : have;
            decision = choose_cut(corpus, batch, shown, min64(seen, shown), end && shown == have, &cut);
            seen = have;
            if (shown < have && decision != CUT) /* nothing is shown where a header was all that had been taken */
                return shown ? changed_since(corpus, error) : carry_over(corpus, batch, batch->filled, have, error);
        } else if (batch->filled && batch->capacity - batch->filled - have < READ_LEAST) {
            decision = BATCH_FULL;
        }
    } while (decision == READ_MORE);
    if (decision == OVER_LIMIT)
        return skip_over_limit(corpus, batch, have, end, error);
    if (decision == BATCH_FULL) {
        *full = true;
        return carry_over(corpus, batch, batch->filled, have, error);
    }
    const bool may_skip = corpus->options.skip || corpus->options.invalid == CORPUS_INVALID_SKIP;
    if (!has_records(corpus) && !corpus->file.whole && !end && !corpus->file.resumed && may_skip) {
        bool skip;
        status = text_check(corpus, batch, have, &skip, error);
        if (status || skip)
            return status;
    }
    const uint64_t from = batch->filled;
    assert(cut <= have);
    if (cut || (!has_records(corpus) && end))
        status = part_add(corpus, batch, cut, end, error);
    if (!status)
        status = carry_over(corpus, batch, from + cut, have - cut, error);
    if (!status && end && cut == have) { /* while it is resumed, bytes may be left that were read with the last ones */
        batch->counts.empty_files += !corpus->file.offset;
        status = file_read_end(corpus, batch, error);
    }
    return status;
}

static uint64_t file_at(const struct corpus *corpus)
{
    return stream_stored(corpus->stream);
}

static uint64_t file_close(struct corpus *corpus)
{
    stream_close(corpus->stream);
    return stream_stored(corpus->stream);
}

static const struct corpus_reader stream_reader = {file_read, file_at, file_close};

/* ---- all inputs ---- */

enum tokmap_status corpus_file_begin(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                     struct tokmap_error *error)
{
    struct tokmap_error why;
    free(corpus->file.path);
    corpus->file.path = remote_shown(path);
    if (!corpus->file.path)
        return corpus_no_memory(error);
    assert(!corpus->file.open && !corpus->carry.count);
    corpus->file.begun = false;
    corpus->file.named = path;
    corpus->file.format = corpus->options.format;
    if (corpus->file.format == CORPUS_AUTO)
        corpus->file.format = format_of_name(corpus->file.path);
    if (corpus_own_groups(corpus))
        corpus->file.format = CORPUS_PARQUET;
    const bool remote = remote_kind(path) != REMOTE_NONE, ranges = remote && corpus->file.format == CORPUS_PARQUET;
    enum tokmap_status status = ranges ? TOKMAP_OK : stream_open(corpus->stream, path, &why);
    if (!status && !remote) {
        const struct os_stat *stat = &stream_source(corpus->stream)->stat;
        status = excluded_files_check(&corpus->excluded, path, stat, corpus->file.path, &why);
        if (status) {
            corpus->inputs_begun--; /* an output in a folder of inputs does not change their numbers */
            stream_close(corpus->stream);
        }
    }
    if (status)
        return corpus_file_failed(corpus, batch, corpus->file.path, 0, status, &why, error);
    if (corpus->file.format != CORPUS_PARQUET && corpus->options.range.end && corpus->inputs_begun == 1)
        stream_end_at(corpus->stream, corpus->options.range.end);
    corpus->file.open = true;
    corpus->file.reader = &stream_reader;
    corpus->file.batch_path = NULL;
    corpus->file.batch_places = NULL;
    corpus->file.resumed = false;
    corpus->file.offset = corpus->file.taken = corpus->carry.count = corpus->scan.cut_bytes = corpus->scan.seen_bytes =
        0;
    corpus->file.line = 1;
    corpus->file.first_line = (struct first_line){0};
    if (corpus->file.format == CORPUS_PARQUET)
        return parquet_file_begin(corpus, batch, error);
    /* Text that may have to be left out as a whole must be seen whole before any of it is used. */
    const bool may_skip = corpus->options.skip || corpus->options.invalid == CORPUS_INVALID_SKIP;
    corpus->file.whole =
        !corpus->options.cut_anywhere || (may_skip && (corpus->options.cut || !stream_is_regular(corpus->stream)));
    return TOKMAP_OK;
}

/* States where the next batch begins. Before the format of an input is known, there is nothing to continue with. */
static struct corpus_place place_of(const struct corpus *corpus)
{
    struct corpus_place place = {.inputs = corpus->named, .begun = corpus->inputs_begun, .done = corpus->done};
    place.finished_stored = corpus->finished_stored;
    if (!corpus->file.open)
        return place;
    place.open = true;
    place.format = corpus->file.format;
    place.offset = corpus->file.offset;
    place.taken = corpus->file.taken;
    place.line = corpus->file.line;
    place.record = corpus->scan.begin.record;
    if (corpus->parquet) {
        place.frame_stored = corpus->file.group.group;
        place.frame_begins = corpus->file.group.offset;
        place.record = corpus->file.group.taken;
    } else {
        stream_frame_before(corpus->stream, place.offset, &place.frame_stored, &place.frame_begins);
    }
    place.resumed = corpus->file.resumed;
    place.carried = corpus->carry.count;
    place.version = stream_source(corpus->stream)->version;
    place.stored = stream_source(corpus->stream)->bytes;
    place.unfit = !corpus->file.begun || !byte_source_is_resumable(stream_source(corpus->stream));
    return place;
}

bool corpus_is_compressed(const struct corpus *corpus)
{
    return stream_is_compressed(corpus->stream);
}

enum tokmap_status corpus_next(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error)
{
    assert(corpus && batch);
    const uint64_t usual = corpus->options.batch_bytes;
    corpus_batch_clear(batch, 4 * usual);
    corpus->file.batch_path = NULL;
    corpus->file.batch_places = NULL;
    if (!corpus_batch_reserve(batch, usual))
        return corpus_no_memory(error);
    bool full = false;
    enum tokmap_status status = TOKMAP_OK;
    while (!status && !full && !(corpus->done && !corpus->file.open)) {
        const bool something = batch->part_count || batch->issue_count;
        if (corpus->file.open) {
            /* A pipe has no more bytes at the moment. The batch should be processed without waiting for more. */
            if (something && stream_would_wait(corpus->stream))
                break;
            status = corpus->file.reader->read(corpus, batch, &full, error);
            if (corpus->done && corpus->file.open)
                corpus_file_end(corpus, batch);
            full = full || (!corpus->file.open && batch->part_count &&
                            !byte_source_is_resumable(stream_source(corpus->stream)));
            continue;
        }
        if (batch->filled * 2 > usual || batch->part_count > ITEMS_MOST || batch->issue_count > ITEMS_MOST)
            break;
        struct tokmap_error why;
        const char *path = "";
        struct inputs_counts counts;
        const enum tokmap_status found = next_input_take(&corpus->next, corpus->inputs, &path, &counts, &why);
        corpus->named += found != TOKMAP_END;
        corpus_counts_not_read(&batch->counts.not_read, &corpus->not_read, &counts);
        corpus->not_read = counts;
        corpus->inputs_begun += found != TOKMAP_END;
        if (found == TOKMAP_END)
            corpus->done = true;
        else if (found)
            status = corpus_file_failed(corpus, batch, why.path, 0, found, &why, error);
        else
            status = corpus_file_begin(corpus, batch, path, error);
    }
    batch->progress = corpus->finished_stored;
    if (corpus->file.open)
        batch->progress += corpus->file.reader->at(corpus);
    batch->place = place_of(corpus);
    if (status)
        return status;
    static const struct inputs_counts nothing;
    return batch->part_count || batch->issue_count || batch->counts.stream_bytes || batch->counts.files ||
                   memcmp(&batch->counts.not_read, &nothing, sizeof nothing) != 0
               ? TOKMAP_OK
               : TOKMAP_END;
}
