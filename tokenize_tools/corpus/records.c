/* records.c - see records.h. This is the part of reading that every thread runs beside the others. */
#include "records.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "json_field.h"
#include "text/json_scan.h"
#include "text/utf8.h"

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

static struct corpus_issue *issue_add(struct preparing *preparing, const struct corpus_part *part,
                                      enum corpus_issue_kind kind, enum corpus_reason left_out, uint64_t record,
                                      uint64_t offset, uint64_t bytes)
{
    struct corpus_issue *issue = corpus_batch_add_issue(preparing->batch);
    if (!issue)
        return NULL;
    issue->kind = kind;
    issue->part = (uint32_t)(part - preparing->batch->parts);
    issue->path = part->path;
    issue->record = record;
    issue->offset = offset;
    issue->bytes = bytes;
    issue->jsonl = part->jsonl;
    issue->left_out = left_out;
    /* A text file is one document: it is left out as a file, and corpus_next() has counted it among those read. */
    issue->is_file = !part->jsonl;
    if (issue->is_file && !part->unfinished)
        preparing->batch->counts.files--;
    corpus_batch_count_issue(preparing->batch, issue);
    const bool encoding_skip = kind == CORPUS_ISSUE_ENCODING && preparing->options->invalid == CORPUS_INVALID_SKIP;
    if (!preparing->options->skip && !encoding_skip)
        preparing->stopped = true;
    return issue;
}

/* The text of a document before it is checked and decoded. It is inside the bytes of the batch. */
struct source_text {
    char *text;
    uint64_t bytes;
    uint64_t offset; /* of the text in the stream */
    uint64_t record;
    uint64_t whole; /* bytes of the stream that are skipped if the document is skipped: its whole record */
    bool escaped;   /* a JSON string with escapes */
    bool resumed, unfinished;
};

/* Records that a document is not valid UTF-8. */
static enum tokmap_status document_invalid(struct preparing *preparing, uint32_t part_number,
                                           const struct source_text *source, uint64_t offset, const char *reason)
{
    struct corpus_issue *issue = issue_add(preparing, &preparing->batch->parts[part_number], CORPUS_ISSUE_ENCODING,
                                           CORPUS_REASON_ENCODING, source->record, offset, source->whole);
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
    struct corpus_document *document = corpus_batch_add_document(batch);
    if (!document)
        return no_memory(preparing->error);
    document->text = text;
    document->bytes = bytes;
    document->source_bytes = source->bytes;
    document->record = source->record;
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

static bool is_blank(const char *line, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

/* Makes a document from a line. `count` excludes the end of the line, `whole` includes it. */
static enum tokmap_status line_add(struct preparing *preparing, uint32_t part_number, char *line, uint64_t count,
                                   uint64_t whole, uint64_t record)
{
    const struct corpus_options *options = preparing->options;
    struct corpus_batch *batch = preparing->batch;
    const struct corpus_part *part = &batch->parts[part_number];
    const uint64_t offset = part->offset + ((uint64_t)(line - batch->bytes) - part->begin);
    if (is_blank(line, count)) {
        batch->counts.blank_lines++;
        batch->counts.structure_bytes += whole;
        return TOKMAP_OK;
    }
    if (count > options->record_limit) {
        struct corpus_issue *issue = issue_add(preparing, part, CORPUS_ISSUE_LIMIT, CORPUS_REASON_TOO_LONG,
                                                  record, offset, whole);
        if (!issue)
            return no_memory(preparing->error);
        issue->reason = "the line is longer than the limit";
        issue->limit = options->record_limit;
        return TOKMAP_OK;
    }
    struct json_field field;
    struct json_fault fault;
    if (!json_field_find(line, count, options->field, strlen(options->field), &field, &fault)) {
        const bool usable = !strcmp(fault.reason, JSON_FIELD_MISSING) || !strcmp(fault.reason, JSON_FIELD_TWICE) ||
                            !strcmp(fault.reason, JSON_FIELD_NOT_STRING);
        struct corpus_issue *issue =
            issue_add(preparing, part, CORPUS_ISSUE_JSON, usable ? CORPUS_REASON_FIELD : CORPUS_REASON_SYNTAX, record,
                      offset + fault.offset, whole);
        if (!issue)
            return no_memory(preparing->error);
        issue->reason = fault.reason;
        return TOKMAP_OK;
    }
    const struct source_text source = {.text = line + field.offset,
                                       .bytes = field.count,
                                       .offset = offset + field.offset,
                                       .record = record,
                                       .whole = whole,
                                       .escaped = field.escaped};
    const uint64_t documents = batch->document_count;
    const enum tokmap_status status = document_add(preparing, part_number, &source);
    if (batch->document_count > documents)
        batch->counts.structure_bytes += whole - field.count;
    return status;
}

static enum tokmap_status lines_add(struct preparing *preparing, uint32_t part_number)
{
    const struct corpus_part *part = &preparing->batch->parts[part_number];
    char *at = preparing->batch->bytes + part->begin, *end = preparing->batch->bytes + part->end;
    assert(preparing->options->field);
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t record = part->record; at < end && !status && !preparing->stopped; record++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        const uint64_t count = (uint64_t)((newline ? newline : end) - at);
        const uint64_t whole = count + (newline != NULL);
        status = line_add(preparing, part_number, at, count, whole, record);
        at += whole;
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
        if (part->jsonl) {
            status = lines_add(&preparing, i);
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
