/* SPDX-License-Identifier: MIT */
/*
 * train_corpus.c - see train_corpus.h. Workers count the pieces of batches in any order, because sums do not depend on
 * it. Only issues and errors are reported in the order of the input (encode/ordered_workers.h).
 */
#include "train_corpus.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "encode/ordered_workers.h"
#include "platform/os.h"
#include "text/path.h"

#define BATCH_BYTES ((uint64_t)256 << 10)

struct training {
    const struct train_corpus_options *options;
    struct ordered_workers *workers;
    struct train_budget budget;
    struct train_pieces *pieces;
    struct train_corpus_result *result;
    struct train_cutter *cutter;     /* TRAIN_UNIGRAM */
    struct wp_characters *folded;    /* TRAIN_WORDPIECE */
    struct train_counter **counters; /* one per worker */
    uint32_t counter_count;
};

/* ---- counting ---- */

static enum tokmap_status batch_count(void *self, struct work_item *item, struct tokmap_error *error)
{
    const struct training *t = self;
    const struct corpus_batch *batch = &item->batch;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        const struct corpus_document *document = &batch->documents[i];
        struct train_counter *counter = t->counters[item->worker];
        const uint8_t *text = (const uint8_t *)document->text;
        status = t->cutter   ? train_words_count(t->cutter, counter, text, document->bytes, error)
                 : t->folded ? wordpiece_count(t->folded, counter, text, document->bytes, error)
                             : train_counter_text(counter, text, document->bytes, error);
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
    const struct split_rules *rules = options->model == TRAIN_BPE ? split_rules_named(options->settings.pattern) : NULL;
    enum tokmap_status status = train_pieces_new(&t->pieces, &t->budget, error);
    if (!status && options->model == TRAIN_UNIGRAM)
        status = train_cutter_new(&t->cutter, &options->unigram.rules, &t->budget, error);
    if (!status && options->model == TRAIN_WORDPIECE) {
        const bool lower = options->wordpiece.lower;
        status = wp_characters_new(&t->folded, (struct wp_rules){true, true, lower, lower}, error);
    }
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

uint32_t train_ids_least(const struct train_corpus_options *options)
{
    return options->model == TRAIN_BPE       ? 256 + options->settings.special_count
           : options->model == TRAIN_UNIGRAM ? unigram_write_others(&options->unigram, &options->settings)
                                             : 1 + options->settings.special_count;
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

/* Learns byte-level BPE, and makes the contents of its files. */
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

/* Chooses the characters. others: how many other ids there are at least. */
static enum tokmap_status characters_choose(struct training *t, struct train_characters *characters, uint32_t others,
                                            struct tokmap_error *error)
{
    const struct train_corpus_options *options = t->options;
    const enum tokmap_status status =
        train_characters_choose(characters, t->pieces, options->unigram.coverage, options->required,
                                options->required_count, &t->budget, error);
    const uint64_t least = (uint64_t)characters->count + others;
    if (status)
        return status;
    if (!characters->count)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs have no character that can be a piece; name inputs that contain text");
    if (least > options->vocabulary)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the vocabulary is too small for the %" PRIu32 " characters that are %.10g of the text; raise "
                         "--vocab-size to %" PRIu64 " or more, or lower --character-coverage",
                         characters->count, options->unigram.coverage, least);
    return TOKMAP_OK;
}

/* Learns a Unigram vocabulary, and makes the contents of its files. */
static enum tokmap_status unigram_learn(struct training *t, struct growing *contents, struct tokmap_error *error)
{
    const struct train_corpus_options *options = t->options;
    const uint32_t others = train_ids_least(options);
    struct unigram_vocabulary vocabulary = {0};
    struct train_characters characters = {0};
    struct unigram_words words = {0};
    struct unigram_options unigram = {.pieces = options->vocabulary - others,
                                      .longest = options->unigram.longest,
                                      .threads = options->threads,
                                      .progress = learning_progress,
                                      .stop = asked_to_stop,
                                      .user = (void *)(uintptr_t)options};
    struct train_text *forbidden = unigram_write_forbidden(&options->settings, &unigram.forbidden_count);
    unigram.forbidden = forbidden;
    enum tokmap_status status = forbidden
                                    ? characters_choose(t, &characters, others, error)
                                    : error_set_memory(error, "the special tokens", options->settings.special_count);
    if (!status)
        status = unigram_words_make(&words, t->pieces, &characters, &t->budget, error);
    if (!status)
        status = train_unigram(&vocabulary, &words, &t->budget, &unigram, error);
    if (!status) {
        t->result->tokens = vocabulary.count + others - options->settings.special_count;
        t->result->trained_tokens =
            vocabulary.tokens + (options->unigram.bytes ? characters.uncovered_bytes : characters.uncovered);
        t->result->characters = characters.count;
        t->result->uncovered = characters.uncovered;
        unigram_write(contents, &vocabulary, &options->unigram, &options->settings);
        unigram_vocabulary_free(&vocabulary);
    }
    free(forbidden);
    unigram_words_free(&words, &t->budget);
    train_characters_free(&characters, &t->budget);
    return status;
}

/* Learns a WordPiece vocabulary, and makes the contents of its files. */
static enum tokmap_status wordpiece_learn(struct training *t, struct growing *contents, struct tokmap_error *error)
{
    const struct train_corpus_options *options = t->options;
    struct wordpiece_vocabulary vocabulary = {0};
    struct train_characters characters = {0};
    struct train_options merging = {.tokens = options->vocabulary - options->settings.special_count,
                                    .min_frequency = options->min_frequency,
                                    .progress = learning_progress,
                                    .stop = asked_to_stop,
                                    .user = (void *)(uintptr_t)options};
    enum tokmap_status status = characters_choose(t, &characters, train_ids_least(options), error);
    if (!status)
        status = wordpiece_train(&vocabulary, t->pieces, &characters, &options->settings, &t->budget, &merging, error);
    if (!status) {
        t->result->tokens = vocabulary.merged.count + 1;
        t->result->trained_tokens = vocabulary.merged.trained_tokens;
        t->result->characters = characters.count;
        t->result->uncovered = characters.uncovered;
        wordpiece_write(contents, &vocabulary, &options->wordpiece, &options->settings);
    }
    wordpiece_vocabulary_free(&vocabulary);
    train_characters_free(&characters, &t->budget);
    return status;
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
    train_cutter_free(t->cutter, &t->budget);
    wp_characters_free(t->folded);
    ordered_workers_free(t->workers);
    return status;
}

/* Returns whether the vocabulary is PREFIX/tokenizer.json, which transformers opens with the file beside it. */
static bool has_config(const struct train_corpus_options *options)
{
    return !strcmp(path_name(options->prefix), "tokenizer");
}

static enum tokmap_status files_open(const struct train_corpus_options *options, struct train_files **files,
                                     struct tokmap_error *error)
{
    const struct train_file of[][TRAIN_WRITE_FILES] = {
        [TRAIN_BPE] = {{".specials.json", options->settings.special_count > 0}, {".tiktoken", true}, {".json", true}},
        [TRAIN_UNIGRAM] = {{".model", true}, {".json", true}},
        [TRAIN_WORDPIECE] = {{".vocab.txt", true}, {".json", true}}};
    struct train_file names[TRAIN_FILES_MOST] = {{"_config.json", true}};
    uint32_t count = has_config(options);
    for (uint32_t i = 0; i < TRAIN_WRITE_FILES && of[options->model][i].ending; i++)
        names[count++] = of[options->model][i];
    return train_files_open(files, options->prefix, names, count, options->replace, error);
}

static enum tokmap_status learn(struct training *t, struct growing *contents, struct tokmap_error *error)
{
    switch (t->options->model) {
    case TRAIN_UNIGRAM:
        return unigram_learn(t, contents, error);
    case TRAIN_WORDPIECE:
        return wordpiece_learn(t, contents, error);
    case TRAIN_BPE:
    default:
        return merges_learn(t, contents, error);
    }
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
    assert(options->vocabulary >= train_ids_least(options));
    memset(result, 0, sizeof *result);
    const uint64_t began = os_clock_ns();
    enum tokmap_status status = files_open(options, &files, error);
    if (!status)
        status = count_all(&t, files, operands, count, error);
    if (!status) {
        train_pieces_totals(t.pieces, &result->totals);
        status = accounts_check(&t, error);
    }
    const uint64_t counted = os_clock_ns();
    if (!status)
        status = learn(&t, contents + has_config(options), error);
    if (!status && has_config(options))
        train_write_config(contents,
                           options->model == TRAIN_UNIGRAM     ? "<unk>"
                           : options->model == TRAIN_WORDPIECE ? "[UNK]"
                                                               : NULL,
                           &options->settings);
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
