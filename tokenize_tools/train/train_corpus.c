/* SPDX-License-Identifier: MIT */
/*
 * train_corpus.c - see train_corpus.h. Workers count the pieces of batches in any order, because sums do not depend on
 * it. Only issues and errors are reported in the order of the input (encode/ordered_workers.h).
 */
#include "train_corpus.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "encode/ordered_workers.h"
#include "engine/growing.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/path.h"

#define BATCH_BYTES ((uint64_t)256 << 10)

struct training {
    const struct train_corpus_options *options;
    struct ordered_workers *workers;
    struct train_budget budget;
    struct train_pieces *pieces;
    struct train_corpus_result *result;
    struct train_counter **counters; /* one per worker */
    uint32_t counter_count;
};

/*
 * ---- the files of a trained vocabulary ----
 *
 * While a file is being written, its name ends in .partial; PREFIX.partial is the writer's lock. All files get their
 * names as a group (name_files.h), which PREFIX.naming records, in the order in which they are listed: what has their
 * names is removed before, also an old file that the new group does not have. So never is a file of the old group
 * beside one of the new group. The next writer does what a killed one has left of that. If two processes write to the
 * same prefix, the second one fails with ERROR_BUSY.
 */

#define TRAIN_FILES_MOST 4

/* What follows the prefix in the names of a group. The first is only in one of has_config(), and the second is only
 * made if there are special tokens. */
static const char *const endings[TRAIN_FILES_MOST] = {"_config.json", ".specials.json", ".tiktoken", ".json"};

struct train_files {
    char *lock; /* PREFIX.partial */
    int lock_fd;
    char *paths[TRAIN_FILES_MOST], *partials[TRAIN_FILES_MOST];
    int fds[TRAIN_FILES_MOST]; /* -1: not open */
    uint32_t count;
    bool replace, made[TRAIN_FILES_MOST];
    struct name_files group;
};

/* Refuses to replace a group, unless a killed writer has left it without its last file. */
static enum tokmap_status exists_check(const struct train_files *files, struct tokmap_error *error)
{
    struct os_stat stat;
    const uint32_t first = name_files_pending(&files->group) ? files->count - 1 : 0;
    for (uint32_t i = first; i < files->count; i++)
        if (!files->replace && !os_lstat(files->paths[i], &stat))
            return error_set(error, TOKMAP_ERROR_EXISTS, files->paths[i], TOKMAP_NO_OFFSET,
                             "the output already exists; choose another name, or use --force");
    return TOKMAP_OK;
}

/* Creates a file and locks it. */
static enum tokmap_status partial_open(const char *path, int *fd, struct tokmap_error *error)
{
    const int system = partial_file_open(path, NULL, NULL, fd);
    return system ? partial_file_failed(system, path, error) : TOKMAP_OK;
}

/* Takes the lock, gives the files of a killed writer their names, and creates the partial files. One that it has left,
 * and that is not made now, is removed. */
static enum tokmap_status partials_open(struct train_files *files, struct tokmap_error *error)
{
    bool found = false;
    enum tokmap_status status = partial_open(files->lock, &files->lock_fd, error);
    if (!status)
        status = exists_check(files, error);
    if (!status)
        status = name_files_complete(&files->group, true, false, &found, error);
    files->replace = files->replace || found; /* whoever asked for no replacement has not seen them complete */
    for (uint32_t i = 0; i < files->count && !status; i++) {
        if (files->made[i])
            status = partial_open(files->partials[i], &files->fds[i], error);
        else
            (void)os_unlink(files->partials[i]);
    }
    return status;
}

/* Removes the partial files and frees *files; accepts NULL. */
static void train_files_abort(struct train_files *files)
{
    if (!files)
        return;
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->fds[i] >= 0)
            (void)os_unlink(files->partials[i]);
        os_close(files->fds[i]);
        free(files->paths[i]);
        free(files->partials[i]);
    }
    if (files->lock_fd >= 0)
        (void)os_unlink(files->lock);
    os_close(files->lock_fd); /* last, as no other writer may use these names before */
    free(files->lock);
    name_files_free(&files->group);
    free(files);
}

/* Returns whether the vocabulary is PREFIX/tokenizer.json, which transformers opens with the file beside it. */
static bool has_config(const struct train_corpus_options *options)
{
    return !strcmp(path_name(options->prefix), "tokenizer");
}

/* Creates the partial files and locks them. Statuses: OK, ERROR_ARGUMENT (the prefix has no name), ERROR_EXISTS,
 * ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY. */
static enum tokmap_status train_files_open(struct train_files **files, const struct train_corpus_options *options,
                                           struct tokmap_error *error)
{
    const char *prefix = options->prefix;
    const uint32_t first = !has_config(options);
    *files = NULL;
    if (!*path_name(prefix) || strchr(path_name(prefix), '\n'))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, prefix, TOKMAP_NO_OFFSET,
                         "the name of the output is empty, names a folder, or has a line end; give a prefix, for "
                         "example data/web");
    struct train_files *made = calloc(1, sizeof *made);
    enum tokmap_status status = made ? TOKMAP_OK : error_set_memory(error, "the output's names", sizeof *made);
    if (status)
        return status;
    made->replace = options->replace;
    made->count = TRAIN_FILES_MOST - first;
    made->lock = path_ended(prefix, ".partial");
    made->lock_fd = -1;
    made->group = (struct name_files){.name = prefix, .beside = true};
    bool complete = made->lock != NULL;
    for (uint32_t i = 0; i < made->count; i++) {
        const char *ending = endings[first + i];
        made->fds[i] = -1;
        made->made[i] = options->settings.special_count || strcmp(ending, ".specials.json") != 0;
        made->paths[i] = path_ended(prefix, ending);
        made->partials[i] = made->paths[i] ? path_ended(made->paths[i], ".partial") : NULL;
        complete = complete && made->partials[i];
    }
    if (!complete)
        status = error_set_memory(error, "the output's names", strlen(prefix));
    if (!status)
        status = exists_check(made, error);
    if (!status)
        status = partials_open(made, error);
    if (status)
        train_files_abort(made);
    else
        *files = made;
    return status;
}

static enum tokmap_status file_write(struct train_files *files, uint32_t i, const struct growing *g,
                                     struct tokmap_error *error)
{
    if (g->failed)
        return error_set_memory(error, "the vocabulary's files", g->count);
    int system = os_write(files->fds[i], g->bytes, g->count);
    if (!system)
        system = os_sync(files->fds[i]);
    if (system)
        return error_set_system(error, system, files->partials[i], TOKMAP_NO_OFFSET, "the output cannot be written");
    return TOKMAP_OK;
}

/* Writes the files that are made, synchronizes them with the disk, and renames them. *files is freed in any case. If
 * writing fails, the partial files are removed. contents: one for each name. Statuses: OK, ERROR_EXISTS, ERROR_IO,
 * ERROR_MEMORY. */
static enum tokmap_status train_files_commit(struct train_files *files, const struct growing *contents,
                                             struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < files->count && !status; i++)
        if (files->made[i])
            status = file_write(files, i, &contents[i], error);
    if (!status)
        status = exists_check(files, error);
    /* All are of one level, so that what has their names is removed before the first of them gets its own. */
    for (uint32_t i = 0; i < files->count && !status; i++) {
        if (files->made[i])
            name_files_add(&files->group, 1, strdup(files->partials[i]), strdup(files->paths[i]));
        else
            name_files_remove(&files->group, 1, strdup(files->paths[i]));
    }
    if (!status)
        status = name_files_write(&files->group, true, NULL, NULL, error);
    if (!status) {
        for (uint32_t i = 0; i < files->count; i++) { /* they are the next writer's, if this one fails */
            os_close(files->fds[i]);
            files->fds[i] = -1;
        }
        bool found;
        status = name_files_complete(&files->group, true, false, &found, error);
    }
    train_files_abort(files);
    return status;
}

/* Returns the path of output number i, from 0, including the partial files; NULL if there are no more. Valid as long as
 * `files`. */
static const char *train_files_name(const struct train_files *files, uint32_t i)
{
    return i < files->count        ? files->paths[i]
           : i < 2 * files->count  ? files->partials[i - files->count]
           : i == 2 * files->count ? files->lock
                                   : NULL;
}

/* ---- counting ---- */

static enum tokmap_status batch_count(void *self, struct work_item *item, struct tokmap_error *error)
{
    const struct training *t = self;
    const struct corpus_batch *batch = &item->batch;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        const struct corpus_document *document = &batch->documents[i];
        status = train_counter_text(t->counters[item->worker], (const uint8_t *)document->text, document->bytes, error);
    }
    return status;
}

/* Called once per worker when no input is left. */
static enum tokmap_status counter_finish(void *self, uint32_t worker, struct tokmap_error *error)
{
    const struct training *t = self;
    return train_counter_finish(t->counters[worker], error);
}

static void reading_skipped(void *user, const struct corpus_issue *issue, const struct tokmap_error *why)
{
    const struct train_corpus_options *options = user;
    if (options->skipped)
        options->skipped(options->user, issue, why);
}

static void reading_progress(void *user, uint64_t stored_bytes)
{
    const struct train_corpus_options *options = user;
    if (options->progress)
        options->progress(options->user, TRAIN_READING, stored_bytes);
}

static enum tokmap_status counters_make(struct training *t, struct tokmap_error *error)
{
    const struct train_corpus_options *options = t->options;
    const struct split_rules *rules = split_rules_named(options->settings.pattern);
    enum tokmap_status status = train_pieces_new(&t->pieces, &t->budget, error);
    t->counters = calloc(options->threads, sizeof(struct train_counter *));
    if (!status && !t->counters)
        status = error_set_memory(error, "the threads", options->threads * sizeof(struct train_counter *));
    for (; t->counter_count < options->threads && !status; t->counter_count++)
        status = train_counter_new(&t->counters[t->counter_count], t->pieces, rules, error);
    return status;
}

/* ---- learning ---- */

static enum tokmap_status accounts_check(const struct training *t, struct tokmap_error *error)
{
    const struct corpus_counts *counts = &t->result->counts;
    const uint64_t accounted = counts->document_bytes + counts->structure_bytes + counts->skipped_bytes;
    if (accounted != counts->stream_bytes || counts->text_bytes != t->result->totals.text)
        return error_set(error, TOKMAP_ERROR_INTERNAL, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " bytes were read and %" PRIu64 " are accounted for; %" PRIu64
                         " bytes are text and %" PRIu64 " were counted; this is a bug in tokmap, please report it",
                         counts->stream_bytes, accounted, counts->text_bytes, t->result->totals.text);
    if (!counts->text_bytes)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs contain no text; name inputs that contain text");
    return TOKMAP_OK;
}

static void learning_progress(void *user, uint64_t tokens)
{
    const struct train_corpus_options *options = user;
    if (options->progress)
        options->progress(options->user, TRAIN_LEARNING, tokens);
}

static bool asked_to_stop(void *user)
{
    const struct train_corpus_options *options = user;
    return options->stop && options->stop(options->user);
}

/* Lists the tokens that must not be learned: in tokenizer.json they would have the same spelling as a special token,
 * and a reader would take one for the other. */
static enum tokmap_status forbidden_make(const struct train_settings *settings, struct train_options *options,
                                         struct tokmap_error *error)
{
    struct train_text *forbidden = calloc((size_t)settings->special_count + 1, sizeof *forbidden);
    options->forbidden = forbidden;
    if (!forbidden)
        return error_set_memory(error, "the special tokens", settings->special_count * sizeof *forbidden);
    for (uint32_t i = 0; i < settings->special_count; i++) {
        uint64_t count;
        uint8_t *bytes = malloc((size_t)settings->specials[i].count);
        if (!bytes)
            return error_set_memory(error, "the special tokens", settings->specials[i].count);
        if (train_decode_spelling(&settings->specials[i], bytes, &count))
            forbidden[options->forbidden_count++] = (struct train_text){bytes, count};
        else
            free(bytes);
    }
    return TOKMAP_OK;
}

static void forbidden_free(struct train_options *options)
{
    for (uint32_t i = 0; i < options->forbidden_count; i++)
        free((void *)(uintptr_t)options->forbidden[i].bytes);
    free((void *)(uintptr_t)options->forbidden);
}

/* Learns the vocabulary, and makes the contents of its files. */
static enum tokmap_status merges_learn(struct training *t, struct growing *contents, struct tokmap_error *error)
{
    const struct train_corpus_options *options = t->options;
    struct train_vocabulary vocabulary = {0};
    struct train_options merging = {.tokens = options->vocabulary - options->settings.special_count,
                                    .min_frequency = options->min_frequency,
                                    .progress = learning_progress,
                                    .stop = asked_to_stop,
                                    .user = (void *)(uintptr_t)options};
    enum tokmap_status status = forbidden_make(&options->settings, &merging, error);
    if (!status)
        status = train_merges(&vocabulary, t->pieces, &t->budget, &merging, error);
    forbidden_free(&merging);
    if (status)
        return status;
    t->result->tokens = vocabulary.count;
    t->result->trained_tokens = vocabulary.trained_tokens;
    train_write(contents, &vocabulary, &options->settings);
    train_vocabulary_free(&vocabulary);
    return TOKMAP_OK;
}

static enum tokmap_status count_all(struct training *t, const struct train_files *files, const char *const *operands,
                                    size_t count, struct tokmap_error *error)
{
    const struct train_corpus_options *options = t->options;
    struct ordered_workers_options workers = {.name = "tokmap-train",
                                              .threads = options->threads,
                                              .corpus = options->corpus,
                                              .counts = &t->result->counts,
                                              .skip_limit = options->skip_limit,
                                              .other_output = options->other_output,
                                              .process = batch_count,
                                              .finish = counter_finish,
                                              .self = t,
                                              .skipped = reading_skipped,
                                              .progress = reading_progress,
                                              .stop = asked_to_stop,
                                              .user = (void *)(uintptr_t)options};
    workers.corpus.cut_anywhere = false;
    workers.corpus.batch_bytes = BATCH_BYTES;
    t->budget.limit = options->memory;
    enum tokmap_status status = ordered_workers_new(&t->workers, &workers, operands, count, error);
    /* Excludes the outputs: an output must not be read as an input, which would happen if it is in a folder that is an
     * input. */
    for (uint32_t i = 0; !status && train_files_name(files, i); i++)
        status = corpus_exclude(ordered_workers_corpus(t->workers), train_files_name(files, i), error);
    if (!status)
        status = counters_make(t, error);
    if (!status)
        status = ordered_workers_run(t->workers, error);
    for (uint32_t i = 0; i < t->counter_count; i++)
        train_counter_free(t->counters[i]);
    free(t->counters);
    ordered_workers_free(t->workers);
    return status;
}

enum tokmap_status train_corpus(const struct train_corpus_options *options, const char *const *operands, size_t count,
                                struct train_corpus_result *result, struct tokmap_error *error)
{
    struct tokmap_error unused;
    struct training t = {.options = options, .result = result};
    struct growing contents[TRAIN_FILES_MOST] = {{NULL, 0, 0, false}};
    struct train_files *files = NULL;
    error = error ? error : &unused;
    assert(options->threads && options->threads <= TRAIN_THREADS_MOST);
    assert(options->vocabulary >= 256 + options->settings.special_count);
    memset(result, 0, sizeof *result);
    const uint64_t began = os_clock_ns();
    enum tokmap_status status = train_files_open(&files, options, error);
    if (!status)
        status = count_all(&t, files, operands, count, error);
    if (!status) {
        train_pieces_totals(t.pieces, &result->totals);
        status = accounts_check(&t, error);
    }
    const uint64_t counted = os_clock_ns();
    if (!status)
        status = merges_learn(&t, contents + has_config(options), error);
    if (!status && has_config(options))
        train_write_config(contents, &options->settings);
    result->counting_seconds = (double)(counted - began) * 1e-9;
    result->learning_seconds = (double)(os_clock_ns() - counted) * 1e-9;
    if (!status)
        status = train_files_commit(files, contents, error);
    else
        train_files_abort(files);
    for (uint32_t i = 0; i < TRAIN_FILES_MOST; i++)
        free(contents[i].bytes);
    train_pieces_free(t.pieces);
    return status;
}
