/* corpus_issue.c - see corpus_issue.h. */
#include "corpus_issue.h"

#include <assert.h>
#include <string.h>

#include "common/error.h"
#include "json_field.h"
#include "stream.h"

/* Describes a line that cannot be used. after: the end of the message. */
static void json_issue_to_error(const struct corpus_issue *issue, const char *field, const char *after,
                                struct tokmap_error *error)
{
    const enum tokmap_status status = TOKMAP_ERROR_INPUT;
    const char *path = stream_name(issue->path);
    if (!strcmp(issue->reason, JSON_FIELD_MISSING))
        (void)error_set(error, status, path, issue->offset,
                        "the record has no field '%s'; name another field with options.field%s", field, after);
    else if (!strcmp(issue->reason, JSON_FIELD_NOT_STRING))
        (void)error_set(error, status, path, issue->offset,
                        "the field '%s' is not a string; name another field with options.field%s", field, after);
    else if (!strcmp(issue->reason, JSON_FIELD_TWICE))
        (void)error_set(error, status, path, issue->offset,
                        "the field '%s' appears twice in the record; correct the line%s", field, after);
    else if (!strcmp(issue->reason, JSON_FIELD_NOT_OBJECT))
        (void)error_set(error, status, path, issue->offset, "%s; correct the line%s", issue->reason, after);
    else
        (void)error_set(error, status, path, issue->offset, "the line is not valid JSON: %s; correct the line%s",
                        issue->reason, after);
}

enum tokmap_status corpus_issue_to_error(const struct corpus_issue *issue, const struct corpus_options *options,
                                         struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_ERROR_INPUT;
    const char *path = stream_name(issue->path);
    assert(issue->kind != CORPUS_ISSUE_FILE || issue->error);
    const char *after = options->skip ? "" : ", or skip it with options.skip";
    switch (issue->kind) {
    case CORPUS_ISSUE_FILE:
        if (error)
            *error = *issue->error;
        return issue->error->status;
    case CORPUS_ISSUE_JSON:
        json_issue_to_error(issue, options->field, after, error);
        break;
    case CORPUS_ISSUE_LIMIT:
        status = TOKMAP_ERROR_LIMIT;
        (void)error_set(error, status, path, issue->offset, "%s of %" PRIu64 " bytes; raise %s%s", issue->reason,
                        issue->limit, issue->jsonl ? "options.record_limit" : "options.document_limit", after);
        break;
    case CORPUS_ISSUE_ENCODING:
        status = TOKMAP_ERROR_ENCODING;
        (void)error_set(error, status, path, issue->offset,
                        "the text is not valid UTF-8%s%s; convert the file, or use options.invalid replace%s",
                        *issue->reason ? ": " : "", issue->reason,
                        options->invalid == CORPUS_INVALID_SKIP ? "" : " or skip");
        break;
    }
    if (error && issue->jsonl && issue->record < UINT32_MAX)
        error->line = (uint32_t)issue->record + 1;
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
    if (part->jsonl && source->record < UINT32_MAX)
        error->line = (uint32_t)source->record + 1;
}
