/* SPDX-License-Identifier: MIT */
/*
 * capacity.c - see capacity.h.
 *
 * The seq_len tokens from token x contain one document more than start at tokens x + 1 to x + seq_len - 1. So the task
 * is to find the range of seq_len - 1 tokens with the most starts. A range that is moved forward until it begins with a
 * start loses no start, so only ranges that begin with a start need to be counted.
 *
 * Two streams walk through the starts in order: token 0, the ends of documents, and the same again past the seam.
 * `first` is at the start with which a range begins, and `behind` runs ahead of it, to the first start past the range.
 * The range then has behind.number - first.number starts.
 *
 * Example: documents start at tokens 0, 3, 4, and 9 of 12, and seq_len is 6. The range of 5 tokens that begins at 0 has
 * the starts 0, 3, 4; the range at 3 has 3, 4; the range at 4 has 4; the range at 9 has 9 and 12, which is the seam.
 * The most is 3 starts, so a window can contain 4 documents: the window at token 11 does. A search through all windows
 * would take one step per token; this takes one step per document.
 */
#include "capacity.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/dataset_fetch.h"
#include "dataset/documents.h"

#define AT_ONCE 512 /* document ends read at once */

struct stream {
    const struct tokmap_dataset *dataset;
    struct dataset_walk walk;
    uint64_t lap;      /* added to each end: the tokens of the laps through the dataset that are complete */
    uint64_t start;    /* the current start */
    uint64_t number;   /* its number, counted from 0 over all laps */
    uint64_t used, at; /* ends[at] to ends[used - 1] come next */
    uint64_t ends[AT_ONCE];
};

/* Reads more ends. The last end of a lap is the seam, which is the first start of the next lap. */
static enum tokmap_status further_read(struct stream *stream, struct tokmap_error *error)
{
    enum tokmap_status status =
        dataset_walk_ends(stream->dataset, &stream->walk, stream->ends, AT_ONCE, &stream->used, error);
    stream->at = 0;
    if (!status && !stream->used) {
        stream->walk = (struct dataset_walk){0};
        stream->lap = stream->start;
        status = dataset_walk_ends(stream->dataset, &stream->walk, stream->ends, AT_ONCE, &stream->used, error);
    }
    if (!status && !stream->used)
        status = error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                           "the dataset has tokens, but its indexes have no document; run `tokmap verify` on it");
    return status;
}

/* Moves on to the next start. */
static inline enum tokmap_status stream_next(struct stream *stream, struct tokmap_error *error)
{
    if (stream->at == stream->used) {
        enum tokmap_status status = further_read(stream, error);
        if (status)
            return status;
    }
    stream->start = stream->lap + stream->ends[stream->at++];
    stream->number++;
    return TOKMAP_OK;
}

enum tokmap_status capacity_documents_most(const struct tokmap_dataset *dataset, uint64_t seq_len, uint64_t *most,
                                           struct tokmap_error *error)
{
    struct stream first = {.dataset = dataset}, behind = {.dataset = dataset};
    enum tokmap_status status = TOKMAP_OK;
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    assert(seq_len >= 1 && seq_len <= info.tokens);
    *most = 1;
    if (dataset_is_synthetic(dataset)) {
        *most = dataset_synthetic_most_documents(dataset, seq_len);
        return TOKMAP_OK;
    }
    if (dataset_scans_documents(dataset) || (dataset_cache(dataset) && dataset_held_most(dataset))) {
        *most = seq_len; /* counting them would read all tokens, or the indexes of all shards */
        return TOKMAP_OK;
    }
    while (!status && first.start < info.tokens && *most < seq_len) {
        while (!status && behind.start < first.start + seq_len - 1)
            status = stream_next(&behind, error);
        *most = max64(*most, 1 + behind.number - first.number);
        if (!status)
            status = stream_next(&first, error);
    }
    return status;
}
