/*
 * ordered_workers.h - workers that take batches off one corpus, work on them side by side and end them in the order of the input.
 * Packing and training are built on it: what comes out, and which failure is told, does not depend on their number.
 */
#ifndef TOKMAP_PACK_ORDERED_WORKERS_H
#define TOKMAP_PACK_ORDERED_WORKERS_H

#include <stdbool.h>

#include "corpus/corpus.h"

struct turns;

/* A batch on its way from the corpus to its end. */
struct turn {
    uint32_t worker; /* that works on it, below `threads` */
    uint32_t room;   /* below turns_rooms(): no other turn has this number until this one has ended */
    struct corpus_batch batch;
};

struct turns_options {
    const char *name;             /* of the threads */
    uint32_t threads;             /* at least 1; 1 runs in the caller's thread */
    struct corpus_options corpus; /* before_large, stop and user are set here */
    struct corpus_counts *counts; /* the batches' are added to it */

    /* Beside others: the documents of the batch are ready. */
    enum tokmap_status (*work)(void *self, struct turn *turn, struct tokmap_error *error);
    /* In the order of the input, one at a time, by any worker; where work() has succeeded. May be NULL. */
    enum tokmap_status (*end)(void *self, struct turn *turn, struct tokmap_error *error);
    /* Beside others: a worker finds nothing more to do. May be NULL. */
    enum tokmap_status (*finish)(void *self, uint32_t worker, struct tokmap_error *error);
    void *self;

    /* As pack.h has them; each may be NULL. */
    void (*skipped)(void *user, const struct tokmap_error *why, uint64_t bytes);
    void (*progress)(void *user, uint64_t stored_bytes);
    bool (*stop)(void *user);
    void *user;
};

/* Opens the corpus. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status turns_new(struct turns **turns, const struct turns_options *options, const char *const *operands,
                             size_t count, struct tokmap_error *error);
void turns_free(struct turns *turns); /* accepts NULL */
struct corpus *turns_corpus(struct turns *turns);
uint32_t turns_rooms(const struct turns *turns);

/* All batches. Statuses: OK, those of the calls, of the corpus and its issues, ERROR_INTERRUPTED, ERROR_IO (a thread cannot
 * be started). */
enum tokmap_status turns_run(struct turns *turns, struct tokmap_error *error);

/* For work(): waits until all turns before have ended, and lets none pass until this one has. False: the work has failed,
 * and there is nothing more to do. */
bool turns_take(struct turns *turns, struct turn *turn);

#endif
