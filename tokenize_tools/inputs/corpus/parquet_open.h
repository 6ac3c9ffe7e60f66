/* SPDX-License-Identifier: MIT */
/*
 * parquet_open.h - opens the Parquet files of a corpus: those of this machine, and those of URLs.
 *
 * Of a URL, only the footer and the pages of the chosen columns are fetched (remote_ahead.h). They are planned when the
 * footer has been read: the columns of a row group are cut into pieces, which come in the order in which rows need
 * them. Small columns with little between them share a piece. Example, of a row group with a text of 12 MiB and an id
 * of 1 MiB:
 *
 *     id | text 0-4 MiB | text 4-8 MiB | text 8-12 MiB
 */
#ifndef TOKMAP_CORPUS_PARQUET_OPEN_H
#define TOKMAP_CORPUS_PARQUET_OPEN_H

#include "corpus_options.h"
#include "parquet/parquet.h"
#include "remote/remote_ahead.h"

/* What files that are read one after another have in common. Begins as zeros. */
struct parquet_shared {
    struct parquet_pool *pool;
    struct remote_ahead *ahead; /* made when the first URL is read */
};
void parquet_shared_free(struct parquet_shared *shared); /* after their sources were closed */

/* Opens a Parquet file, with the columns that the options name, or the row groups `part` of it, if that is not NULL.
 * What is missing in *shared is made. Statuses: those of parquet_source_open() and remote_open(). */
enum tokmap_status parquet_open(struct parquet_source **source, const char *path, const struct corpus_options *options,
                                const struct corpus_range *part, struct parquet_shared *shared,
                                struct tokmap_error *error);

#endif
