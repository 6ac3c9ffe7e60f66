/* SPDX-License-Identifier: MIT */
/*
 * ordered_workers.c - see ordered_workers.h.
 *
 * All workers run the same loop, and there is no separate reader or writer thread:
 *
 *  1. If no worker reads and an item is empty: draw the next ticket, and fill the item's batch.
 *  2. Take the item with the next ticket. Make its documents and process them, in parallel with the other workers.
 *  3. If all earlier tickets are committed: commit this item, then all following items that are already processed. If
 * not: leave the item in `ready`, where the worker that commits the preceding ticket finds it.
 *
 * Example with two workers: A reads ticket 0 and B reads ticket 1. B is done first and leaves ticket 1 in `ready`, then
 * reads ticket 2. A commits ticket 0, finds ticket 1 in `ready` and commits it too.
 *
 * What is decompressed takes long to read, so the worker that reads repeats step 1 until no item is empty, and the
 * others go on with step 2: it decompresses ahead of them, and what it needs for that stays in its processor's caches.
 * Example: A reads tickets 0 to 3, and B meanwhile processes 0 and 1. No item is empty, so A processes 2. B is done
 * first, and reads on.
 *
 * So a worker never waits for a slower one while there are empty items. There are about two items per worker, and their
 * number bounds the memory. A queue per stage, with a reader and a writer thread, would cost the same locks and keep
 * two threads mostly idle. With one worker, all of this is a simple loop.
 *
 * Work that compares documents with all earlier ones has a second order, in which items pass a point of step 2
 * (ordered_workers_wait_order()).
 *
 * Two cases need the turn before step 3. A worker whose output is full waits for its turn during step 2 and keeps it
 * (ordered_workers_wait_turn()). And a batch that has to grow far above the usual size waits for its turn before it
 * grows (before_large()), so that at most one batch is large at any time.
 *
 * Errors follow the same order: a failed item waits in `ready` like any other, and ends the work when its ticket is
 * next.
 */
#include "ordered_workers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus/corpus_issue.h"
#include "corpus/corpus_range.h"
#include "corpus/records.h"
#include "platform/os.h"
#include "text/decimal.h"

#define SPARE_MOST 16 /* most items in addition to one per worker */

struct queued_item {
    struct work_item base; /* the first member: a pointer to it is a pointer to the queued_item */
    uint64_t ticket;       /* number of the batch in the order of the input */
    bool has_turn;         /* got the turn before it was processed, and keeps it */
    enum tokmap_status status;
    struct tokmap_error error;
};

struct worker {
    struct ordered_workers *workers;
    struct os_thread *thread;
    uint32_t number;
};

/* The members are in groups, each under the lock that guards it. */
struct ordered_workers {
    struct ordered_workers_options options;
    struct corpus *corpus;
    struct queued_item *items;
    uint32_t item_count;
    struct worker *threads;

    struct os_mutex *ordering;     /* guards all fields below */
    struct os_condition *changed;  /* signaled when an item becomes empty or is read, or the work has failed */
    struct os_condition *advanced; /* signaled when next_commit grows and the turn is free, when next_order grows, or
                                    * the work has failed */
    struct queued_item **empty;    /* a stack, since the item that was used last is still in the processor's caches */
    uint32_t empty_count;
    struct queued_item *reader; /* the item that is being filled: its worker alone uses the corpus. NULL: none reads */
    bool ahead;                 /* it is worth to read before others wait: the last batch was decompressed */
    bool ended;                 /* no input is left */
    struct queued_item **read;  /* items that are filled and not taken, at ticket modulo item_count */
    uint64_t next_read;         /* the ticket that is read next, */
    uint64_t next_taken;        /* and the one that is taken next */
    struct queued_item **ready; /* processed items, at ticket modulo item_count */
    uint64_t next_commit;       /* the ticket that is committed next */
    uint64_t next_order;        /* the ticket that ordered_workers_wait_order() lets pass next */
    bool turn_held;             /* a worker has the turn: only it may commit */
    bool stopped;               /* the work has failed; may be read atomically without the lock */
    enum tokmap_status status;
    struct tokmap_error error;
    uint64_t
        lines_before; /* of options.corpus.range, once lines_counted is set; only the worker with the turn uses them */
    bool lines_counted;
    uint64_t left_out; /* files and records, in committed batches; only the worker that has the turn uses it */
};

/* "0.1" becomes 100000 of SKIP_LIMIT_SHARES. */
static bool share_parse(const char *text, size_t bytes, uint64_t *share)
{
    const char *point = memchr(text, '.', bytes);
    const size_t whole_bytes = point ? (size_t)(point - text) : bytes, digits = point ? bytes - whole_bytes - 1 : 0;
    uint64_t whole, part = 0, unit = SKIP_LIMIT_SHARES / 100;
    if (!decimal_parse(text, whole_bytes, &whole) || whole > 100 || digits > 6 || (point && !digits))
        return false;
    if (digits && !decimal_parse(point + 1, digits, &part))
        return false;
    *share = whole * unit;
    for (size_t i = 0; i < digits; i++)
        unit /= 10;
    *share += part * unit;
    return *share <= SKIP_LIMIT_SHARES;
}

bool skip_limit_parse(const char *text, struct skip_limit *limit)
{
    const size_t bytes = strlen(text);
    struct skip_limit read = {.given = true, .text = text};
    read.is_share = bytes && text[bytes - 1] == '%';
    if (read.is_share ? !share_parse(text, bytes - 1, &read.most) : !decimal_parse(text, bytes, &read.most))
        return false;
    *limit = read;
    return true;
}

bool skip_limit_passed(const struct skip_limit *limit, uint64_t left_out, uint64_t kept, bool at_end)
{
    if (!limit->given)
        return false;
    if (!limit->is_share)
        return left_out > limit->most;
    const unsigned __int128 all = (unsigned __int128)left_out + kept;
    if (!at_end && all < SKIP_LIMIT_EARLY)
        return false;
    return (unsigned __int128)left_out * SKIP_LIMIT_SHARES > all * limit->most * (at_end ? 1 : 2);
}

/* ---- items and turns ---- */

static bool is_stopped(const struct ordered_workers *workers)
{
    return __atomic_load_n(&workers->stopped, __ATOMIC_ACQUIRE);
}

/* Ends the work with an error. The caller holds `ordering`. */
static void work_stop(struct ordered_workers *workers, enum tokmap_status status, const struct tokmap_error *error)
{
    if (workers->stopped)
        return;
    workers->status = status;
    workers->error = *error;
    __atomic_store_n(&workers->stopped, true, __ATOMIC_RELEASE);
    os_condition_broadcast(workers->changed);
    os_condition_broadcast(workers->advanced);
}

/* Waits until it is the item's turn. Returns false if the work has failed. */
static bool turn_wait(struct ordered_workers *workers, struct queued_item *item)
{
    os_mutex_lock(workers->ordering);
    while (!item->has_turn && !workers->stopped) {
        item->has_turn = workers->next_commit == item->ticket && !workers->turn_held;
        workers->turn_held |= item->has_turn;
        if (!item->has_turn)
            os_condition_wait(workers->advanced, workers->ordering);
    }
    const bool has_turn = item->has_turn && !workers->stopped;
    os_mutex_unlock(workers->ordering);
    return has_turn;
}

bool ordered_workers_wait_turn(struct ordered_workers *workers, struct work_item *item)
{
    assert(item->index < workers->item_count && item == &workers->items[item->index].base);
    return turn_wait(workers, &workers->items[item->index]);
}

bool ordered_workers_wait_order(struct ordered_workers *workers, const struct work_item *item)
{
    assert(item->index < workers->item_count && item == &workers->items[item->index].base);
    const uint64_t ticket = workers->items[item->index].ticket;
    os_mutex_lock(workers->ordering);
    while (workers->next_order != ticket && !workers->stopped)
        os_condition_wait(workers->advanced, workers->ordering);
    const bool passes = !workers->stopped;
    os_mutex_unlock(workers->ordering);
    return passes;
}

void ordered_workers_pass(struct ordered_workers *workers)
{
    os_mutex_lock(workers->ordering);
    workers->next_order++;
    os_condition_broadcast(workers->advanced);
    os_mutex_unlock(workers->ordering);
}

/* Fails if too much was left out. kept: the documents that precede the last item that was left out. */
static enum tokmap_status skip_limit_check(const struct ordered_workers *workers, uint64_t kept, bool at_end,
                                           struct tokmap_error *error)
{
    const struct skip_limit *limit = &workers->options.skip_limit;
    if (!skip_limit_passed(limit, workers->left_out, kept, at_end))
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                     "files and records left out: %" PRIu64 ", documents kept: %" PRIu64
                     "; this is more than --max-skipped %s allows; correct the inputs, or raise the limit",
                     workers->left_out, kept, limit->text);
}

/* Returns the number of documents of the batch that end before its issue, from document `from` on, where the count for
 * the issue before ended. */
static uint64_t documents_before(const struct corpus_batch *batch, const struct corpus_issue *issue, uint64_t *from,
                                 uint64_t count)
{
    for (; *from < batch->document_count; ++*from) {
        const struct corpus_document *document = &batch->documents[*from];
        const bool same_part = document->part == issue->part && issue->record != UINT64_MAX;
        if (document->part > issue->part || (document->part == issue->part && !same_part) ||
            (same_part && document->record >= issue->record))
            break;
        count += !document->unfinished;
    }
    return count;
}

/* Counts the lines before a range. A range of a file numbers its lines from its own beginning. Messages have the
 * numbers of the file, so the first one about a record counts the lines before the range, which are
 * workers->lines_before after that. */
static enum tokmap_status lines_count(struct ordered_workers *workers, const char *path, struct tokmap_error *error)
{
    const struct ordered_workers_options *options = &workers->options;
    if (!options->corpus.range.begin || workers->lines_counted)
        return TOKMAP_OK;
    const enum tokmap_status status = corpus_range_lines(path, options->corpus.range.begin, options->stop,
                                                         options->user, &workers->lines_before, error);
    workers->lines_counted = !status;
    return status;
}

/* Gives an issue the numbers of its file. */
static enum tokmap_status issue_place(struct ordered_workers *workers, struct corpus_issue *issue,
                                      struct tokmap_error *error)
{
    if (!issue->line || issue->record == UINT64_MAX || !workers->options.corpus.range.begin)
        return TOKMAP_OK;
    const enum tokmap_status status = lines_count(workers, issue->path, error);
    if (status)
        return status;
    issue->line += workers->lines_before;
    issue->record += workers->lines_before;
    return TOKMAP_OK;
}

/* Gives an error of an item the number of its line in the file, or none if the lines before it cannot be counted. */
static void error_place(struct ordered_workers *workers, struct queued_item *item)
{
    struct tokmap_error unused;
    if (!item->error.line || !item->base.batch.part_count || !workers->options.corpus.range.begin)
        return;
    if (lines_count(workers, item->base.batch.parts[0].path, &unused))
        item->error.line = 0;
    else
        item->error.line += (uint32_t)workers->lines_before;
}

/* Adds the batch to the accounts and reports its issues. Returns the status of the first issue that ends the work. */
static enum tokmap_status batch_account(struct ordered_workers *workers, const struct corpus_batch *batch,
                                        struct tokmap_error *error)
{
    const struct ordered_workers_options *options = &workers->options;
    uint64_t kept = options->counts->documents, from = 0;
    corpus_counts_add(options->counts, &batch->counts);
    for (uint64_t i = 0; i < batch->issue_count; i++) {
        const struct corpus_issue *issue = &batch->issues[i];
        struct corpus_issue placed = *issue;
        struct tokmap_error why;
        enum tokmap_status status = issue_place(workers, &placed, error);
        if (status)
            return status;
        status = corpus_issue_to_error(&placed, &options->corpus, &why);
        const bool skip_encoding =
            issue->kind == CORPUS_ISSUE_ENCODING && options->corpus.invalid == CORPUS_INVALID_SKIP;
        if (issue->fatal || !(options->corpus.skip || skip_encoding || issue->asked)) {
            *error = why;
            return status;
        }
        if (options->skipped)
            options->skipped(options->user, &placed, &why);
        if (issue->asked)
            continue;
        workers->left_out++;
        kept = documents_before(batch, issue, &from, kept);
        const enum tokmap_status passed = skip_limit_check(workers, kept, false, error);
        if (passed)
            return passed;
    }
    if (options->progress)
        options->progress(options->user, batch->progress);
    return TOKMAP_OK;
}

/* Commits one item. The caller has the turn, so that no lock is needed. */
static enum tokmap_status item_commit(struct ordered_workers *workers, struct queued_item *item)
{
    const struct ordered_workers_options *options = &workers->options;
    if (item->status)
        error_place(workers, item);
    if (!item->status && options->commit)
        item->status = options->commit(options->self, &item->base, &item->error);
    if (!item->status)
        item->status = batch_account(workers, &item->base.batch, &item->error);
    if (!item->status && options->committed)
        item->status = options->committed(options->self, &item->base, &item->error);
    /* Large memory is freed before the turn passes to an item that may need as much. */
    corpus_batch_trim(&item->base.batch);
    return item->status;
}

/* Ends an item, which has been processed or has failed. Commits all items whose turn it is now. */
static void item_processed(struct ordered_workers *workers, struct queued_item *item)
{
    os_mutex_lock(workers->ordering);
    assert(item->ticket >= workers->next_commit && item->ticket - workers->next_commit < workers->item_count);
    assert(!workers->ready[item->ticket % workers->item_count]);
    workers->ready[item->ticket % workers->item_count] = item;
    const bool own = item->has_turn || (!workers->turn_held && workers->next_commit == item->ticket);
    workers->turn_held |= own;
    while (own && !workers->stopped) {
        struct queued_item **next = &workers->ready[workers->next_commit % workers->item_count];
        struct queued_item *next_item = *next;
        if (!next_item)
            break;
        *next = NULL;
        os_mutex_unlock(workers->ordering);
        const enum tokmap_status status = item_commit(workers, next_item);
        os_mutex_lock(workers->ordering);
        if (status) {
            work_stop(workers, status, &next_item->error);
            break;
        }
        workers->next_commit++;
        workers->empty[workers->empty_count++] = next_item;
        os_condition_signal(workers->changed);
    }
    if (own) {
        workers->turn_held = false;
        os_condition_broadcast(workers->advanced);
    }
    os_mutex_unlock(workers->ordering);
}

/* ---- callbacks of the corpus ---- */

/* Called by the worker of workers->reader. It cannot deadlock: other workers take and commit the earlier tickets, for
 * which they need neither the corpus nor another item. Before ordered_workers_run(), the corpus goes to where a killed
 * process was (corpus_range.h): there is no reader then, and no other batch either. */
static void before_large(void *user)
{
    struct ordered_workers *workers = user;
    if (workers->reader)
        (void)turn_wait(workers, workers->reader);
}

static bool stop_requested(void *user)
{
    const struct ordered_workers *workers = user;
    return is_stopped(workers) || (workers->options.stop && workers->options.stop(workers->options.user));
}

/* ---- workers ---- */

/* Fills an empty item. The caller holds `ordering`, which is free meanwhile. */
static void batch_read(struct ordered_workers *workers)
{
    struct queued_item *item = workers->reader = workers->empty[--workers->empty_count];
    os_mutex_unlock(workers->ordering);
    item->ticket = workers->next_read;
    item->has_turn = false;
    item->status = corpus_next(workers->corpus, &item->base.batch, &item->error);
    if (!item->status && workers->options.stop && workers->options.stop(workers->options.user))
        item->status = error_set(&item->error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    os_mutex_lock(workers->ordering);
    workers->reader = NULL;
    workers->ahead = corpus_is_compressed(workers->corpus);
    workers->ended = item->status != TOKMAP_OK;
    if (item->status != TOKMAP_END)
        workers->read[workers->next_read++ % workers->item_count] = item;
    if (workers->ended)
        os_condition_broadcast(workers->changed);
    else
        os_condition_signal(workers->changed);
}

/* Takes the next item to process, and reads ahead if no other worker does. Returns NULL if no input is left, or the
 * work has failed. */
static struct queued_item *item_take(struct ordered_workers *workers)
{
    struct queued_item *item = NULL;
    os_mutex_lock(workers->ordering);
    while (!item && !workers->stopped) {
        const bool waits = workers->next_taken < workers->next_read;
        if (!workers->reader && !workers->ended && workers->empty_count && (workers->ahead || !waits))
            batch_read(workers);
        else if (waits)
            item = workers->read[workers->next_taken++ % workers->item_count];
        else if (workers->ended)
            break;
        else
            os_condition_wait(workers->changed, workers->ordering);
    }
    os_mutex_unlock(workers->ordering);
    return item;
}

static void worker_run(void *user)
{
    const struct worker *worker = user;
    struct ordered_workers *workers = worker->workers;
    const struct ordered_workers_options *options = &workers->options;
    struct tokmap_error error;
    for (struct queued_item *item; (item = item_take(workers)) != NULL;) {
        item->base.worker = worker->number;
        if (!item->status)
            item->status = records_to_documents(&options->corpus, &item->base.batch, &item->error);
        if (!item->status)
            item->status = options->process(options->self, &item->base, &item->error);
        if (is_stopped(workers))
            return;
        item_processed(workers, item);
    }
    const enum tokmap_status status =
        options->finish && !is_stopped(workers) ? options->finish(options->self, worker->number, &error) : TOKMAP_OK;
    if (status) {
        os_mutex_lock(workers->ordering);
        work_stop(workers, status, &error);
        os_mutex_unlock(workers->ordering);
    }
}

enum tokmap_status ordered_workers_run(struct ordered_workers *workers, struct tokmap_error *error)
{
    int system = 0;
    assert(!workers->next_read && workers->corpus);
    for (uint32_t i = 1; i < workers->options.threads && !system; i++)
        system = os_thread_start(&workers->threads[i].thread, workers->options.name, worker_run, &workers->threads[i]);
    /* Fewer threads would do the same work, but slower than the caller expects: it is an error. */
    if (system) {
        struct tokmap_error why;
        os_mutex_lock(workers->ordering);
        const enum tokmap_status status = error_set_system(
            &why, system, NULL, TOKMAP_NO_OFFSET, "a thread cannot be started; use fewer threads with --threads");
        work_stop(workers, status, &why);
        os_mutex_unlock(workers->ordering);
    } else {
        worker_run(&workers->threads[0]);
    }
    for (uint32_t i = 1; i < workers->options.threads; i++)
        os_thread_join(workers->threads[i].thread);
    if (workers->stopped)
        *error = workers->error;
    else
        workers->status = skip_limit_check(workers, workers->options.counts->documents, true, error);
    return workers->status;
}

/* ---- open and close ---- */

enum tokmap_status ordered_workers_new(struct ordered_workers **workers, const struct ordered_workers_options *options,
                                       const char *const *operands, size_t count, struct tokmap_error *error)
{
    assert(options->threads && options->process && options->counts);
    struct ordered_workers *made = *workers = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the threads", sizeof *made);
    made->options = *options;
    made->options.corpus.before_large = before_large;
    made->options.corpus.stop = stop_requested;
    made->options.corpus.user = made;
    const uint32_t threads = options->threads;
    made->item_count = threads == 1 ? 1 : threads + (uint32_t)min64(threads, SPARE_MOST);
    made->items = calloc(made->item_count, sizeof *made->items);
    made->empty = calloc(made->item_count, sizeof(struct queued_item *));
    made->read = calloc(made->item_count, sizeof(struct queued_item *));
    made->ready = calloc(made->item_count, sizeof(struct queued_item *));
    made->threads = calloc(threads, sizeof *made->threads);
    if (!made->items || !made->empty || !made->read || !made->ready || !made->threads ||
        os_mutex_new(&made->ordering) || os_condition_new(&made->changed) || os_condition_new(&made->advanced))
        return error_set_memory(error, "the threads", made->item_count * sizeof *made->items);
    for (uint32_t i = 0; i < threads; i++)
        made->threads[i] = (struct worker){.workers = made, .number = i};
    for (uint32_t i = 0; i < made->item_count; i++) {
        made->items[i].base.index = i;
        made->empty[made->empty_count++] = &made->items[i];
    }
    const enum tokmap_status status = corpus_open(&made->corpus, operands, count, &made->options.corpus, error);
    return status || !options->other_output ? status : corpus_exclude(made->corpus, options->other_output, error);
}

void ordered_workers_free(struct ordered_workers *workers)
{
    if (!workers)
        return;
    for (uint32_t i = 0; workers->items && i < workers->item_count; i++)
        corpus_batch_free(&workers->items[i].base.batch);
    corpus_close(workers->corpus);
    os_condition_free(workers->advanced);
    os_condition_free(workers->changed);
    os_mutex_free(workers->ordering);
    free(workers->threads);
    free(workers->ready);
    free(workers->read);
    free(workers->empty);
    free(workers->items);
    free(workers);
}

struct corpus *ordered_workers_corpus(struct ordered_workers *workers)
{
    return workers->corpus;
}

uint32_t ordered_workers_item_count(const struct ordered_workers *workers)
{
    return workers->item_count;
}

uint64_t ordered_workers_left_out(const struct ordered_workers *workers)
{
    return workers->left_out;
}

void ordered_workers_continue(struct ordered_workers *workers, uint64_t left_out)
{
    workers->left_out = left_out;
}
