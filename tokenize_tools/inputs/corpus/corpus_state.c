/* SPDX-License-Identifier: MIT */
#include "corpus_state.h"

#include <stdlib.h>

#include "common/error.h"

enum tokmap_status corpus_no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "a batch of the corpus", 0);
}

struct corpus_issue *corpus_issue_add(struct corpus *corpus, struct corpus_batch *batch, enum corpus_issue_kind kind,
                                      const char *path)
{
    struct corpus_issue *issue = corpus_batch_add_issue(batch);
    if (!issue)
        return NULL;
    issue->kind = kind;
    issue->path = corpus_batch_add_path(batch, path);
    issue->format = corpus->file.format;
    if (!corpus->options.skip && !(kind == CORPUS_ISSUE_ENCODING && corpus->options.invalid == CORPUS_INVALID_SKIP))
        corpus->done = true;
    return issue->path ? issue : NULL;
}

enum tokmap_status corpus_file_left_out(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                        uint64_t skipped, enum corpus_reason reason, const struct tokmap_error *why,
                                        struct tokmap_error *error)
{
    struct corpus_issue *issue = corpus_issue_add(corpus, batch, CORPUS_ISSUE_FILE, path);
    if (!issue)
        return corpus_no_memory(error);
    issue->error = malloc(sizeof *issue->error);
    if (!issue->error)
        return corpus_no_memory(error);
    *issue->error = *why;
    issue->left_out = reason;
    issue->is_file = true;
    issue->offset = why->offset;
    issue->bytes = skipped;
    corpus_batch_count_issue(batch, issue);
    return TOKMAP_OK;
}

const struct corpus_range *corpus_own_groups(const struct corpus *corpus)
{
    return corpus->options.range.groups && corpus->inputs_begun == 1 ? &corpus->options.range : NULL;
}

enum tokmap_status corpus_file_failed(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                      uint64_t skipped, enum tokmap_status status, const struct tokmap_error *why,
                                      struct tokmap_error *error)
{
    const bool passing = status == TOKMAP_ERROR_IO || status == TOKMAP_ERROR_MISMATCH;
    if (status == TOKMAP_ERROR_INTERRUPTED || status == TOKMAP_ERROR_MEMORY || status == TOKMAP_ERROR_FORMAT ||
        stream_is_feed(corpus->stream) || (corpus_own_groups(corpus) && (passing || !corpus->file.begun))) {
        if (error)
            *error = *why;
        return status;
    }
    return corpus_file_left_out(corpus, batch, path, skipped, corpus_reason_of(status), why, error);
}

void corpus_file_end(struct corpus *corpus, struct corpus_batch *batch)
{
    const uint64_t stored = corpus->file.reader->close(corpus);
    batch->counts.stored_bytes += stored;
    if (corpus->file.format == CORPUS_JSONL)
        batch->counts.lines += corpus->file.line - 1;
    corpus->finished_stored += stored;
    corpus->file.open = false;
    corpus->carry.count = 0;
}
