/*
 * gather.h - copies windows of one dataset into rows. Every id is checked on the way, and every failure is a status.
 *
 * A window is taken modulo the tokens of the dataset and may cross shards. One thread at a time may use a gather; it
 * allocates memory only when it is opened (a shard is mapped when it is first used). A gather does not decide what is
 * in memory: its residency does.
 */
#ifndef TOKMAP_BATCH_GATHER_H
#define TOKMAP_BATCH_GATHER_H

#include <stdbool.h>

#include "copy.h"
#include "residency.h"
#include "tokmap/tokmap.h"

struct gather;

struct gather_options {
    bool unchecked;                     /* do not compare ids with the vocabulary */
    const struct copy_kernels *kernels; /* NULL: the best of this processor */
};

/* Opens a gather of one source of a residency, which must outlive it. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status gather_open(struct gather **gather, struct residency_source *source,
                               const struct gather_options *options, struct tokmap_error *error);
void gather_close(struct gather *gather); /* accepts NULL */

/* A batch begins: the size of each file that the batch touches is compared with its index again. */
void gather_begin(struct gather *gather);

/* Copies the window that begins at token `first` (below the dataset's tokens) to row, which has room for one window and
 * may have any alignment. Sets *cold, and never clears it, if some of the window was not in the page cache, as far as
 * the kernel reports it. After a failure the content of row is undefined.
 * Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_TOKEN (an id is not in the vocabulary), ERROR_MEMORY. */
enum tokmap_status gather_window(struct gather *gather, uint64_t first, void *row, bool *cold,
                                 struct tokmap_error *error);

/* Prefetches the first cache lines of a window into the processor's cache, if its pages are populated. Never faults. */
void gather_prefetch(const struct gather *gather, uint64_t first);

/* Returns the bytes of tokens copied so far. Any thread. */
uint64_t gather_bytes(const struct gather *gather);

#endif
