/* SPDX-License-Identifier: MIT */
/* records.c - see records.h. This is the part of reading that every thread runs beside the others. */
#include "records.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "csv_field.h"
#include "document_make.h"
#include "json_field.h"
#include "parquet_documents.h"
#include "record_values.h"
#include "stream.h"
#include "text/json_scan.h"
#include "text/name_list.h"

#define DETAIL_BYTES 80 /* for two numbers and words between them */
#define BOM "\xef\xbb\xbf"

/* Documents in the making, from the records of a batch. */
struct reading {
    struct making making;
    const char *names[RECORD_FIELDS_MOST];
    struct json_wanted wanted[RECORD_FIELDS_MOST];
    size_t fields;  /* number of both */
    bool text_only; /* each record has one text, and nothing else is wanted */
};

/* A segment of the part that is being read (record_scan.h). */
struct segment {
    char *bytes;
    uint64_t count;
    enum record_kind kind;
    struct record_scan scan;         /* the scanner where the segment begins */
    const struct record_scan *after; /* the scanner after its last byte */
    uint64_t line;                   /* number of the line where it begins, from 1 */
    uint64_t offset;                 /* in the stream */
};

/* Adds an issue of a record that cannot be used: byte `at` of its segment, which begins at `offset`, is wrong. */
static struct corpus_issue *record_issue(struct making *making, enum corpus_reason left_out,
                                         const struct source_record *source, const struct segment *segment, uint64_t at,
                                         const char *reason, const char *field)
{
    const uint64_t line = segment->line + record_scan_lines(segment->bytes, at);
    return making_issue(making, source, CORPUS_ISSUE_RECORD, left_out, line, segment->offset + at, reason, field);
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
    scan.not_finite_allowed = true;
    if (json_enter_object(&scan))
        while (json_member(&scan, &name) && json_skip(&scan))
            name_list_add(&names, name.bytes, name.count);
    return strdup(names.text);
}

/* Adds an issue of a record of JSON: of its syntax, or of a field that is missing or appears twice. */
static enum tokmap_status object_wrong(struct making *making, const struct segment *segment, uint64_t count,
                                       const struct source_record *source, const struct json_fault *fault,
                                       const char *field)
{
    const bool missing = !strcmp(fault->reason, JSON_FIELD_MISSING);
    const bool syntax =
        !missing && strcmp(fault->reason, JSON_FIELD_TWICE) != 0 && strcmp(fault->reason, JSON_NOT_FINITE) != 0 &&
        strcmp(fault->reason, JSON_FIELD_NOT_STRING) != 0 && strcmp(fault->reason, JSON_FIELD_NULL) != 0;
    struct corpus_issue *issue =
        record_issue(making, syntax ? CORPUS_REASON_SYNTAX : CORPUS_REASON_FIELD, source, segment,
                     max64(fault->offset, blank_bytes(segment->bytes, count)), fault->reason, field);
    if (issue && missing)
        issue->detail = fields_list(segment->bytes, count);
    return issue && (!missing || issue->detail) ? TOKMAP_OK : making_no_memory(making);
}

/* Makes a document from the text in a record of JSON, or adds an issue. `count` is without what separates the record
 * from the next one. */
static enum tokmap_status object_text(struct reading *reading, const struct segment *segment, uint64_t count,
                                      const struct source_record *source)
{
    struct making *making = &reading->making;
    const char *name = making->options->field;
    struct corpus_document made = {0};
    struct json_field field;
    struct json_fault fault;
    uint64_t replaced = 0;
    bool used;
    if (!json_field_find(segment->bytes, count, name, strlen(name), &field, &fault))
        return object_wrong(making, segment, count, source, &fault, name);
    const struct source_text text = {segment->bytes + field.offset, field.count, segment->offset + field.offset,
                                     field.escaped, false};
    made.source_bytes = field.count;
    const enum tokmap_status status = making_text(making, source, &text, &made.text, &made.bytes, &replaced, &used);
    if (status || !used)
        return status;
    making->batch->counts.not_finite += field.not_finite;
    return making_document(making, source, &made, replaced);
}

/* Finds the fields of a record of JSON, and makes a document from them. `fast` and *again: as in json_fields_find();
 * *again is set if it has to be done without `fast`, and nothing has been added. */
static enum tokmap_status object_fields(struct reading *reading, const struct segment *segment, uint64_t count,
                                        const struct source_record *source, bool fast, bool *again)
{
    struct making *making = &reading->making;
    struct record_value values[RECORD_FIELDS_MOST];
    struct json_fault fault;
    const uint64_t documents = making->batch->document_count;
    uint64_t not_finite = 0;
    size_t wrong = 0;
    bool found =
        json_fields_find(segment->bytes, count, reading->wanted, reading->fields, fast, &not_finite, &fault, &wrong);
    for (size_t i = 0; found && i < 1 + (size_t)(making->options->second_field != NULL); i++)
        if (reading->wanted[i].kind == JSON_NOTHING) {
            fault = (struct json_fault){0, JSON_FIELD_MISSING};
            wrong = i;
            found = false;
        }
    *again = fast && !found;
    if (*again)
        return TOKMAP_OK;
    if (!found)
        return object_wrong(making, segment, count, source, &fault, reading->names[wrong]);
    for (size_t i = 0; i < reading->fields; i++) {
        const struct json_wanted *wanted = &reading->wanted[i];
        values[i] = (struct record_value){.kind = wanted->kind, .line = source->line};
        if (wanted->kind == JSON_NOTHING)
            continue;
        values[i].text = segment->bytes + wanted->offset;
        values[i].bytes = wanted->count;
        values[i].offset = segment->offset + wanted->offset;
        values[i].escaped = wanted->escaped;
        values[i].quotes = wanted->kind == JSON_STRING;
        if (making->batch->parts[source->part].format == CORPUS_JSON)
            values[i].line = segment->line + record_scan_lines(segment->bytes, wanted->offset);
    }
    const enum tokmap_status status = record_document(making, source, values, fast, again);
    making->batch->counts.not_finite += making->batch->document_count > documents ? not_finite : 0;
    return status;
}

/* Makes a document from a record of JSON. */
static enum tokmap_status object_read(struct reading *reading, const struct segment *segment, uint64_t count,
                                      const struct source_record *source)
{
    bool again = false;
    if (reading->text_only)
        return object_text(reading, segment, count, source);
    enum tokmap_status status = object_fields(reading, segment, count, source, true, &again);
    if (!status && again)
        status = object_fields(reading, segment, count, source, false, &again);
    assert(status || !again);
    return status;
}

/* Adds an issue of a row of CSV that is not valid, or has `fields` fields and should have as many as the header. */
static enum tokmap_status row_wrong(struct making *making, const struct segment *segment,
                                    const struct source_record *source, const struct csv_record *record,
                                    uint64_t fields)
{
    const char *reason = record->fault.reason;
    struct corpus_issue *issue = record_issue(making, CORPUS_REASON_SYNTAX, source, segment, record->fault.offset,
                                              reason ? reason : CORPUS_ROW_FIELDS, NULL);
    if (issue && !reason)
        issue->detail = malloc(DETAIL_BYTES);
    if (issue && issue->detail)
        (void)snprintf(issue->detail, DETAIL_BYTES, "%" PRIu64 ", and the header has %" PRIu64, fields,
                       making->batch->parts[source->part].columns);
    return issue && (reason || issue->detail) ? TOKMAP_OK : making_no_memory(making);
}

/* Makes a document from a row of CSV. */
static enum tokmap_status row_read(struct reading *reading, const struct segment *segment,
                                   const struct source_record *source)
{
    const struct corpus_part *part = &reading->making.batch->parts[source->part];
    struct csv_record record = {.bytes = segment->bytes,
                                .count = csv_record_length(segment->bytes, segment->count),
                                .separator = record_scan_separator(part->format)};
    struct record_value values[RECORD_FIELDS_MOST];
    struct csv_field field;
    uint64_t fields = 0;
    bool unused;
    for (size_t i = 0; i < reading->fields; i++) /* a column that the table lacks stays so */
        values[i] = (struct record_value){.kind = JSON_NOTHING};
    while (csv_field_next(&record, &field)) {
        for (size_t i = 0; i < reading->fields; i++)
            if (fields == part->places[i])
                values[i] = (struct record_value){.kind = JSON_STRING,
                                                  .text = segment->bytes + field.offset,
                                                  .bytes = field.count,
                                                  .offset = segment->offset + field.offset,
                                                  .line = source->line,
                                                  .doubled = field.doubled};
        fields++;
    }
    if (record.fault.reason || fields != part->columns)
        return row_wrong(&reading->making, segment, source, &record, fields);
    return record_document(&reading->making, source, values, false, &unused);
}

/* Makes a document from a text of a file. `count` is without the separator that ends it. */
static enum tokmap_status text_read(struct reading *reading, const struct source_record *source,
                                    const struct source_text *text)
{
    struct making *making = &reading->making;
    struct record_value values[RECORD_FIELDS_MOST];
    const uint64_t documents = making->batch->document_count;
    const bool mark = !text->offset && text->bytes >= 3 && !memcmp(text->text, BOM, 3);
    bool unused;
    values[0] = (struct record_value){
        .kind = JSON_STRING, .text = text->text, .bytes = text->bytes, .offset = text->offset, .line = source->line};
    for (size_t i = 0; i < making->options->column_count; i++) /* a text file has no fields */
        values[1 + i] = (struct record_value){.kind = JSON_NOTHING};
    const enum tokmap_status status = record_document(making, source, values, false, &unused);
    making->batch->counts.marks += mark && making->batch->document_count > documents;
    return status;
}

/* Writes the separator with the other line ends: CRLF for newlines, or newlines for CRLF. Returns its length. */
static uint64_t separator_other(const struct corpus_options *options, char other[2 * RECORD_SEPARATOR_MOST])
{
    const char *separator = options->separator;
    const uint64_t bytes = options->separator_bytes;
    const bool returns = memmem(separator, bytes, "\r\n", 2) != NULL;
    uint64_t made = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        if (returns && bytes - i > 1 && !memcmp(separator + i, "\r\n", 2))
            continue;
        if (!returns && separator[i] == '\n')
            other[made++] = '\r';
        other[made++] = separator[i];
    }
    return made;
}

/* Notes that the separator does not occur in the file, which is one text. */
static void undivided_note(const struct making *making, const char *path, const char *text, uint64_t count)
{
    const struct corpus_options *options = making->options;
    char other[2 * RECORD_SEPARATOR_MOST];
    const uint64_t bytes = separator_other(options, other);
    making->batch->counts.undivided++;
    if (options->undivided)
        options->undivided(options->undivided_user, stream_name(path), memmem(text, count, other, bytes) ? other : NULL,
                           bytes);
}

/* Makes a document from a segment that contains a record. */
static enum tokmap_status record_add(struct reading *reading, uint32_t part_number, const struct segment *segment)
{
    struct making *making = &reading->making;
    struct corpus_batch *batch = making->batch;
    const enum corpus_format format = batch->parts[part_number].format;
    struct source_record source = {.part = part_number,
                                   .record = segment->scan.record,
                                   .line = segment->line,
                                   .position = segment->offset,
                                   .whole = segment->count};
    if (format == CORPUS_JSON)
        source.line += record_scan_lines(segment->bytes, blank_bytes(segment->bytes, segment->count));
    /* A line ends with its newline, and an element of an array with a comma or a bracket. Other records contain all. */
    const bool line = format == CORPUS_JSONL, ended = segment->kind != RECORD_UNFINISHED;
    const bool array =
        format == CORPUS_JSON && segment->scan.state != RECORD_SEQUENCE && segment->scan.state != RECORD_BEGIN;
    const bool separated = format == CORPUS_SEPARATED;
    const uint64_t after = separated ? segment->scan.separator_bytes : line || array;
    const uint64_t count = segment->count - (ended ? after : 0);
    if ((line || separated ? count : segment->count) > making->options->record_limit)
        return making_issue(making, &source, CORPUS_ISSUE_LIMIT, CORPUS_REASON_TOO_LONG, segment->line, segment->offset,
                            NULL, NULL)
                   ? TOKMAP_OK
                   : making_no_memory(making);
    if (array && (!ended || segment->scan.state == RECORD_AFTER)) {
        const bool followed = segment->scan.state == RECORD_AFTER;
        const uint64_t blank = blank_bytes(segment->bytes, segment->count);
        return record_issue(making, CORPUS_REASON_SYNTAX, &source, segment, followed ? blank : segment->count,
                            followed ? CORPUS_ARRAY_FOLLOWED : CORPUS_ARRAY_OPEN, NULL)
                   ? TOKMAP_OK
                   : making_no_memory(making);
    }
    if (separated && !ended && !segment->offset)
        undivided_note(making, batch->parts[part_number].path, segment->bytes, count);
    const uint64_t documents = batch->document_count;
    const struct source_text text = {.text = segment->bytes, .bytes = count, .offset = segment->offset};
    const enum tokmap_status status = separated ? text_read(reading, &source, &text)
                                      : format == CORPUS_JSONL || format == CORPUS_JSON
                                          ? object_read(reading, segment, count, &source)
                                          : row_read(reading, segment, &source);
    if (batch->document_count > documents)
        batch->counts.structure_bytes += segment->count - batch->documents[documents].source_bytes;
    return status;
}

/* Returns true if the segment has no record: only blanks, or a bracket of the array. */
static bool is_structure(const struct segment *segment, enum corpus_format format)
{
    const char *bytes = segment->bytes;
    uint64_t count = segment->count;
    if (segment->kind == RECORD_BLANK)
        return true;
    if (format == CORPUS_SEPARATED)
        return false;
    if (format == CORPUS_CSV || format == CORPUS_TSV) {
        /* A row without its newline, at the end of the file: a carriage return alone is not a row. */
        return segment->kind == RECORD_UNFINISHED && csv_record_length(bytes, count) == 0;
    }
    const bool element =
        segment->scan.state == RECORD_ARRAY || segment->scan.state == RECORD_ARRAY_FIRST; /* one must be there */
    return !element && blank_bytes(bytes, count) == count;
}

/* ---- records of WARC ---- */

/* Counts bytes of records that are left out, or of damaged input, beyond what an issue has counted. */
static void left_out_count(struct making *making, enum corpus_reason reason, uint64_t records, uint64_t bytes)
{
    struct corpus_counts *counts = &making->batch->counts;
    counts->records_skipped += records;
    counts->skipped_bytes += bytes;
    counts->left_out[reason].records += records;
    counts->left_out[reason].bytes += bytes;
}

/* Counts the header or the content of a record without a document. */
static void other_count(struct making *making, enum warc_class class, uint64_t records, uint64_t bytes)
{
    assert(class != WARC_TEXT);
    if (class == WARC_ABOUT) {
        making->batch->counts.about_records += records;
        making->batch->counts.structure_bytes += bytes;
    } else {
        left_out_count(making, class == WARC_OTHER ? CORPUS_REASON_NOT_TEXT : CORPUS_REASON_SYNTAX, records, bytes);
    }
}

/* Returns what is wrong with a segment that is not filler. */
static enum warc_fault segment_fault(const struct segment *segment)
{
    const struct warc_scan *after = &segment->after->warc;
    if (segment->kind != RECORD_UNFINISHED)
        return after->fault;
    const bool content = after->state == WARC_AFTER || (after->state == WARC_CONTENT && !after->left);
    return content ? WARC_FAULT_NONE : WARC_FAULT_TRUNCATED; /* the line end after the last record may be missing */
}

/* Finds the values of the wanted lines of a header. Values of several lines are joined in memory of the batch. */
static enum tokmap_status header_values(const struct making *making, const struct segment *segment,
                                        const struct source_record *source, struct record_value *values)
{
    const struct corpus_options *options = making->options;
    const uint64_t bytes = segment->after->warc.header_bytes;
    struct warc_line line = {.next = 0};
    if (!options->column_count || !warc_line_next(segment->bytes, bytes, 0, &line)) /* the version */
        return TOKMAP_OK;
    while (warc_line_next(segment->bytes, bytes, line.next, &line)) {
        for (size_t i = 0; i < options->column_count && line.name_bytes; i++) {
            if (values[i].kind != JSON_NOTHING || !warc_name_is(line.name, line.name_bytes, options->columns[i]))
                continue;
            const uint64_t at = (uint64_t)(line.value - segment->bytes);
            values[i] = (struct record_value){.kind = JSON_STRING,
                                              .text = segment->bytes + at,
                                              .bytes = line.value_bytes,
                                              .offset = segment->offset + at,
                                              .line = source->line};
            if (!line.continued)
                continue;
            values[i].text = corpus_batch_take(making->batch, line.value_bytes + 1);
            if (!values[i].text)
                return making_no_memory(making);
            values[i].bytes = warc_value_join(values[i].text, &line);
        }
    }
    return TOKMAP_OK;
}

/* Makes a document from a record of text. */
static enum tokmap_status text_document(struct making *making, const struct segment *segment,
                                        const struct source_record *source)
{
    const struct warc_scan *after = &segment->after->warc;
    struct record_value values[RECORD_FIELDS_MOST] = {{0}};
    bool unused;
    assert(after->header_bytes + after->length <= segment->count && !making->options->second_field);
    values[0] = (struct record_value){.kind = JSON_STRING,
                                      .text = segment->bytes + after->header_bytes,
                                      .bytes = after->length,
                                      .offset = segment->offset + after->header_bytes,
                                      .line = source->line};
    for (size_t i = 0; i < making->options->column_count; i++)
        values[1 + i].kind = JSON_NOTHING;
    const enum tokmap_status status = header_values(making, segment, source, values + 1);
    const uint64_t documents = making->batch->document_count;
    if (status)
        return status;
    const enum tokmap_status made = record_document(making, source, values, false, &unused);
    if (making->batch->document_count > documents)
        making->batch->counts.structure_bytes += segment->count - after->length;
    return made;
}

/* Makes a document from a segment that is not filler, or counts what is left out. */
static enum tokmap_status warc_record_add(struct making *making, const struct segment *segment,
                                          const struct source_record *source)
{
    if (segment->count > making->options->record_limit)
        return making_issue(making, source, CORPUS_ISSUE_LIMIT, CORPUS_REASON_TOO_LONG, source->line, segment->offset,
                            NULL, NULL)
                   ? TOKMAP_OK
                   : making_no_memory(making);
    const enum warc_fault fault = segment_fault(segment);
    if (fault) {
        const bool cut = fault == WARC_FAULT_TRUNCATED;
        return making_issue(making, source, CORPUS_ISSUE_RECORD, cut ? CORPUS_REASON_DAMAGED : CORPUS_REASON_SYNTAX,
                            source->line, segment->offset, warc_fault_text(fault), NULL)
                   ? TOKMAP_OK
                   : making_no_memory(making);
    }
    if (segment->after->warc.class == WARC_TEXT)
        return text_document(making, segment, source);
    other_count(making, segment->after->warc.class, 1, segment->count);
    return TOKMAP_OK;
}

/* Counts filler: the content of a record without a document, line ends between records, or bytes of no record. */
static void fragment_count(struct making *making, const struct segment *segment)
{
    const struct warc_scan *before = &segment->scan.warc;
    if (before->state == WARC_OTHERS)
        other_count(making, before->class, 0, segment->count);
    else if (before->lost)
        left_out_count(making, CORPUS_REASON_SYNTAX, 0, segment->count);
    else
        making->batch->counts.structure_bytes += segment->count;
}

/* Adds the document of a segment, or the issue of its record, or counts it. Each record of text is a document, whose
 * text is the content as it is. Values of options->columns are those of the header's lines with these names, without
 * case; of several lines with one name, the first one counts. */
static enum tokmap_status warc_segment_add(struct making *making, uint32_t part_number, const struct segment *segment)
{
    /* "WAR" at the end of a file, where the scanner is lost, is not a record. */
    const bool lost =
        segment->scan.warc.lost && segment->kind == RECORD_UNFINISHED && segment->after->warc.state == WARC_BETWEEN;
    const struct source_record source = {.part = part_number,
                                         .record = segment->scan.record,
                                         .line = segment->line,
                                         .position = segment->offset,
                                         .whole = segment->count};
    if (segment->kind != RECORD_BLANK && !lost)
        return warc_record_add(making, segment, &source);
    fragment_count(making, segment);
    return TOKMAP_OK;
}

/* ---- parts ---- */

/* Prepares what is looked for in each record. */
static void reading_begin(struct reading *reading)
{
    const struct corpus_options *options = reading->making.options;
    reading->fields = record_fields(options, reading->names);
    reading->text_only = options->content == CORPUS_CONTENT_TEXT && !options->column_count;
    for (size_t i = 0; i < reading->fields; i++)
        reading->wanted[i] = (struct json_wanted){.name = reading->names[i], .name_bytes = strlen(reading->names[i])};
    reading->wanted[0].numbers = options->content == CORPUS_CONTENT_IDS;
    if (options->second_field)
        reading->wanted[1].numbers = options->content == CORPUS_CONTENT_IDS;
}

/* Makes the documents of a part. */
static enum tokmap_status part_records(struct reading *reading, uint32_t part_number)
{
    struct corpus_batch *batch = reading->making.batch;
    const struct corpus_part *part = &batch->parts[part_number];
    struct record_scan scan = part->scan;
    char *at = batch->bytes + part->begin, *end = batch->bytes + part->end;
    uint64_t line = part->line;
    enum tokmap_status status = TOKMAP_OK;
    if (!reading->fields)
        reading_begin(reading);
    while (at < end && !status && !reading->making.stopped) {
        struct segment segment = {.bytes = at, .scan = scan, .after = &scan, .line = line};
        segment.count = record_scan_take(&scan, at, (uint64_t)(end - at), &segment.kind);
        segment.offset = part->offset + ((uint64_t)(at - batch->bytes) - part->begin);
        /* Counted before escapes are decoded in place. */
        line += part->format == CORPUS_JSONL ? 1 : record_scan_lines(at, segment.count);
        if (part->format == CORPUS_WARC) {
            status = warc_segment_add(&reading->making, part_number, &segment);
        } else if (is_structure(&segment, part->format)) {
            batch->counts.blank_lines += part->format != CORPUS_JSON && part->format != CORPUS_SEPARATED;
            batch->counts.structure_bytes += segment.count;
        } else {
            status = record_add(reading, part_number, &segment);
        }
        at += segment.count;
    }
    return status;
}

/* Makes the document of a part of a text file. */
static enum tokmap_status part_text(struct reading *reading, uint32_t part_number)
{
    struct making *making = &reading->making;
    const struct corpus_part *part = &making->batch->parts[part_number];
    const uint64_t bytes = part->end - part->begin;
    const struct source_record source = {
        .part = part_number, .whole = bytes, .resumed = part->resumed, .unfinished = part->unfinished};
    const struct source_text text = {
        .text = making->batch->bytes + part->begin, .bytes = bytes, .offset = part->offset};
    return text_read(reading, &source, &text);
}

enum tokmap_status records_to_documents(const struct corpus_options *options, struct corpus_batch *batch,
                                        struct tokmap_error *error)
{
    assert(!batch->document_count);
    struct reading reading;
    reading.making = (struct making){options, batch, error, false};
    reading.fields = 0;
    const uint64_t read = batch->issue_count;
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < batch->part_count && !status && !reading.making.stopped; i++) {
        const struct corpus_part *part = &batch->parts[i];
        assert(part->begin <= part->end && part->end <= batch->filled);
        status = part->format == CORPUS_TEXT      ? part_text(&reading, i)
                 : part->format == CORPUS_PARQUET ? parquet_part_documents(&reading.making, i)
                                                  : part_records(&reading, i);
    }
    return status || corpus_batch_merge_issues(batch, read) ? status : making_no_memory(&reading.making);
}
