/* corpus_parquet.c - the part of corpus.c that is about Parquet files, which are not read through the stream. */
#include "common/error.h"
#include "corpus_internal.h"
#include "parquet_documents.h"

/* The rest of a Parquet file, or all of it, is left out because of an error. */
static enum tokmap_status parquet_failed(struct corpus *corpus, struct corpus_batch *batch, uint64_t skipped,
                                         enum tokmap_status status, const struct tokmap_error *why,
                                         struct tokmap_error *error)
{
    const bool field = status == TOKMAP_ERROR_INPUT;
    batch->counts.stream_bytes += skipped;
    return field ? corpus_file_left_out(corpus, batch, corpus->path, skipped, CORPUS_REASON_FIELD, why, error)
                 : corpus_file_failed(corpus, batch, corpus->path, skipped, status, why, error);
}

const struct corpus_range *corpus_own_groups(const struct corpus *corpus)
{
    return corpus->options.range.groups && corpus->inputs_begun == 1 ? &corpus->options.range : NULL;
}

enum tokmap_status corpus_groups_failed(enum tokmap_status status, const struct tokmap_error *why,
                                        struct tokmap_error *error)
{
    if (error)
        *error = *why;
    return status;
}

enum tokmap_status corpus_parquet_begin(struct corpus *corpus, struct corpus_batch *batch, struct tokmap_error *error)
{
    const struct corpus_options *options = &corpus->options;
    const struct corpus_range *part = corpus_own_groups(corpus);
    const uint64_t bytes = stream_stat(corpus->stream)->bytes;
    const bool regular = stream_is_regular(corpus->stream);
    struct tokmap_error why;
    corpus->format = CORPUS_PARQUET;
    corpus->parquet_taken = corpus->parquet_runs = 0;
    enum tokmap_status status = regular ? TOKMAP_OK : stream_parquet_refused(corpus->stream, &why);
    stream_close(corpus->stream);
    corpus->open = false;
    if (status && !part)
        return corpus_file_failed(corpus, batch, corpus->path, 0, status, &why, error);
    if (!status)
        status = parquet_open(&corpus->parquet, corpus->path, options, part, &corpus->parquet_pool, &why);
    corpus->open = !status;
    if (!status)
        return TOKMAP_OK;
    if (part)
        return corpus_groups_failed(status, &why, error);
    batch->counts.stored_bytes += bytes;
    corpus->finished_stored += bytes;
    return parquet_failed(corpus, batch, bytes, status, &why, error);
}

enum tokmap_status corpus_parquet_read(struct corpus *corpus, struct corpus_batch *batch, bool *full,
                                       struct tokmap_error *error)
{
    struct tokmap_error why;
    struct parquet_rows *rows;
    const uint64_t rest = parquet_source_bytes(corpus->parquet) - corpus->parquet_taken;
    enum tokmap_status status = parquet_source_next(corpus->parquet, &rows, &why);
    if (status == TOKMAP_END) {
        corpus_batch_count_file(batch, corpus->format);
        batch->counts.stream_bytes += rest;
        batch->counts.structure_bytes += rest;
        corpus_file_end(corpus, batch);
        return TOKMAP_OK;
    }
    if (corpus_own_groups(corpus) && (status == TOKMAP_ERROR_IO || status == TOKMAP_ERROR_MISMATCH))
        return corpus_groups_failed(status, &why, error);
    if (status) {
        status = parquet_failed(corpus, batch, rest, status, &why, error);
        corpus_file_end(corpus, batch);
        return status;
    }
    if (!corpus->batch_path)
        corpus->batch_path = corpus_batch_add_path(batch, corpus->path);
    struct corpus_part *part = corpus->batch_path ? corpus_batch_add_part(batch) : NULL;
    if (!part) {
        parquet_rows_free(rows);
        return error_set_memory(error, "a batch of the corpus", 0);
    }
    part->rows = rows;
    part->path = corpus->batch_path;
    part->input = corpus->inputs_begun - 1;
    part->begin = part->end = batch->filled;
    part->format = CORPUS_PARQUET;
    corpus->parquet_taken += rows->stored_bytes;
    corpus->parquet_runs++;
    batch->counts.stream_bytes += rows->stored_bytes;
    *full = true;
    return TOKMAP_OK;
}
