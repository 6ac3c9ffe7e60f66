/* SPDX-License-Identifier: MIT */
/* corpus_state.h - the state of the reader of the inputs, and what its parts have in common: how an error of a file
 * becomes an issue, and how a file ends. */
#ifndef TOKMAP_CORPUS_CORPUS_STATE_H
#define TOKMAP_CORPUS_CORPUS_STATE_H

#include "corpus_options.h"
#include "excluded_files.h"
#include "format_choice.h"
#include "inputs.h"
#include "next_input.h"
#include "parquet_open.h"
#include "stream.h"

struct corpus;

/* Where the rows of a Parquet file may be continued: the runs of rows before a row group, and their bytes. */
struct parquet_place {
    uint64_t group, offset, taken;
};

/* Reader that makes parts of an open input: of the bytes of its stream, or of the rows of a Parquet file. */
struct corpus_reader {
    /* Adds bytes or rows to the batch. Sets *full if the batch should be processed now. Statuses: those of
     * corpus_next(). */
    enum tokmap_status (*read)(struct corpus *corpus, struct corpus_batch *batch, bool *full,
                               struct tokmap_error *error);
    uint64_t (*at)(const struct corpus *corpus); /* bytes of the file that have been read */
    uint64_t (*close)(struct corpus *corpus);    /* returns the bytes of the file that count as read */
};

struct corpus {
    struct corpus_options options;
    struct inputs *inputs;
    struct inputs_counts not_read; /* of the inputs, as far as batches have counted it */
    struct stream *stream;
    uint64_t inputs_begun; /* the open file is input inputs_begun - 1 */
    uint64_t named;        /* inputs that were named, with the open one */
    uint64_t until;        /* while it is resumed: no part ends after this offset of the stream; else 0 */
    bool done;             /* no input is left, or an issue ends the work */

    /* The open file. */
    struct {
        char *path;             /* as it may be shown */
        const char *named;      /* as it was named; valid while it is opened */
        const char *batch_path; /* its copy in the batch that is being filled, or NULL */
        const struct corpus_reader *reader;
        bool open, begun;          /* begun: its format is known, and what precedes its records has been taken */
        enum corpus_format format; /* or CORPUS_AUTO until it is known */
        bool resumed;              /* parts of its document have been delivered */
        bool whole;                /* its document must be held in memory whole */
        uint64_t offset; /* in the stream, of the first byte that is in no part yet; of Parquet: runs of rows */
        uint64_t taken;  /* of Parquet: bytes of the file that belong to these rows */
        struct parquet_place group; /* the row group of the last rows */
        uint64_t line;              /* number of the line that contains this byte, from 1 */
        uint64_t columns;           /* as in struct corpus_part */
        uint64_t places[RECORD_FIELDS_MOST];
        const uint64_t *batch_places; /* their copy in the batch that is being filled, or NULL */
        struct first_line first_line;
    } file;
    /* State of a file with records: the scanner at `offset`; after the records that end in the next `cut_bytes`; and
     * behind all bytes that it has seen, which are `seen_bytes`. Lines need only the first one. */
    struct {
        struct record_scan begin, cut, seen;
        uint64_t cut_bytes, seen_bytes;
    } scan;

    /* Bytes of the open file that begin the next batch. */
    struct {
        char *bytes;
        uint64_t count, capacity;
    } carry;
    uint64_t finished_stored;       /* stored bytes of all files that have been closed */
    struct parquet_source *parquet; /* the open file, if it is a Parquet file, or NULL */
    struct parquet_shared parquet_shared;
    struct parquet_place parquet_from; /* while it is resumed: where the open file is continued */
    struct next_input next;
    struct excluded_files excluded;
};

/* Sets the error for a batch that has no memory; returns ERROR_MEMORY. */
enum tokmap_status corpus_no_memory(struct tokmap_error *error);

/* Adds an issue about the open file or `path`. Unless issues are skipped, it ends the work. NULL: not enough memory. */
struct corpus_issue *corpus_issue_add(struct corpus *corpus, struct corpus_batch *batch, enum corpus_issue_kind kind,
                                      const char *path);

/* Makes an issue of a file that is left out, or of the rest of one: of `skipped` bytes that have been read. Statuses:
 * OK, ERROR_MEMORY. */
enum tokmap_status corpus_file_left_out(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                        uint64_t skipped, enum corpus_reason reason, const struct tokmap_error *why,
                                        struct tokmap_error *error);

/* Turns an error of a file into an issue. An interrupt or a lack of memory is not the file's fault, and is returned. So
 * is any error of a feed, whatever options.skip is: its rest must not be left out; and that a file of which others read
 * the rest cannot be read now, or is another one. */
enum tokmap_status corpus_file_failed(struct corpus *corpus, struct corpus_batch *batch, const char *path,
                                      uint64_t skipped, enum tokmap_status status, const struct tokmap_error *why,
                                      struct tokmap_error *error);

/* Counts and closes the open file. */
void corpus_file_end(struct corpus *corpus, struct corpus_batch *batch);

/* Returns the row groups that are read of the open file, or NULL if it is read whole. */
const struct corpus_range *corpus_own_groups(const struct corpus *corpus);

#endif
