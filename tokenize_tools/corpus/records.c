/* records.c - from raw bytes to documents: the part of the corpus that runs in every thread. */
#include <stdlib.h>
#include <string.h>

#include "text/json_scan.h"
#include "text/utf8.h"
#include "document_batch.h"
#include "common/bytes.h"
#include "common/error.h"
#include "json_field.h"
#include "stream.h"

struct preparing {
    const struct corpus_options *options;
    struct corpus_batch *batch;
    struct tokmap_error *error;
    bool stopped; /* an issue that ends the work */
};

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "the documents of a batch", 0);
}

static struct corpus_issue *issue_add(struct preparing *preparing, const struct corpus_part *part,
                                      enum corpus_issue_kind kind, uint64_t record, uint64_t offset, uint64_t bytes)
{
    struct corpus_issue *issue = batch_issue(preparing->batch);
    if (!issue)
        return NULL;
    issue->kind = kind;
    issue->part = (uint32_t)(part - preparing->batch->parts);
    issue->path = part->path;
    issue->record = record;
    issue->offset = offset;
    issue->bytes = bytes;
    issue->jsonl = part->jsonl;
    preparing->batch->counts.skipped_bytes += bytes;
    preparing->batch->counts.records_skipped++;
    const bool encoding_skip = kind == CORPUS_ISSUE_ENCODING && preparing->options->invalid == CORPUS_INVALID_SKIP;
    if (!preparing->options->skip && !encoding_skip)
        preparing->stopped = true;
    return issue;
}

/* A text as it stands in the batch. */
struct found_text {
    char *text;
    uint64_t bytes;
    uint64_t offset; /* of the text in the stream */
    uint64_t record;
    uint64_t whole; /* bytes of the stream that go with it if it is skipped */
    bool escaped;   /* a JSON string with escapes */
    bool resumed, unfinished;
};

/* A document that is not valid UTF-8 and is not to be mended. */
static enum tokmap_status document_wrong(struct preparing *preparing, uint32_t part_number,
                                         const struct found_text *found, uint64_t offset, const char *reason)
{
    struct corpus_issue *issue = issue_add(preparing, &preparing->batch->parts[part_number], CORPUS_ISSUE_ENCODING,
                                           found->record, offset, found->whole);
    if (!issue)
        return no_memory(preparing->error);
    issue->reason = reason;
    /* The reader examines a text before it gives out parts of it that might have to be taken back. */
    issue->fatal = found->resumed || found->unfinished;
    preparing->stopped |= issue->fatal;
    return TOKMAP_OK;
}

/* UTF-8 is checked before escapes are decoded: they are ASCII and become whole characters, so it is the same question,
 * and the place of a fault is still that in the stream. */
static enum tokmap_status document_add(struct preparing *preparing, uint32_t part_number,
                                       const struct found_text *found)
{
    struct corpus_batch *batch = preparing->batch;
    const bool mend = preparing->options->invalid == CORPUS_INVALID_REPLACE;
    char *text = found->text;
    size_t bytes = found->bytes, replaced = 0, lone = 0, first;
    const size_t valid = utf8_valid_prefix(text, bytes);
    if (valid < bytes) {
        if (!mend)
            return document_wrong(preparing, part_number, found, found->offset + valid, "");
        const size_t room = utf8_replaced_bytes(text, bytes, &replaced);
        char *mended = batch_text(batch, room);
        if (!mended)
            return no_memory(preparing->error);
        utf8_replace(mended, text, bytes);
        text = mended;
        bytes = room;
    }
    if (found->escaped) {
        bytes = json_unescape(text, bytes, &lone, &first);
        if (lone && !mend)
            return document_wrong(preparing, part_number, found, found->offset + first,
                                  "the escape of a surrogate lacks its other half");
    }
    struct corpus_document *document = batch_document(batch);
    if (!document)
        return no_memory(preparing->error);
    document->text = text;
    document->bytes = bytes;
    document->source_bytes = found->bytes;
    document->record = found->record;
    document->part = part_number;
    document->resumed = found->resumed;
    document->unfinished = found->unfinished;
    batch->counts.replaced += replaced + lone;
    batch->counts.document_bytes += found->bytes;
    batch->counts.text_bytes += bytes;
    batch->counts.documents += !found->unfinished;
    batch->counts.empty_documents += !bytes && !found->resumed && !found->unfinished;
    return TOKMAP_OK;
}

static bool is_blank(const char *line, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

/* One line, without its end; `whole` counts that too. */
static enum tokmap_status line_take(struct preparing *preparing, uint32_t part_number, char *line, uint64_t count,
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
        struct corpus_issue *issue = issue_add(preparing, part, CORPUS_ISSUE_LIMIT, record, offset, whole);
        if (!issue)
            return no_memory(preparing->error);
        issue->reason = "the line is longer than the limit";
        issue->limit = options->record_limit;
        return TOKMAP_OK;
    }
    struct json_field field;
    struct json_fault fault;
    if (!json_find(line, count, options->field, strlen(options->field), &field, &fault)) {
        struct corpus_issue *issue =
            issue_add(preparing, part, CORPUS_ISSUE_JSON, record, offset + fault.offset, whole);
        if (!issue)
            return no_memory(preparing->error);
        issue->reason = fault.reason;
        return TOKMAP_OK;
    }
    const struct found_text found = {.text = line + field.offset,
                                     .bytes = field.count,
                                     .offset = offset + field.offset,
                                     .record = record,
                                     .whole = whole,
                                     .escaped = field.escaped};
    const uint64_t documents = batch->document_count;
    const enum tokmap_status status = document_add(preparing, part_number, &found);
    if (batch->document_count > documents)
        batch->counts.structure_bytes += whole - field.count;
    return status;
}

static enum tokmap_status lines_take(struct preparing *preparing, uint32_t part_number)
{
    const struct corpus_part *part = &preparing->batch->parts[part_number];
    char *at = preparing->batch->bytes + part->begin, *end = preparing->batch->bytes + part->end;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t record = part->record; at < end && !status && !preparing->stopped; record++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        const uint64_t count = (uint64_t)((newline ? newline : end) - at);
        const uint64_t whole = count + (newline != NULL);
        status = line_take(preparing, part_number, at, count, whole, record);
        at += whole;
    }
    return status;
}

/* The first `read` issues are the reader's, the others were found in the parts; both are in order. */
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

enum tokmap_status corpus_prepare(const struct corpus_options *options, struct corpus_batch *batch,
                                  struct tokmap_error *error)
{
    struct preparing preparing = {options, batch, error, false};
    const uint64_t read = batch->issue_count;
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < batch->part_count && !status && !preparing.stopped; i++) {
        const struct corpus_part *part = &batch->parts[i];
        if (part->jsonl) {
            status = lines_take(&preparing, i);
            continue;
        }
        const struct found_text found = {.text = batch->bytes + part->begin,
                                         .bytes = part->end - part->begin,
                                         .offset = part->offset,
                                         .whole = part->end - part->begin,
                                         .resumed = part->resumed,
                                         .unfinished = part->unfinished};
        status = document_add(&preparing, i, &found);
    }
    return status ? status : issues_merge(batch, read, error);
}

enum tokmap_status corpus_issue_error(const struct corpus_issue *issue, const struct corpus_options *options,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_ERROR_INPUT;
    const char *path = stream_name(issue->path);
    const char *after = options->skip ? "" : ", or leave it out with options.skip";
    switch (issue->kind) {
    case CORPUS_ISSUE_FILE:
        if (error)
            *error = *issue->error;
        return issue->error->status;
    case CORPUS_ISSUE_JSON:
        if (!strcmp(issue->reason, JSON_MISSING) || !strcmp(issue->reason, JSON_NO_STRING))
            (void)error_set(error, status, path, issue->offset, "%s: '%s'; name another field with options.field%s",
                            issue->reason, options->field, after);
        else
            (void)error_set(error, status, path, issue->offset, "invalid record: %s; fix the line%s", issue->reason,
                            after);
        break;
    case CORPUS_ISSUE_LIMIT:
        status = TOKMAP_ERROR_LIMIT;
        (void)error_set(error, status, path, issue->offset, "%s of %" PRIu64 " bytes; raise %s%s", issue->reason,
                        issue->limit, issue->jsonl ? "options.record_limit" : "options.document_limit", after);
        break;
    case CORPUS_ISSUE_ENCODING:
        status = TOKMAP_ERROR_ENCODING;
        (void)error_set(error, status, path, issue->offset,
                        "not valid UTF-8%s%s; convert the file, or choose options.invalid replace%s",
                        *issue->reason ? ": " : "", issue->reason,
                        options->invalid == CORPUS_INVALID_SKIP ? "" : " or skip");
        break;
    }
    if (error && issue->jsonl && issue->record < UINT32_MAX)
        error->line = (uint32_t)issue->record + 1;
    return status;
}

void corpus_error_place(const struct corpus_batch *batch, uint64_t document, struct tokmap_error *error)
{
    const struct corpus_document *met = &batch->documents[document];
    const struct corpus_part *part = &batch->parts[met->part];
    char message[sizeof error->message];
    memcpy(message, error->message, sizeof message);
    (void)error_set(error, error->status, stream_name(part->path), TOKMAP_NO_OFFSET, "%s", message);
    if (part->jsonl && met->record < UINT32_MAX)
        error->line = (uint32_t)met->record + 1;
}
