/* corpus_internal.h - the state of the reader of the inputs, for corpus.c and corpus_resume.c. */
#ifndef TOKMAP_INPUTS_CORPUS_INTERNAL_H
#define TOKMAP_INPUTS_CORPUS_INTERNAL_H

#include "corpus.h"
#include "excluded_files.h"
#include "format_choice.h"
#include "inputs.h"
#include "parquet/parquet.h"
#include "stream.h"

struct corpus {
    struct corpus_options options;
    struct inputs *inputs;
    struct inputs_counts not_read; /* of the inputs, as far as batches have counted it */
    struct stream *stream;
    uint64_t inputs_begun; /* the open file is input inputs_begun - 1 */
    uint64_t named;        /* inputs that were named, with the open one */
    uint64_t until;        /* while it is resumed: no part ends after this offset of the stream; else 0 */
    bool done;             /* no input is left, or an issue ends the work */

    char *path;                /* of the open file, as it may be shown */
    const char *batch_path;    /* its copy in the batch that is being filled, or NULL */
    bool open, begun;          /* begun: its format is known, and what precedes its records has been taken */
    enum corpus_format format; /* of the file, or CORPUS_AUTO until it is known */
    bool resumed;              /* parts of its document have been delivered */
    bool whole;                /* its document must be held in memory whole */
    uint64_t offset;           /* in the stream, of the first byte that is in no part yet */
    uint64_t line;             /* number of the line that contains this byte, from 1 */
    uint64_t columns;          /* as in struct corpus_part */
    uint64_t places[RECORD_FIELDS_MOST];
    const uint64_t *batch_places; /* their copy in the batch that is being filled, or NULL */
    struct first_line first_line;
    /* Of a file with records: the scanner at `offset`; after the records that end in the next `cut` bytes; and behind
     * all bytes that it has seen, which are `scanned`. Lines need only the first one. */
    struct record_scan scan, cut_scan, seen_scan;
    uint64_t cut, scanned;

    char *carry; /* `carried` bytes of the open file that begin the next batch */
    uint64_t carried, carry_capacity;
    uint64_t finished_stored; /* stored bytes of all files that have been closed */
    /* Of a Parquet file, which is not read through the stream: */
    struct parquet_source *parquet; /* or NULL */
    uint64_t parquet_runs;          /* of rows that were delivered */
    uint64_t parquet_taken;         /* bytes of the file that belong to rows of earlier parts */
    struct parquet_pool *parquet_pool;
    struct excluded_files excluded;
};

/* Opens the next input. An error of it becomes an issue of the batch, but not of one of which a part is read. Statuses:
 * OK, ERROR_INTERRUPTED, ERROR_MEMORY, and those of opening a part. */
enum tokmap_status corpus_file_begin(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                     struct tokmap_error *error);
/* Adds bytes or rows of the open input to the batch. Sets *full if the batch should be processed now. Statuses: those
 * of corpus_next(). */
enum tokmap_status corpus_file_read(struct corpus *corpus, struct corpus_batch *batch, bool *full,
                                    struct tokmap_error *error);

#endif
