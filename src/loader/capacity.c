/*
 * capacity.c - how many documents a window can show.
 *
 * seq_len tokens from token x show one document more than start at tokens x + 1 .. x + seq_len - 1. A stretch of
 * seq_len - 1 tokens loses no start if it is moved on until it begins with one, so only the stretches that begin with a
 * start are counted. Two streams give the starts in order, 0 and the ends, and over again behind the seam: one the
 * first of each stretch, the other, ahead of it, the first behind it.
 */
#include "capacity.h"

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"

#define AT_ONCE 512

struct stream {
    const struct tokmap_dataset *dataset;
    struct dataset_walk walk;
    uint64_t turn;   /* what is added to addresses: turns of the dataset's tokens */
    uint64_t start;  /* the latest */
    uint64_t number; /* of it */
    uint64_t used, at;
    uint64_t ends[AT_ONCE];
};

/* Reads more ends. The last of a turn is the seam, the next turn's first start. */
static enum tokmap_status stream_read(struct stream *stream, struct tokmap_error *error)
{
    enum tokmap_status status =
        dataset_walk_ends(stream->dataset, &stream->walk, stream->ends, AT_ONCE, &stream->used, error);
    stream->at = 0;
    if (!status && !stream->used) {
        stream->walk = (struct dataset_walk){0};
        stream->turn = stream->start;
        status = dataset_walk_ends(stream->dataset, &stream->walk, stream->ends, AT_ONCE, &stream->used, error);
    }
    if (!status && !stream->used)
        status = error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                           "the dataset has tokens, but no document that holds them; run `tokmap verify` on it");
    return status;
}

/* Moves on to the next start. */
static inline enum tokmap_status stream_next(struct stream *stream, struct tokmap_error *error)
{
    if (stream->at == stream->used) {
        enum tokmap_status status = stream_read(stream, error);
        if (status)
            return status;
    }
    stream->start = stream->turn + stream->ends[stream->at++];
    stream->number++;
    return TOKMAP_OK;
}

enum tokmap_status capacity_documents_most(const struct tokmap_dataset *dataset, uint64_t seq_len, uint64_t *most,
                                           struct tokmap_error *error)
{
    struct stream first = {.dataset = dataset}, behind = {.dataset = dataset};
    struct tokmap_dataset_info info;
    enum tokmap_status status = TOKMAP_OK;
    dataset_describe(dataset, &info);
    *most = 1;
    if (dataset_is_synthetic(dataset)) {
        *most = dataset_synthetic_most_documents(dataset, seq_len);
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
