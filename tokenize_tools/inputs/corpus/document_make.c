/* SPDX-License-Identifier: MIT */
#include "document_make.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "csv_field.h"
#include "text/utf8.h"

#define DETAIL_BYTES 160 /* for two numbers, an element of a list, and words between them */
#define ELEMENT_SHOWN 40 /* bytes of an element of a list in a message */

enum tokmap_status making_no_memory(const struct making *making)
{
    return error_set_memory(making->error, "the documents of a batch", 0);
}

struct corpus_issue *making_issue(struct making *making, const struct source_record *source,
                                  enum corpus_issue_kind kind, enum corpus_reason left_out, uint64_t line,
                                  uint64_t offset, const char *reason, const char *field)
{
    const struct corpus_part *part = &making->batch->parts[source->part];
    struct corpus_issue *issue = corpus_batch_add_issue(making->batch);
    if (!issue)
        return NULL;
    issue->kind = kind;
    issue->part = source->part;
    issue->path = part->path;
    issue->record = source->record;
    issue->line = line;
    issue->offset = offset;
    issue->bytes = source->whole;
    issue->format = part->format;
    issue->left_out = left_out;
    issue->reason = reason;
    issue->field = field;
    issue->inside = true;
    issue->limit = making->options->record_limit;
    /* A text file is one document: it is left out as a file, and corpus_next() has counted it among those read. */
    issue->is_file = part->format == CORPUS_TEXT;
    if (issue->is_file && !part->unfinished) {
        making->batch->counts.files--;
        making->batch->counts.files_of[CORPUS_TEXT]--;
    }
    corpus_batch_count_issue(making->batch, issue);
    const bool encoding_skip = kind == CORPUS_ISSUE_ENCODING && making->options->invalid == CORPUS_INVALID_SKIP;
    if (!making->options->skip && !encoding_skip)
        making->stopped = true;
    return issue;
}

/* Records that a document is not valid UTF-8. */
static enum tokmap_status text_invalid(struct making *making, const struct source_record *source, uint64_t offset,
                                       const char *reason)
{
    struct corpus_issue *issue =
        making_issue(making, source, CORPUS_ISSUE_ENCODING, CORPUS_REASON_ENCODING, source->line, offset, reason, NULL);
    if (!issue)
        return making_no_memory(making);
    /* Earlier parts of a document may be packed already and cannot be taken back. corpus.c avoids this: where documents
     * may be skipped, it checks a whole text before it delivers the first part. */
    issue->fatal = source->resumed || source->unfinished;
    making->stopped |= issue->fatal;
    return TOKMAP_OK;
}

static uint64_t place_in(const struct source_text *from, uint64_t offset)
{
    return from->offset == TOKMAP_NO_OFFSET ? TOKMAP_NO_OFFSET : from->offset + offset;
}

/* UTF-8 is checked before escapes are decoded: escapes are ASCII and become whole characters, so they do not change the
 * result, and the position of an invalid byte is then still its position in the stream. */
enum tokmap_status making_text(struct making *making, const struct source_record *source,
                               const struct source_text *from, const char **result, uint64_t *count,
                               uint64_t *replaced_sum, bool *used)
{
    const bool replace = making->options->invalid == CORPUS_INVALID_REPLACE;
    char *text = from->text;
    size_t bytes = from->bytes, replaced = 0, lone = 0, first;
    const size_t valid = utf8_valid_prefix(text, bytes);
    *used = false;
    if (valid < bytes) {
        if (!replace)
            return text_invalid(making, source, place_in(from, valid), "");
        const size_t room = utf8_replaced_bytes(text, bytes, &replaced);
        char *valid_text = corpus_batch_add_text(making->batch, room);
        if (!valid_text)
            return making_no_memory(making);
        utf8_replace(valid_text, text, bytes);
        text = valid_text;
        bytes = room;
    }
    if (from->escaped) {
        bytes = json_unescape(text, bytes, &lone, &first);
        if (lone && !replace)
            return text_invalid(making, source, place_in(from, first), "a surrogate escape has no second half");
    }
    if (from->doubled)
        bytes = csv_field_decode(text, bytes);
    *result = text;
    *count = bytes;
    *replaced_sum += replaced + lone;
    *used = true;
    return TOKMAP_OK;
}

enum tokmap_status making_document(struct making *making, const struct source_record *source,
                                   const struct corpus_document *made, uint64_t replaced)
{
    struct corpus_batch *batch = making->batch;
    struct corpus_document *document = corpus_batch_add_document(batch);
    if (!document)
        return making_no_memory(making);
    *document = *made;
    document->record = source->record;
    document->line = source->line;
    document->position = source->position;
    document->part = source->part;
    document->resumed = source->resumed;
    document->unfinished = source->unfinished;
    const uint64_t bytes = made->bytes + made->second_bytes;
    batch->counts.replaced += replaced;
    batch->counts.document_bytes += made->source_bytes;
    batch->counts.text_bytes += bytes;
    batch->counts.documents += !source->unfinished;
    batch->counts.empty_documents += !bytes && !made->id_count && !source->resumed && !source->unfinished;
    return TOKMAP_OK;
}

/* Adds an issue with a detail, of which the issue takes a copy. */
static enum tokmap_status list_issue(struct making *making, const struct source_record *source, bool is_mask,
                                     uint64_t line, uint64_t offset, const char *reason, const char *field,
                                     const char *detail)
{
    struct corpus_issue *issue =
        making_issue(making, source, CORPUS_ISSUE_RECORD, is_mask ? CORPUS_REASON_MASK : CORPUS_REASON_TOKEN, line,
                     offset, reason, field);
    if (issue)
        issue->detail = strdup(detail);
    return issue && issue->detail ? TOKMAP_OK : making_no_memory(making);
}

enum tokmap_status making_list_fault(struct making *making, const struct source_record *source, bool is_mask,
                                     const char *text, const struct list_fault *fault, uint64_t line, uint64_t offset,
                                     const char *field)
{
    char detail[DETAIL_BYTES];
    const size_t valid = utf8_valid_prefix(text + fault->offset, fault->count);
    const size_t shown = utf8_cut(text + fault->offset, min64(min64(fault->count, ELEMENT_SHOWN), valid));
    assert(fault->reason);
    (void)snprintf(detail, sizeof detail, "number %" PRIu64 " of the list, %.*s%s, %s", fault->index + 1, (int)shown,
                   text + fault->offset, shown < fault->count ? "..." : "", fault->reason);
    return list_issue(making, source, is_mask, line, offset == TOKMAP_NO_OFFSET ? offset : offset + fault->offset,
                      fault->reason, field, detail);
}

enum tokmap_status making_mask_length(struct making *making, const struct source_record *source, uint64_t values,
                                      uint64_t ids, uint64_t line, uint64_t offset)
{
    char detail[DETAIL_BYTES];
    (void)snprintf(detail, sizeof detail, "it has %" PRIu64 " values for %" PRIu64 " ids", values, ids);
    return list_issue(making, source, true, line, offset, CORPUS_MASK_LENGTH, making->options->second_field, detail);
}
