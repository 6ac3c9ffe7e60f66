/* SPDX-License-Identifier: MIT */
#include "corpus_issue.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "format_choice.h"
#include "json_field.h"
#include "record_values.h"
#include "records.h"
#include "stream.h"

/* Writes what a message calls the item that is left out: "line 2 (record 1)", so that nobody takes one number for the
 * other. */
static void subject_write(char *subject, size_t capacity, const struct corpus_issue *issue, const char *whole)
{
    if (issue->format == CORPUS_TEXT)
        (void)snprintf(subject, capacity, "%s", whole);
    else if (issue->format == CORPUS_PARQUET)
        (void)snprintf(subject, capacity, "row %" PRIu64 " (in row group %" PRIu64 ")", issue->record,
                       issue->row_group);
    else if (issue->format == CORPUS_SEPARATED)
        (void)snprintf(subject, capacity, "document %" PRIu64 " (at line %" PRIu64 ")", issue->record, issue->line);
    else
        (void)snprintf(subject, capacity, "line %" PRIu64 " (record %" PRIu64 ")", issue->line, issue->record);
}

#define SAY(...) (void)error_set(error, TOKMAP_ERROR_INPUT, path, issue->offset, __VA_ARGS__)

/* Describes a record that cannot be used. after: the end of the message. */
static void record_issue_to_error(const struct corpus_issue *issue, const struct corpus_options *options,
                                  const char *after, struct tokmap_error *error)
{
    const char *field = issue->field ? issue->field : options->field, *option = field_option(options, field);
    /* If the format was found by content, the file may be a text. */
    const bool found = options->format == CORPUS_AUTO && format_of_name(issue->path) == CORPUS_AUTO;
    const char *as_text = found ? ", or read the file as text with --input-format text" : "";
    const char *path = stream_name(issue->path);
    const bool table = issue->format == CORPUS_CSV || issue->format == CORPUS_TSV;
    const bool null = !strcmp(issue->reason, JSON_FIELD_NULL);
    char subject[64];
    subject_write(subject, sizeof subject, issue, "the text");
    if (!strcmp(issue->reason, JSON_FIELD_MISSING) && issue->format == CORPUS_PARQUET)
        SAY("%s has no value in the column '%s', which is null; name another column with %s%s", subject, field, option,
            after);
    else if (!strcmp(issue->reason, JSON_FIELD_MISSING))
        SAY("%s has no field '%s'; %s%s; name another field with %s%s%s", subject, field,
            *issue->detail ? "it has: " : "it is an empty object", issue->detail, option, as_text, after);
    else if (!strcmp(issue->reason, JSON_NOT_FINITE))
        SAY("the field '%s' of %s has a value that is not JSON: NaN or Infinity; write null in place of it%s", field,
            subject, after);
    else if (null || !strcmp(issue->reason, JSON_FIELD_NOT_STRING) || !strcmp(issue->reason, JSON_FIELD_NOT_LIST))
        SAY("the field '%s' of %s%s%s; name another field with %s%s", field, subject,
            issue->reason + strlen("the field"), null ? ", so the record has no text" : "", option, after);
    else if (issue->left_out == CORPUS_REASON_TOKEN)
        SAY("the field '%s' of %s has a token id that cannot be used: %s; correct the record%s%s", field, subject,
            issue->detail, options->vocabulary ? "" : ", since a token id is a whole number below 2^32", after);
    else if (issue->left_out == CORPUS_REASON_MASK)
        SAY("the mask '%s' of %s cannot be used: %s; correct the record%s", field, subject, issue->detail, after);
    else if (issue->left_out == CORPUS_REASON_LENGTH)
        SAY("%s has %s", subject, issue->detail);
    else if (issue->left_out == CORPUS_REASON_CHAT)
        SAY("the conversation of %s cannot be written with the chat template: %s; correct the record%s", subject,
            issue->detail, after);
    else if (!strcmp(issue->reason, CORPUS_VALUE_DEEP))
        SAY("the field '%s' of %s cannot be kept: it has objects and arrays nested more than %d deep; "
            "leave it out of --columns%s",
            field, subject, CORPUS_VALUE_DEPTH, after);
    else if (!strcmp(issue->reason, JSON_FIELD_TWICE))
        SAY("the field '%s' appears twice in %s; correct the record%s", field, subject, after);
    else if (!strcmp(issue->reason, JSON_FIELD_NOT_OBJECT))
        SAY("%s is not a JSON object; correct the record%s%s", subject, as_text, after);
    else if (!strcmp(issue->reason, CORPUS_ROW_FIELDS))
        SAY("the number of fields of %s is %s; correct the row, or use --input-format text if the file is "
            "text%s",
            subject, issue->detail, after);
    else if (issue->format == CORPUS_PARQUET)
        SAY("the column '%s' of %s cannot be used: %s%s", field, subject, issue->reason, after);
    else if (issue->format == CORPUS_WARC)
        SAY("%s cannot be used: %s%s", subject, issue->reason, after);
    else
        SAY("%s is not valid %s: %s; correct the record%s%s", subject, table ? "CSV" : "JSON", issue->reason, as_text,
            after);
}

enum tokmap_status corpus_issue_to_error(const struct corpus_issue *issue, const struct corpus_options *options,
                                         struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_ERROR_INPUT;
    const char *path = stream_name(issue->path);
    assert(issue->kind != CORPUS_ISSUE_FILE || issue->error);
    const char *after = options->skip ? "" : ", or skip it with --on-error skip";
    const bool text = issue->format == CORPUS_TEXT;
    char subject[64];
    switch (issue->kind) {
    case CORPUS_ISSUE_FILE:
        if (error)
            *error = *issue->error;
        return issue->error->status;
    case CORPUS_ISSUE_RECORD:
        record_issue_to_error(issue, options, after, error);
        break;
    case CORPUS_ISSUE_LIMIT:
        status = TOKMAP_ERROR_LIMIT;
        subject_write(subject, sizeof subject, issue, "the document");
        (void)error_set(error, status, path, issue->offset,
                        "%s is longer than the limit of %" PRIu64 " bytes%s; raise %s%s", subject, issue->limit,
                        issue->format == CORPUS_CSV || issue->format == CORPUS_TSV
                            ? ", perhaps because a quote is not closed"
                        : issue->format == CORPUS_SEPARATED ? ", perhaps because --separator does not "
                                                              "occur (where lines end with CRLF, \\n\\n does not)"
                                                            : "",
                        text ? "--max-document" : "--max-record", after);
        break;
    case CORPUS_ISSUE_ENCODING:
        status = TOKMAP_ERROR_ENCODING;
        subject_write(subject, sizeof subject, issue, "the text");
        (void)error_set(error, status, path, issue->offset,
                        "%s is not valid UTF-8%s%s; convert the file, or use --invalid-utf8 replace%s", subject,
                        *issue->reason ? ": " : "", issue->reason,
                        options->invalid == CORPUS_INVALID_SKIP ? "" : " or skip");
        break;
    }
    if (error && !text && issue->format != CORPUS_PARQUET && issue->line < UINT32_MAX)
        error->line = (uint32_t)issue->line;
    return status;
}

void corpus_error_add_place(const struct corpus_batch *batch, uint64_t document, struct tokmap_error *error)
{
    assert(document < batch->document_count);
    assert(error && error->status);
    const struct corpus_document *source = &batch->documents[document];
    const struct corpus_part *part = &batch->parts[source->part];
    char message[sizeof error->message];
    memcpy(message, error->message, sizeof message);
    (void)error_set(error, error->status, stream_name(part->path), TOKMAP_NO_OFFSET, "%s", message);
    if (part->format == CORPUS_PARQUET)
        (void)error_set(error, error->status, stream_name(part->path), TOKMAP_NO_OFFSET, "row %" PRIu64 ": %s",
                        source->record, message);
    if (part->format != CORPUS_TEXT && part->format != CORPUS_PARQUET && source->line < UINT32_MAX)
        error->line = (uint32_t)source->line;
}
