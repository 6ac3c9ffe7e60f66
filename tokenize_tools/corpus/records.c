/* records.c - see records.h. This is the part of reading that every thread runs beside the others. */
#include "records.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "csv_field.h"
#include "json_field.h"
#include "name_list.h"
#include "text/json_scan.h"
#include "text/utf8.h"

#define DETAIL_BYTES 80 /* for two numbers and words between them */

struct preparing {
    const struct corpus_options *options;
    struct corpus_batch *batch;
    struct tokmap_error *error;
    bool stopped; /* an issue was found that ends the work */
};

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "the documents of a batch", 0);
}

/* The text of a document before it is checked and decoded. It is inside the bytes of the batch. */
struct source_text {
    char *text;
    uint64_t bytes;
    uint64_t offset; /* of the text in the stream */
    uint64_t record, line;
    uint64_t whole; /* bytes of the stream that are skipped if the document is skipped: its whole record */
    bool escaped;   /* a JSON string with escapes */
    bool doubled;   /* a field of CSV with doubled quotes */
    bool resumed, unfinished;
};

/* Adds an issue of the source: at `offset` of the stream, in its line `line`. */
static struct corpus_issue *issue_add(struct preparing *preparing, const struct corpus_part *part,
                                      enum corpus_issue_kind kind, enum corpus_reason left_out,
                                      const struct source_text *source, uint64_t line, uint64_t offset)
{
    struct corpus_issue *issue = corpus_batch_add_issue(preparing->batch);
    if (!issue)
        return NULL;
    issue->kind = kind;
    issue->part = (uint32_t)(part - preparing->batch->parts);
    issue->path = part->path;
    issue->record = source->record;
    issue->line = line;
    issue->offset = offset;
    issue->bytes = source->whole;
    issue->format = part->format;
    issue->left_out = left_out;
    /* A text file is one document: it is left out as a file, and corpus_next() has counted it among those read. */
    issue->is_file = part->format == CORPUS_TEXT;
    if (issue->is_file && !part->unfinished)
        preparing->batch->counts.files--;
    corpus_batch_count_issue(preparing->batch, issue);
    const bool encoding_skip = kind == CORPUS_ISSUE_ENCODING && preparing->options->invalid == CORPUS_INVALID_SKIP;
    if (!preparing->options->skip && !encoding_skip)
        preparing->stopped = true;
    return issue;
}

/* A segment of the part that is being read (record_scan.h). */
struct segment {
    char *bytes;
    uint64_t count;
    enum record_kind kind;
    struct record_scan scan; /* the scanner where the segment begins */
    uint64_t line;           /* number of the line where it begins, from 1 */
};

/* Adds an issue of a record that cannot be used: byte `at` of its segment is wrong. */
static struct corpus_issue *record_issue(struct preparing *preparing, const struct corpus_part *part,
                                         enum corpus_reason left_out, const struct source_text *source,
                                         const struct segment *segment, uint64_t at, const char *reason)
{
    const uint64_t line = segment->line + record_scan_lines(segment->bytes, at);
    struct corpus_issue *issue =
        issue_add(preparing, part, CORPUS_ISSUE_RECORD, left_out, source, line, source->offset + at);
    if (issue)
        issue->reason = reason;
    return issue;
}

/* Records that a document is not valid UTF-8. */
static enum tokmap_status document_invalid(struct preparing *preparing, uint32_t part_number,
                                           const struct source_text *source, uint64_t offset, const char *reason)
{
    struct corpus_issue *issue = issue_add(preparing, &preparing->batch->parts[part_number], CORPUS_ISSUE_ENCODING,
                                           CORPUS_REASON_ENCODING, source, source->line, offset);
    if (!issue)
        return no_memory(preparing->error);
    issue->reason = reason;
    /* Earlier parts of a document may be packed already and cannot be taken back. corpus.c avoids this: where documents
     * may be skipped, it checks a whole text before it delivers the first part. */
    issue->fatal = source->resumed || source->unfinished;
    preparing->stopped |= issue->fatal;
    return TOKMAP_OK;
}

/* Checks a text, replaces invalid UTF-8 if that is wanted, decodes escapes, and adds the document. UTF-8 is checked
 * before escapes are decoded: escapes are ASCII and become whole characters, so they do not change the result, and the
 * position of an invalid byte is then still its position in the stream. */
static enum tokmap_status document_add(struct preparing *preparing, uint32_t part_number,
                                       const struct source_text *source)
{
    struct corpus_batch *batch = preparing->batch;
    const bool replace = preparing->options->invalid == CORPUS_INVALID_REPLACE;
    char *text = source->text;
    size_t bytes = source->bytes, replaced = 0, lone = 0, first;
    const size_t valid = utf8_valid_prefix(text, bytes);
    if (valid < bytes) {
        if (!replace)
            return document_invalid(preparing, part_number, source, source->offset + valid, "");
        const size_t room = utf8_replaced_bytes(text, bytes, &replaced);
        char *valid_text = corpus_batch_add_text(batch, room);
        if (!valid_text)
            return no_memory(preparing->error);
        utf8_replace(valid_text, text, bytes);
        text = valid_text;
        bytes = room;
    }
    if (source->escaped) {
        bytes = json_unescape(text, bytes, &lone, &first);
        if (lone && !replace)
            return document_invalid(preparing, part_number, source, source->offset + first,
                                    "a surrogate escape has no second half");
    }
    if (source->doubled)
        bytes = csv_field_decode(text, bytes);
    struct corpus_document *document = corpus_batch_add_document(batch);
    if (!document)
        return no_memory(preparing->error);
    document->text = text;
    document->bytes = bytes;
    document->source_bytes = source->bytes;
    document->record = source->record;
    document->line = source->line;
    document->part = part_number;
    document->resumed = source->resumed;
    document->unfinished = source->unfinished;
    batch->counts.replaced += replaced + lone;
    batch->counts.document_bytes += source->bytes;
    batch->counts.text_bytes += bytes;
    batch->counts.documents += !source->unfinished;
    batch->counts.empty_documents += !bytes && !source->resumed && !source->unfinished;
    return TOKMAP_OK;
}

/* Returns how many bytes at the start are blank. */
static uint64_t blank_bytes(const char *bytes, uint64_t count)
{
    uint64_t i = 0;
    while (i < count && (bytes[i] == ' ' || bytes[i] == '\t' || bytes[i] == '\r' || bytes[i] == '\n'))
        i++;
    return i;
}

/* Lists the fields of an object for a message. Returns NULL if there is not enough memory. */
static char *fields_list(const char *record, uint64_t count)
{
    struct name_list names = {0};
    struct json_string name;
    struct json_scan scan;
    json_begin(&scan, record, count);
    if (json_enter_object(&scan))
        while (json_member(&scan, &name) && json_skip(&scan))
            name_list_add(&names, name.bytes, name.count);
    return strdup(names.text);
}

/* Finds the text in a record of JSON. `count` is without what separates the record from the next one. Returns false if
 * there is none, after adding an issue. */
static bool object_read(struct preparing *preparing, const struct corpus_part *part, const struct segment *segment,
                        uint64_t count, struct source_text *source, enum tokmap_status *status)
{
    const char *name = preparing->options->field;
    struct json_field field;
    struct json_fault fault;
    if (json_field_find(segment->bytes, count, name, strlen(name), &field, &fault)) {
        source->text = segment->bytes + field.offset;
        source->bytes = field.count;
        source->offset += field.offset;
        source->escaped = field.escaped;
        return true;
    }
    const bool missing = !strcmp(fault.reason, JSON_FIELD_MISSING);
    const bool syntax =
        !missing && strcmp(fault.reason, JSON_FIELD_TWICE) != 0 && strcmp(fault.reason, JSON_FIELD_NOT_STRING) != 0;
    struct corpus_issue *issue =
        record_issue(preparing, part, syntax ? CORPUS_REASON_SYNTAX : CORPUS_REASON_FIELD, source, segment,
                     max64(fault.offset, blank_bytes(segment->bytes, count)), fault.reason);
    if (issue && missing)
        issue->detail = fields_list(segment->bytes, count);
    if (!issue || (missing && !issue->detail))
        *status = no_memory(preparing->error);
    return false;
}

/* Finds the text in a row of CSV. Like object_read(). */
static bool row_read(struct preparing *preparing, const struct corpus_part *part, const struct segment *segment,
                     struct source_text *source, enum tokmap_status *status)
{
    struct csv_record record = {.bytes = segment->bytes,
                                .count = csv_record_length(segment->bytes, segment->count),
                                .separator = record_scan_separator(part->format)};
    struct csv_field field, wanted = {0};
    uint64_t fields = 0;
    while (csv_field_next(&record, &field)) {
        if (fields == part->column)
            wanted = field;
        fields++;
    }
    if (!record.fault.reason && fields == part->columns) {
        source->text = segment->bytes + wanted.offset;
        source->bytes = wanted.count;
        source->offset += wanted.offset;
        source->doubled = wanted.doubled;
        return true;
    }
    struct corpus_issue *issue =
        record_issue(preparing, part, CORPUS_REASON_SYNTAX, source, segment, record.fault.offset,
                     record.fault.reason ? record.fault.reason : CORPUS_ROW_FIELDS);
    if (issue && !record.fault.reason)
        issue->detail = malloc(DETAIL_BYTES);
    if (issue && issue->detail)
        (void)snprintf(issue->detail, DETAIL_BYTES, "%" PRIu64 ", and the header has %" PRIu64, fields, part->columns);
    if (!issue || (!record.fault.reason && !issue->detail))
        *status = no_memory(preparing->error);
    return false;
}

/* Makes a document from a segment that contains a record. */
static enum tokmap_status record_add(struct preparing *preparing, uint32_t part_number, const struct segment *segment,
                                     uint64_t offset)
{
    const struct corpus_options *options = preparing->options;
    struct corpus_batch *batch = preparing->batch;
    const struct corpus_part *part = &batch->parts[part_number];
    struct source_text source = {
        .offset = offset, .record = segment->scan.record, .line = segment->line, .whole = segment->count};
    if (part->format == CORPUS_JSON)
        source.line += record_scan_lines(segment->bytes, blank_bytes(segment->bytes, segment->count));
    /* A line ends with its newline, and an element of an array with a comma or a bracket. Other records contain all. */
    const bool line = part->format == CORPUS_JSONL, ended = segment->kind != RECORD_UNFINISHED;
    const bool array =
        part->format == CORPUS_JSON && segment->scan.state != RECORD_SEQUENCE && segment->scan.state != RECORD_BEGIN;
    const uint64_t count = segment->count - (ended && (line || array));
    if ((line ? count : segment->count) > options->record_limit) {
        struct corpus_issue *issue =
            issue_add(preparing, part, CORPUS_ISSUE_LIMIT, CORPUS_REASON_TOO_LONG, &source, segment->line, offset);
        if (!issue)
            return no_memory(preparing->error);
        issue->limit = options->record_limit;
        return TOKMAP_OK;
    }
    if (array && (!ended || segment->scan.state == RECORD_AFTER)) {
        const bool after = segment->scan.state == RECORD_AFTER;
        const uint64_t blank = blank_bytes(segment->bytes, segment->count);
        return record_issue(preparing, part, CORPUS_REASON_SYNTAX, &source, segment, after ? blank : segment->count,
                            after ? CORPUS_ARRAY_FOLLOWED : CORPUS_ARRAY_OPEN)
                   ? TOKMAP_OK
                   : no_memory(preparing->error);
    }
    enum tokmap_status status = TOKMAP_OK;
    const bool found = part->format == CORPUS_JSONL || part->format == CORPUS_JSON
                           ? object_read(preparing, part, segment, count, &source, &status)
                           : row_read(preparing, part, segment, &source, &status);
    if (!found)
        return status;
    const uint64_t documents = batch->document_count, text_bytes = source.bytes;
    status = document_add(preparing, part_number, &source);
    if (batch->document_count > documents)
        batch->counts.structure_bytes += segment->count - text_bytes;
    return status;
}

/* Returns true if the segment has no record: only blanks, or a bracket of the array. */
static bool is_structure(const struct segment *segment, enum corpus_format format)
{
    const char *bytes = segment->bytes;
    uint64_t count = segment->count;
    if (segment->kind == RECORD_BLANK)
        return true;
    if (format == CORPUS_CSV || format == CORPUS_TSV) {
        /* A row without its newline, at the end of the file: a carriage return alone is not a row. */
        return segment->kind == RECORD_UNFINISHED && csv_record_length(bytes, count) == 0;
    }
    const bool element =
        segment->scan.state == RECORD_ARRAY || segment->scan.state == RECORD_ARRAY_FIRST; /* one must be there */
    return !element && blank_bytes(bytes, count) == count;
}

/* Makes the documents of a part. */
static enum tokmap_status part_records(struct preparing *preparing, uint32_t part_number)
{
    struct corpus_batch *batch = preparing->batch;
    const struct corpus_part *part = &batch->parts[part_number];
    struct record_scan scan = part->scan;
    char *at = batch->bytes + part->begin, *end = batch->bytes + part->end;
    uint64_t line = part->line;
    assert(preparing->options->field);
    enum tokmap_status status = TOKMAP_OK;
    while (at < end && !status && !preparing->stopped) {
        struct segment segment = {.bytes = at, .scan = scan, .line = line};
        segment.count = record_scan_take(&scan, at, (uint64_t)(end - at), &segment.kind);
        const uint64_t offset = part->offset + ((uint64_t)(at - batch->bytes) - part->begin);
        /* Counted before escapes are decoded in place. */
        line += part->format == CORPUS_JSONL ? 1 : record_scan_lines(at, segment.count);
        if (is_structure(&segment, part->format)) {
            batch->counts.blank_lines += part->format != CORPUS_JSON;
            batch->counts.structure_bytes += segment.count;
        } else {
            status = record_add(preparing, part_number, &segment, offset);
        }
        at += segment.count;
    }
    return status;
}

/* Merges two sorted lists of issues: the first `read` were found while the batch was read, the others in its parts. */
static enum tokmap_status issues_merge(struct corpus_batch *batch, uint64_t read, struct tokmap_error *error)
{
    const uint64_t count = batch->issue_count;
    if (!read || read == count)
        return TOKMAP_OK;
    struct corpus_issue *first = malloc(read * sizeof *first);
    if (!first)
        return no_memory(error);
    memcpy(first, batch->issues, read * sizeof *first);
    for (uint64_t i = 0, k = read; i < read;) {
        const bool own = k == count || first[i].part <= batch->issues[k].part;
        batch->issues[i + (k - read)] = own ? first[i] : batch->issues[k];
        if (own)
            i++;
        else
            k++;
    }
    free(first);
    return TOKMAP_OK;
}

enum tokmap_status records_to_documents(const struct corpus_options *options, struct corpus_batch *batch,
                                        struct tokmap_error *error)
{
    assert(!batch->document_count);
    struct preparing preparing = {options, batch, error, false};
    const uint64_t read = batch->issue_count;
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < batch->part_count && !status && !preparing.stopped; i++) {
        const struct corpus_part *part = &batch->parts[i];
        assert(part->begin <= part->end && part->end <= batch->filled);
        if (part->format != CORPUS_TEXT) {
            status = part_records(&preparing, i);
            continue;
        }
        const struct source_text source = {.text = batch->bytes + part->begin,
                                           .bytes = part->end - part->begin,
                                           .offset = part->offset,
                                           .whole = part->end - part->begin,
                                           .resumed = part->resumed,
                                           .unfinished = part->unfinished};
        status = document_add(&preparing, i, &source);
    }
    return status ? status : issues_merge(batch, read, error);
}
