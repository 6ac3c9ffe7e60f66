/* SPDX-License-Identifier: MIT */
/*
 * ordered_workers.h - threads that process the batches of one corpus in parallel and commit them in the order of the
 * input.
 *
 * Packing and training are built on it. A work item is one batch on its way: a worker reads it; the same or
 * another one makes its documents and calls process(), in parallel with others; then commit() is called for one item at
 * a time, in the order of the input. The first error in the order of the input ends the work. So neither the result nor
 * the reported error depends on the number of threads.
 */
#ifndef TOKMAP_ENCODE_ORDERED_WORKERS_H
#define TOKMAP_ENCODE_ORDERED_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "corpus/corpus.h"

/*
 * How much input may be left out before the work fails (--max-skipped).
 *
 * A limit is a number of files and records, or a share of all of them. What is left out is counted in the order of the
 * input, so that the result does not depend on the number of threads.
 */

#define SKIP_LIMIT_SHARES ((uint64_t)100000000) /* unit of a share: 100% */
/* A share is judged on the way from so many files and records on, and then with twice the limit, because bad input may
 * come first. At the end it is judged exactly. */
#define SKIP_LIMIT_EARLY 10000

struct skip_limit {
    bool given;
    bool is_share;
    uint64_t most;    /* files and records, or shares */
    const char *text; /* as it was typed, for messages; "" if none is given */
};

/* Reads "1000" or "0.1%", with at most 6 digits after the point, at most 100%. Returns false, and leaves *limit alone,
 * if the text has another form. The text must stay valid as long as the limit is used. */
bool skip_limit_parse(const char *text, struct skip_limit *limit);

/* Returns whether `left_out` files and records are too many, where `kept` documents were read. at_end: nothing follows.
 */
bool skip_limit_passed(const struct skip_limit *limit, uint64_t left_out, uint64_t kept, bool at_end);

struct ordered_workers;

struct work_item {
    uint32_t worker; /* the worker that processes the item, below options.threads */
    uint32_t index;  /* below ordered_workers_item_count(); no other item has this index at the same time */
    struct corpus_batch batch;
};

struct ordered_workers_options {
    const char *name;             /* of the threads */
    uint32_t threads;             /* at least 1; with 1, everything runs in the caller's thread */
    struct corpus_options corpus; /* before_large, stop and user are overwritten */
    struct corpus_counts *counts; /* the counts of all committed batches are added to it */
    struct skip_limit skip_limit; /* amount that may be left out before the work fails with ERROR_LIMIT */
    const char *other_output;     /* a file that the command writes and that is not an input, or NULL */

    /* Called in parallel, once per item, when the documents of its batch are ready. */
    enum tokmap_status (*process)(void *self, struct work_item *item, struct tokmap_error *error);
    /* Called in the order of the input, for one item at a time, by any worker, after process() has succeeded. May be
     * NULL. */
    enum tokmap_status (*commit)(void *self, struct work_item *item, struct tokmap_error *error);
    /* Called after commit(), and after the batch was added to the accounts, under the same rules. May be NULL. */
    enum tokmap_status (*committed)(void *self, struct work_item *item, struct tokmap_error *error);
    /* Called in parallel, once per worker, when no input is left. It is not called after an error. May be NULL. */
    enum tokmap_status (*finish)(void *self, uint32_t worker, struct tokmap_error *error);
    void *self;

    /* As in struct pack_options; each may be NULL. */
    void (*skipped)(void *user, const struct corpus_issue *issue, const struct tokmap_error *why);
    void (*progress)(void *user, uint64_t stored_bytes);
    bool (*stop)(void *user);
    void *user;
};

/* Opens the corpus and allocates the items. The operands, and all that the options point to, must stay valid until
 * ordered_workers_free(), which must also be called after an error. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status ordered_workers_new(struct ordered_workers **workers, const struct ordered_workers_options *options,
                                       const char *const *operands, size_t count, struct tokmap_error *error);
void ordered_workers_free(struct ordered_workers *workers); /* accepts NULL */

/* Returns the corpus, for corpus_exclude() before ordered_workers_run(). */
struct corpus *ordered_workers_corpus(struct ordered_workers *workers);

/* Returns the files and records that count for skip_limit: as committed() finds them, and as another process has left
 * them. */
uint64_t ordered_workers_left_out(const struct ordered_workers *workers);
void ordered_workers_continue(struct ordered_workers *workers, uint64_t left_out);

/* Returns the number of items that can exist at the same time. It bounds the memory of the callers' data per item. */
uint32_t ordered_workers_item_count(const struct ordered_workers *workers);

/* Processes the whole corpus. May be called once. Statuses: OK, those of the callbacks, of the corpus and of its
 * issues, ERROR_INTERRUPTED (options.stop returned true), ERROR_IO (a thread cannot be started). */
enum tokmap_status ordered_workers_run(struct ordered_workers *workers, struct tokmap_error *error);

/* For process(): waits until all earlier items have been committed, and keeps the turn until this item is committed.
 * Then process() may do what otherwise only commit() may do. Returns false if the work has failed: process() should
 * return. */
bool ordered_workers_wait_turn(struct ordered_workers *workers, struct work_item *item);

/* For process() of work that looks at all documents in the order of the input before it encodes them: waits until all
 * earlier items have called ordered_workers_pass(). This order is separate from that of the commits, so what process()
 * does after ordered_workers_pass() is parallel again. Either all items of the work call both, once each and in this
 * order, or none does; an item whose process() fails need not call ordered_workers_pass(). Returns false if the work
 * has failed: process() should return. */
bool ordered_workers_wait_order(struct ordered_workers *workers, const struct work_item *item);
void ordered_workers_pass(struct ordered_workers *workers);

#endif
