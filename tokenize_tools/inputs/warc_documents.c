/* warc_documents.c - see warc_documents.h. */
#include "warc_documents.h"

#include <assert.h>
#include <string.h>

#include "record_values.h"

/* A segment of the part that is being read: see warc_scan.h. */
struct warc_segment {
    char *bytes;
    uint64_t count, offset; /* offset: in the stream */
    enum record_kind kind;
    const struct warc_scan *before, *after; /* the scanner where the segment begins, and after its last byte */
};

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

/* What is wrong with a segment that is not a piece. */
static enum warc_fault segment_fault(const struct warc_segment *segment)
{
    const struct warc_scan *after = segment->after;
    if (segment->kind != RECORD_UNFINISHED)
        return after->fault;
    const bool content = after->state == WARC_AFTER || (after->state == WARC_CONTENT && !after->left);
    return content ? WARC_FAULT_NONE : WARC_FAULT_TRUNCATED; /* the line end after the last record may be missing */
}

/* Finds the values of the wanted lines of a header. Values of several lines are joined in memory of the batch. */
static enum tokmap_status header_values(const struct making *making, const struct warc_segment *segment,
                                        const struct source_record *source, struct record_value *values)
{
    const struct corpus_options *options = making->options;
    const uint64_t bytes = segment->after->header_bytes;
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
static enum tokmap_status text_document(struct making *making, const struct warc_segment *segment,
                                        const struct source_record *source)
{
    const struct warc_scan *after = segment->after;
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

/* Makes a document from a segment that is not a piece, or counts what is left out. */
static enum tokmap_status record_add(struct making *making, const struct warc_segment *segment,
                                     const struct source_record *source)
{
    const uint64_t limit = making->options->record_limit;
    if (segment->count > limit) {
        struct corpus_issue *issue = making_issue(making, source, CORPUS_ISSUE_LIMIT, CORPUS_REASON_TOO_LONG,
                                                  source->line, segment->offset, NULL, NULL);
        if (!issue)
            return making_no_memory(making);
        issue->limit = limit;
        return TOKMAP_OK;
    }
    const enum warc_fault fault = segment_fault(segment);
    if (fault) {
        const bool cut = fault == WARC_FAULT_TRUNCATED;
        return making_issue(making, source, CORPUS_ISSUE_RECORD, cut ? CORPUS_REASON_DAMAGED : CORPUS_REASON_SYNTAX,
                            source->line, segment->offset, warc_fault_text(fault), NULL)
                   ? TOKMAP_OK
                   : making_no_memory(making);
    }
    if (segment->after->class == WARC_TEXT)
        return text_document(making, segment, source);
    other_count(making, segment->after->class, 1, segment->count);
    return TOKMAP_OK;
}

/* Counts a piece: the content of a record without a document, line ends between records, or bytes of no record. */
static void piece_count(struct making *making, const struct warc_segment *segment)
{
    const struct warc_scan *before = segment->before;
    if (before->state == WARC_PIECES)
        other_count(making, before->class, 0, segment->count);
    else if (before->lost)
        left_out_count(making, CORPUS_REASON_SYNTAX, 0, segment->count);
    else
        making->batch->counts.structure_bytes += segment->count;
}

enum tokmap_status warc_part_documents(struct making *making, uint32_t part_number)
{
    struct corpus_batch *batch = making->batch;
    const struct corpus_part *part = &batch->parts[part_number];
    struct record_scan scan = part->scan;
    char *at = batch->bytes + part->begin, *end = batch->bytes + part->end;
    uint64_t line = part->line;
    enum tokmap_status status = TOKMAP_OK;
    while (at < end && !status && !making->stopped) {
        const struct record_scan before = scan;
        struct warc_segment segment = {.bytes = at, .before = &before.warc, .after = &scan.warc};
        segment.count = record_scan_take(&scan, at, (uint64_t)(end - at), &segment.kind);
        segment.offset = part->offset + ((uint64_t)(at - batch->bytes) - part->begin);
        /* "WAR" at the end of a file, where the scanner is lost, is not a record. */
        const bool lost = before.warc.lost && segment.kind == RECORD_UNFINISHED && scan.warc.state == WARC_BETWEEN;
        const struct source_record source = {.part = part_number,
                                             .record = before.record,
                                             .line = line,
                                             .position = segment.offset,
                                             .whole = segment.count};
        const uint64_t lines = record_scan_lines(at, segment.count);
        if (segment.kind == RECORD_BLANK || lost)
            piece_count(making, &segment);
        else
            status = record_add(making, &segment, &source);
        line += lines;
        at += segment.count;
    }
    return status;
}
