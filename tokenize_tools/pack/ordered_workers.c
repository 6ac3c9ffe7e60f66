/*
 * ordered_workers.c - see ordered_workers.h.
 *
 * There is one kind of worker. It takes an empty turn and the reader's lock, draws a ticket and fills the turn's batch;
 * takes the batch apart and works on it beside the others. If all tickets before its own have ended it ends its turn, and
 * then those after it that lie ready; else it leaves its own ready for whoever does that, and goes on with another. So
 * nobody waits for a slower neighbour as long as there are empty turns, of which there are about two a worker; their number
 * bounds the memory. With one worker all this is a plain loop.
 *
 * A worker that cannot wait for the end of its batch, because it has run out of room, takes its turn early and keeps it.
 * A batch that grows far beyond the usual size does so before it is read, so at most one is large at any time.
 *
 * Failures are met in the order of the input too: a turn that failed lies ready like others. So the message does not
 * depend on the number of threads either.
 */
#include "ordered_workers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define SPARE_MOST 16 /* turns beyond one a worker */

struct slot {
    struct turn turn; /* first: a turn is its slot */
    uint64_t ticket;
    bool taken; /* early */
    enum tokmap_status status;
    struct tokmap_error error;
};

struct worker {
    struct turns *turns;
    struct os_thread *thread;
    uint32_t number;
};

struct turns {
    struct turns_options options;
    struct corpus *corpus;
    struct slot *slots;
    uint32_t slot_count;
    struct worker *workers;

    struct os_mutex *reading; /* holds the corpus, next_ticket, ended, reader */
    uint64_t next_ticket;
    bool ended;
    struct slot *reader;

    struct os_mutex *turning;    /* holds what follows */
    struct os_condition *freed;  /* a slot is empty, or the work has failed */
    struct os_condition *passed; /* `now` has moved and is not held, or the work has failed */
    struct slot **empty;         /* a stack: the last one used is the one in the processor's caches */
    uint32_t empty_count;
    struct slot **ready; /* by ticket, modulo slot_count */
    uint64_t now;        /* the ticket that ends next */
    bool held;           /* somebody is about to end it */
    bool stopped;        /* atomic to read */
    enum tokmap_status status;
    struct tokmap_error error;
};

/* ---- turns ---- */

static bool is_stopped(const struct turns *turns)
{
    return __atomic_load_n(&turns->stopped, __ATOMIC_ACQUIRE);
}

/* With the lock. */
static void stop(struct turns *turns, enum tokmap_status status, const struct tokmap_error *error)
{
    if (turns->stopped)
        return;
    turns->status = status;
    turns->error = *error;
    __atomic_store_n(&turns->stopped, true, __ATOMIC_RELEASE);
    os_condition_broadcast(turns->freed);
    os_condition_broadcast(turns->passed);
}

static bool slot_take(struct turns *turns, struct slot *slot)
{
    os_mutex_lock(turns->turning);
    while (!slot->taken && !turns->stopped) {
        slot->taken = turns->now == slot->ticket && !turns->held;
        turns->held |= slot->taken;
        if (!slot->taken)
            os_condition_wait(turns->passed, turns->turning);
    }
    const bool taken = slot->taken && !turns->stopped;
    os_mutex_unlock(turns->turning);
    return taken;
}

bool turns_take(struct turns *turns, struct turn *turn)
{
    return slot_take(turns, (struct slot *)turn);
}

/* An empty slot; NULL if the work has failed. */
static struct slot *slot_empty(struct turns *turns)
{
    struct slot *slot = NULL;
    os_mutex_lock(turns->turning);
    while (!turns->empty_count && !turns->stopped)
        os_condition_wait(turns->freed, turns->turning);
    if (!turns->stopped)
        slot = turns->empty[--turns->empty_count];
    os_mutex_unlock(turns->turning);
    return slot;
}

/* What the batch adds to the accounts, and what was left out of it. */
static enum tokmap_status account(struct turns *turns, const struct corpus_batch *batch, struct tokmap_error *error)
{
    const struct turns_options *options = &turns->options;
    corpus_counts_add(options->counts, &batch->counts);
    for (uint64_t i = 0; i < batch->issue_count; i++) {
        const struct corpus_issue *issue = &batch->issues[i];
        struct tokmap_error why;
        const enum tokmap_status status = corpus_issue_error(issue, &options->corpus, &why);
        const bool skip_encoding =
            issue->kind == CORPUS_ISSUE_ENCODING && options->corpus.invalid == CORPUS_INVALID_SKIP;
        if (issue->fatal || !(options->corpus.skip || skip_encoding)) {
            *error = why;
            return status;
        }
        if (options->skipped)
            options->skipped(options->user, &why, issue->bytes);
    }
    if (options->progress)
        options->progress(options->user, batch->progress);
    return TOKMAP_OK;
}

/* Ends one turn, for which the lock is not needed: `held` keeps others away. */
static enum tokmap_status slot_finish(struct turns *turns, struct slot *slot)
{
    const struct turns_options *options = &turns->options;
    if (!slot->status && options->end)
        slot->status = options->end(options->self, &slot->turn, &slot->error);
    if (!slot->status)
        slot->status = account(turns, &slot->turn.batch, &slot->error);
    /* Before another may take as much. */
    corpus_batch_release(&slot->turn.batch);
    return slot->status;
}

/* The slot's work is done, or has failed. Ends all turns that can be ended now. */
static void slot_done(struct turns *turns, struct slot *slot)
{
    os_mutex_lock(turns->turning);
    turns->ready[slot->ticket % turns->slot_count] = slot;
    const bool own = slot->taken || (!turns->held && turns->now == slot->ticket);
    turns->held |= own;
    while (own && !turns->stopped) {
        struct slot **next = &turns->ready[turns->now % turns->slot_count];
        struct slot *ending = *next;
        if (!ending)
            break;
        *next = NULL;
        os_mutex_unlock(turns->turning);
        const enum tokmap_status status = slot_finish(turns, ending);
        os_mutex_lock(turns->turning);
        if (status) {
            stop(turns, status, &ending->error);
            break;
        }
        turns->now++;
        turns->empty[turns->empty_count++] = ending;
        os_condition_signal(turns->freed);
    }
    if (own) {
        turns->held = false;
        os_condition_broadcast(turns->passed);
    }
    os_mutex_unlock(turns->turning);
}

/* ---- the corpus asks ---- */

/* The reader's lock is held, by turns->reader. Workers with earlier tickets need neither it nor another slot to end. */
static void before_large(void *user)
{
    struct turns *turns = user;
    (void)slot_take(turns, turns->reader);
}

static bool corpus_stop(void *user)
{
    const struct turns *turns = user;
    return is_stopped(turns) || (turns->options.stop && turns->options.stop(turns->options.user));
}

/* ---- workers ---- */

/* Fills the slot's batch; END if there is nothing left or nothing to do any more. */
static enum tokmap_status batch_read(struct turns *turns, struct slot *slot)
{
    enum tokmap_status status = TOKMAP_END;
    os_mutex_lock(turns->reading);
    if (!turns->ended && !is_stopped(turns)) {
        slot->ticket = turns->next_ticket++;
        slot->taken = false;
        turns->reader = slot;
        status = corpus_next(turns->corpus, &slot->turn.batch, &slot->error);
        turns->ended = status != TOKMAP_OK;
    }
    os_mutex_unlock(turns->reading);
    if (!status && turns->options.stop && turns->options.stop(turns->options.user))
        status = error_set(&slot->error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    return status;
}

static void worker_run(void *user)
{
    const struct worker *worker = user;
    struct turns *turns = worker->turns;
    const struct turns_options *options = &turns->options;
    struct tokmap_error error;
    for (;;) {
        struct slot *slot = slot_empty(turns);
        if (!slot)
            return;
        slot->turn.worker = worker->number;
        slot->status = batch_read(turns, slot);
        if (slot->status == TOKMAP_END)
            break;
        if (!slot->status)
            slot->status = corpus_prepare(&options->corpus, &slot->turn.batch, &slot->error);
        if (!slot->status)
            slot->status = options->work(options->self, &slot->turn, &slot->error);
        if (is_stopped(turns))
            return;
        slot_done(turns, slot);
    }
    const enum tokmap_status status =
        options->finish && !is_stopped(turns) ? options->finish(options->self, worker->number, &error) : TOKMAP_OK;
    if (status) {
        os_mutex_lock(turns->turning);
        stop(turns, status, &error);
        os_mutex_unlock(turns->turning);
    }
}

/* Runs worker 0 here and the others beside it. */
enum tokmap_status turns_run(struct turns *turns, struct tokmap_error *error)
{
    int system = 0;
    for (uint32_t i = 1; i < turns->options.threads && !system; i++)
        system = os_thread_start(&turns->workers[i].thread, turns->options.name, worker_run, &turns->workers[i]);
    /* Fewer threads than asked for do the same work, but whoever asked should know. */
    if (system) {
        struct tokmap_error why;
        os_mutex_lock(turns->turning);
        const enum tokmap_status status = error_set_system(&why, system, NULL, TOKMAP_NO_OFFSET,
                                                           "a thread cannot be started; use fewer with options.threads");
        stop(turns, status, &why);
        os_mutex_unlock(turns->turning);
    } else {
        worker_run(&turns->workers[0]);
    }
    for (uint32_t i = 1; i < turns->options.threads; i++)
        os_thread_join(turns->workers[i].thread);
    if (turns->stopped)
        *error = turns->error;
    return turns->status;
}

/* ---- the whole ---- */

enum tokmap_status turns_new(struct turns **turns, const struct turns_options *options, const char *const *operands,
                             size_t count, struct tokmap_error *error)
{
    struct turns *made = *turns = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the threads", sizeof *made);
    made->options = *options;
    made->options.corpus.before_large = before_large;
    made->options.corpus.stop = corpus_stop;
    made->options.corpus.user = made;
    const uint32_t threads = options->threads;
    made->slot_count = threads == 1 ? 1 : threads + (uint32_t)min64(threads, SPARE_MOST);
    made->slots = calloc(made->slot_count, sizeof *made->slots);
    made->empty = calloc(made->slot_count, sizeof(struct slot *));
    made->ready = calloc(made->slot_count, sizeof(struct slot *));
    made->workers = calloc(threads, sizeof *made->workers);
    if (!made->slots || !made->empty || !made->ready || !made->workers || os_mutex_new(&made->reading) ||
        os_mutex_new(&made->turning) || os_condition_new(&made->freed) || os_condition_new(&made->passed))
        return error_set_memory(error, "the threads", made->slot_count * sizeof *made->slots);
    for (uint32_t i = 0; i < threads; i++)
        made->workers[i] = (struct worker){.turns = made, .number = i};
    for (uint32_t i = 0; i < made->slot_count; i++) {
        made->slots[i].turn.room = i;
        made->empty[made->empty_count++] = &made->slots[i];
    }
    return corpus_open(&made->corpus, operands, count, &made->options.corpus, error);
}

void turns_free(struct turns *turns)
{
    if (!turns)
        return;
    for (uint32_t i = 0; turns->slots && i < turns->slot_count; i++)
        corpus_batch_free(&turns->slots[i].turn.batch);
    corpus_close(turns->corpus);
    os_condition_free(turns->passed);
    os_condition_free(turns->freed);
    os_mutex_free(turns->turning);
    os_mutex_free(turns->reading);
    free(turns->workers);
    free(turns->ready);
    free(turns->empty);
    free(turns->slots);
    free(turns);
}

struct corpus *turns_corpus(struct turns *turns)
{
    return turns->corpus;
}

uint32_t turns_rooms(const struct turns *turns)
{
    return turns->slot_count;
}
