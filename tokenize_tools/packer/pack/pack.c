/* SPDX-License-Identifier: MIT */
/*
 * pack.c - see pack.h. It puts a unit of work together: the workers that encode batches (pack_batches.h), what leaves
 * documents out (drop_filter.h), the shuffle (shuffle.h), the shard sets (shard_set.h), and the journal
 * (pack_journal.h); and it ends them in the order in which nothing can be lost.
 */
#include "pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus/corpus_range.h"
#include "dedup/dedup_stages.h"
#include "encode/ordered_workers.h"
#include "encode/shard_set.h"
#include "format/shard_file.h"
#include "output_names.h"
#include "pack_also.h"
#include "pack_batches.h"
#include "pack_finish.h"
#include "pack_journal.h"
#include "pack_output.h"
#include "pack_stages.h"
#include "shard_about.h"
#include "shuffle/shuffle.h"
#include "text/path.h"
#include "unit_record.h"
#include "work/dropped_writer.h"
#include "work/work_folder.h"

/* Facts for the about sections of a set. */
struct set_of {
    struct pack *pack;
    uint32_t number;
};

/* The choice of documents that are left out. */
struct dropping {
    bool searches;              /* true if this process searches all inputs, and not tasks */
    struct scan_inputs inputs;  /* that the stages read */
    struct drop_options wanted; /* options of the stages */
    struct dedup_stages stages;
    struct drop_source source; /* their findings */
};

/* State of a unit of a shuffle, whose documents are sorted; shards are made later. */
struct sorting {
    bool wanted;
    struct shuffle_sorted sorted;
    bool is_recorded; /* true if the unit's file may have its name, even after an error */
};

struct pack {
    const struct pack_options *options;
    struct pack_result *result;
    bool writes;                  /* False for a dry run */
    bool names;                   /* true if the files get their names here: neither in a dry run nor of a unit */
    bool finished;                /* true if a killed process has done all */
    struct pack_journal *journal; /* NULL if the work is not saved */
    struct pack_parts parts;
    struct pack_batches batches;
    struct dropping drop;
    struct sorting sort;
    struct set_work *work; /* NULL for a single shard */
    struct shard_set *sets[SPLIT_SETS_MOST];
    struct set_of set_of[SPLIT_SETS_MOST];
};

static enum tokmap_status batch_encode(void *self, struct work_item *item, struct tokmap_error *error)
{
    return pack_batch_encode(&((struct pack *)self)->batches, item, error);
}

static enum tokmap_status batch_commit(void *self, struct work_item *item, struct tokmap_error *error)
{
    return pack_batch_commit(&((struct pack *)self)->batches, item, error);
}

/* Makes a checkpoint from time to time. */
static enum tokmap_status batch_committed(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct pack *pack = self;
    enum tokmap_status status =
        pack->parts.listed ? listed_search_committed(pack->parts.listed, item, error) : TOKMAP_OK;
    if (!status && pack->parts.drop)
        status = drop_filter_committed(pack->parts.drop, item, error);
    return !status && pack->journal ? pack_journal_save(pack->journal, &pack->parts, &item->batch.place, error)
                                    : status;
}

/* Makes the about section of a shard. A single shard has the totals of all inputs. */
static char *about_make(void *self, const struct shard_totals *shard, uint64_t *bytes)
{
    const struct set_of *set_of = self;
    const struct pack *pack = set_of->pack;
    return shard_about_text(pack->options, pack->result, set_of->number, pack->work ? shard : NULL, bytes);
}

/* Excludes the outputs: an output must not be read as an input, which would happen if it is in a folder that is an
 * input. */
static enum tokmap_status outputs_exclude(void *self, struct corpus *corpus, struct tokmap_error *error)
{
    const struct pack *pack = self;
    const char *prefix = pack->options->prefix;
    enum tokmap_status status = TOKMAP_OK;
    if (!prefix)
        return TOKMAP_OK;
    if (pack->work) {
        status = corpus_exclude(corpus, prefix, error);
        if (!status)
            status = corpus_exclude(corpus, set_work_lock(pack->work), error);
        if (!status)
            status = corpus_exclude(corpus, set_work_folder(pack->work), error);
    } else if (pack->journal && pack_journal_folder(pack->journal)) {
        status = corpus_exclude(corpus, pack_journal_folder(pack->journal), error);
    }
    for (int i = pack->work ? 2 * SHARD_DROPPED : 0; i < 2 * SHARD_FILE_KINDS && !status; i++) {
        char *path = shard_file_path(prefix, (enum shard_file)(i / 2), i % 2 ? SHARD_PARTIAL : SHARD_FINAL);
        status = path ? corpus_exclude(corpus, path, error) : error_set_memory(error, "a path", 0);
        free(path);
    }
    return status ? status : output_names_exclude(pack->options, corpus, error);
}

static bool resumes(const struct pack *pack)
{
    return pack->journal && pack_journal_found(pack->journal);
}

/* Takes the names of the output: of one shard set, or of one for each set of the split. */
static enum tokmap_status work_open(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    char endings[SPLIT_SETS_MOST][SPLIT_NAME_MOST + 2];
    const char *list[SPLIT_SETS_MOST];
    const uint32_t sets = pack_output_sets(options);
    for (uint32_t i = 0; i < sets; i++) {
        pack_set_ending(options, i, endings[i]);
        list[i] = endings[i];
    }
    pack->parts.set_count = pack->sort.wanted ? 0 : sets;
    const bool begun = pack->journal && pack_journal_folder(pack->journal);
    const struct set_work_options work = {.endings = list,
                                          .sets = sets,
                                          .sealed = options->seal != NULL,
                                          .replace = options->replace,
                                          .sync = options->sync,
                                          .keep = resumes(pack),
                                          .journaled = pack->journal != NULL,
                                          .continues = options->also != NULL,
                                          .last = options->before_commit,
                                          .last_user = options->user,
                                          .shared = begun && !resumes(pack)};
    if (!begun) /* a killed process, or a power cut, may have left files of stages and chunks, which are no shards */
        work_folder_sweep(options->prefix, pack->names ? pack_journal_owns : pack_journal_owns_unit);
    return options->shard_tokens || options->split ? set_work_open(&pack->work, options->prefix, &work, error)
                                                   : TOKMAP_OK;
}

/* Gives the shuffle a folder for files with names, if another process has begun the work or may continue it. */
static enum tokmap_status shuffle_place(void *owner, const char **folder, struct tokmap_error *error)
{
    const struct pack *pack = owner;
    const enum tokmap_status status = pack->journal ? pack_journal_begin(pack->journal, folder, error) : TOKMAP_OK;
    if (!status && !*folder && pack->sort.wanted)
        *folder = set_work_folder(pack->work);
    return status;
}

/* Makes a checkpoint from time to time, while documents are merged. */
static enum tokmap_status shuffle_checkpoint(void *owner, struct tokmap_error *error)
{
    struct pack *pack = owner;
    const struct corpus_place end = {.done = 1};
    return pack->journal ? pack_journal_save(pack->journal, &pack->parts, &end, error) : TOKMAP_OK;
}

static enum tokmap_status shuffle_make(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    char *folder = path_folder(options->prefix);
    const struct shuffle_options shuffle = {.seed = options->shuffle->seed,
                                            .width = pack->batches.tokenizer.width,
                                            .columns = (uint32_t)options->corpus.column_count,
                                            .sets = pack_output_sets(options),
                                            .mask = pack->result->has_mask,
                                            .own_thread = options->threads > 1,
                                            .keyed = pack->sort.wanted,
                                            .first_input = pack->sort.wanted ? options->unit->first_input : 0,
                                            .folder = folder,
                                            .chunk_bytes = round_down(options->shuffle->memory, 4096),
                                            .stop = options->stop,
                                            .progress = options->shuffled,
                                            .user = options->user,
                                            .place = shuffle_place,
                                            .save = shuffle_checkpoint,
                                            .owner = pack};
    const enum tokmap_status status =
        folder ? shuffle_open(&pack->parts.shuffle, &shuffle, error) : error_set_memory(error, "a path", 0);
    free(folder);
    return status;
}

static enum tokmap_status output_open(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    enum tokmap_status status = work_open(pack, error);
    const struct shard_set_options common = {.shard = pack_output_shard(options),
                                             .work = pack->work,
                                             .prefix = options->prefix,
                                             .shard_tokens = options->shard_tokens ? options->shard_tokens : UINT64_MAX,
                                             .about = about_make};
    for (uint32_t i = 0; i < pack->parts.set_count && !status; i++) {
        struct shard_set_options set = common;
        pack->set_of[i] = (struct set_of){pack, i};
        set.number = i;
        set.user = &pack->set_of[i];
        status = resumes(pack)
                     ? shard_set_reopen(&pack->sets[i], &set, &pack_journal_last(pack->journal)->sets[i], error)
                     : shard_set_open(&pack->sets[i], &set, error);
    }
    if (!status && options->shuffle)
        status = shuffle_make(pack, error);
    return status ? status : outputs_exclude(pack, ordered_workers_corpus(pack->parts.workers), error);
}

/* Finds the documents that are left out, in the folder of the journal, which `corpus` is not to read; NULL: it is being
 * read. What is found out about n-grams with --dedup exact, the packing finds out itself. */
static enum tokmap_status drop_search(struct pack *pack, struct corpus *corpus, struct tokmap_error *error)
{
    static const struct work_units all = {.count = 1};
    const struct pack_options *options = pack->options;
    struct dropping *drop = &pack->drop;
    struct dedup_stages *stages = &drop->stages;
    if (!dedup_can_repeat(drop->inputs.operands, drop->inputs.count, &options->corpus.select))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "--dedup minhash reads the inputs twice, and standard input, a pipe, or a list of paths from "
                         "one of them can be read only once; save it in a file first");
    *stages = (struct dedup_stages){
        .scanning = pack_scan_options(options), .units = &all, .whole = &drop->inputs, .share = {.tasks = 1}};
    drop->wanted = *options->drop;
    drop->wanted.ngrams = drop->wanted.minhash ? drop->wanted.ngrams : NULL;
    stages->scanning.stage.drop = &drop->wanted;
    enum tokmap_status status = pack_journal_stages(pack->journal, &stages->folder, error);
    if (!status && corpus)
        status = corpus_exclude(corpus, stages->folder, error);
    if (!status && !unit_record_key(options, &stages->key))
        status = error_set_memory(error, "the stages", 0);
    if (!status)
        status = dedup_stages_run(stages, error);
    pack_journal_staged(pack->journal);
    if (!status)
        drop->source = dedup_stages_source(stages, 0);
    return status;
}

/* Compares all documents, when the table of their keys is full. That may take long, so what is packed is saved. */
static enum tokmap_status documents_compare(void *self, const struct drop_source **found, struct tokmap_error *error)
{
    struct pack *pack = self;
    *found = &pack->drop.source;
    const enum tokmap_status status = pack_journal_save_now(pack->journal, &pack->parts, error);
    return status ? status : drop_search(pack, NULL, error);
}

/* Returns true if documents are compared in stages when the table of their keys is full; else it has no limit. */
static bool drop_may_compare(const struct pack *pack)
{
    return pack->drop.searches && pack->options->drop->duplicates &&
           dedup_can_repeat(pack->drop.inputs.operands, pack->drop.inputs.count, &pack->options->corpus.select);
}

/* Returns true if there may be stages, whose files need a journal. */
static bool drop_may_search(const struct pack *pack)
{
    return drop_may_compare(pack) || (pack->drop.searches && pack->options->drop->minhash);
}

/* Prepares for leaving documents out. Near-duplicates are found before the first document is packed. */
static enum tokmap_status drop_open(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    const bool first = pack->drop.searches && options->drop->minhash;
    const struct drop_filter_options drop = {.drop = options->drop,
                                             .name = pack->drop.searches ? options->prefix : NULL,
                                             .source = options->unit ? options->unit->drops
                                                       : first       ? &pack->drop.source
                                                                     : NULL,
                                             .compare =
                                                 drop_may_compare(pack) || resumes(pack) ? documents_compare : NULL,
                                             .self = pack,
                                             .sync = options->sync,
                                             .items = ordered_workers_item_count(pack->parts.workers),
                                             .resume = resumes(pack) ? &pack_journal_last(pack->journal)->drop : NULL};
    struct corpus *corpus = ordered_workers_corpus(pack->parts.workers);
    enum tokmap_status status = first ? drop_search(pack, corpus, error) : TOKMAP_OK;
    if (!status)
        status = drop_filter_new(&pack->parts.drop, &drop, error);
    return status ? status : outputs_exclude(pack, corpus, error); /* with the list of dropped documents now */
}

/* Opens the output. Nothing is continued if the files of a killed process have their names already, or are gone. */
static enum tokmap_status output_take(struct pack *pack, struct tokmap_error *error)
{
    enum tokmap_status status = output_open(pack, error);
    if (!resumes(pack) || (status != TOKMAP_ERROR_EXISTS && status != TOKMAP_ERROR_NOT_FOUND))
        return status;
    struct pack_result *last = calloc(1, sizeof *last);
    if (!last)
        return error_set_memory(error, "the report", sizeof *last);
    *last = pack_journal_last(pack->journal)->result;
    pack->finished = pack_journal_is_named(pack->journal, pack->parts.set_count, last);
    if (pack->finished) {
        pack_journal_last(pack->journal)->result = *last;
        pack_output_settle(pack->options);
    }
    free(last);
    if (pack->finished || status == TOKMAP_ERROR_EXISTS)
        return pack->finished ? TOKMAP_OK : status;
    for (uint32_t i = 0; i < pack->parts.set_count; i++) {
        shard_set_leave(pack->sets[i]);
        pack->sets[i] = NULL;
    }
    set_work_leave(pack->work);
    pack->work = NULL;
    pack_journal_drop(pack->journal);
    return output_open(pack, error);
}

static enum tokmap_status sets_commit(struct pack *pack, uint64_t *shards, struct tokmap_error *error)
{
    struct pack_result *result = pack->result;
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < pack->parts.set_count && !status; i++) {
        struct shard_set *set = pack->sets[i];
        pack->sets[i] = NULL;
        status = shard_set_commit(set, &result->sets[i], error);
        shards[i] = result->sets[i].shards;
        result->shards += shards[i];
        result->oversized += result->sets[i].oversized;
    }
    return status;
}

/* Ends a unit, whose shards get their names from pack_finish.c. */
static enum tokmap_status unit_commit(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_unit *unit = pack->options->unit;
    pack->sort.is_recorded = true;
    histogram_merge(unit->lengths, &pack->batches.lengths);
    const enum tokmap_status status =
        unit->committed(unit->user, pack->result, &pack->sort.sorted, pack->parts.listed, error);
    if (status)
        return status;
    set_work_tidy(pack->work);
    set_work_leave(pack->work);
    pack->work = NULL;
    return TOKMAP_OK;
}

/* Gives the files their names. The old output is not touched until only renames are left. */
static enum tokmap_status commit(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    struct pack_result *result = pack->result;
    uint64_t shards[SPLIT_SETS_MOST];
    struct dropped_writer *list = pack->parts.drop ? drop_filter_list(pack->parts.drop) : NULL;
    bool visible = false;
    enum tokmap_status status = pack->work ? sets_commit(pack, shards, error) : shard_set_finish(pack->sets[0], error);
    if (!status && !pack->names)
        return unit_commit(pack, error);
    if (!status && !pack->work && pack->journal)
        status = pack_journal_ready(pack->journal, error);
    if (!status)
        drop_names_add(pack->work ? set_work_group(pack->work) : NULL, options->prefix, list != NULL);
    if (!status && pack->work) {
        struct set_work *work = pack->work;
        pack->work = NULL;
        status = set_work_commit(work, shards, result->has_mask, &visible, error);
    } else if (!status) {
        status = sets_commit(pack, shards, error);
        visible = !status;
    }
    if (list && visible)
        dropped_writer_given(list);
    if (!options->split)
        memcpy(result->content, result->sets[0].content, sizeof result->content);
    return status;
}

/* Packs all inputs, or those that a killed process has not packed. */
static enum tokmap_status work_run(struct pack *pack, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (pack->finished) {
        const struct pack_parts report = {
            .lengths = &pack->batches.lengths, .result = pack->result, .open_tokens = &pack->batches.open_tokens};
        status = pack_journal_report(pack->journal, &report, error);
        pack_batches_end(&pack->batches);
        return status;
    }
    if (resumes(pack)) {
        status = pack_journal_restore(pack->journal, &pack->parts, error);
    } else if (pack->options->corpus.range.begin && !pack->options->corpus.range.groups) {
        uint64_t carried;
        status = corpus_range_begin(ordered_workers_corpus(pack->parts.workers), &carried, error);
        pack->result->counts.stream_bytes += carried;
        pack->result->counts.stored_bytes -= pack->options->corpus.range.begin; /* the end of the file counts all */
    }
    if (!status)
        status = ordered_workers_run(pack->parts.workers, error);
    if (!status)
        pack_batches_end(&pack->batches);
    return status;
}

/* Writes the shuffled or sorted documents, and makes the last checkpoint. */
static enum tokmap_status documents_finish(struct pack *pack, struct tokmap_error *error)
{
    enum tokmap_status status = pack->parts.drop ? drop_filter_check(pack->parts.drop, error) : TOKMAP_OK;
    if (!status && pack->parts.listed && !pack->finished && (pack->names || !pack->writes))
        status = listed_search_check(pack->parts.listed, pack->options->corpus.skip, error);
    if (status == TOKMAP_ERROR_MISMATCH && pack->journal) /* the findings are about other inputs */
        pack_journal_drop(pack->journal);
    if (!status && pack->sort.wanted)
        status = shuffle_sort(pack->parts.shuffle, pack->options->sync, &pack->sort.sorted, error);
    else if (!status && pack->parts.shuffle)
        status = shuffle_finish(pack->parts.shuffle, pack->sets, error);
    if (pack->sort.wanted) /* a checkpoint may have counted them */
        memset(pack->result->sets, 0, sizeof pack->result->sets);
    for (uint64_t i = 0; i < pack->sort.sorted.count; i++) {
        struct shard_set_result *set = &pack->result->sets[pack->sort.sorted.chunks[i].set];
        set->documents += pack->sort.sorted.chunks[i].keys;
        set->tokens += pack->sort.sorted.chunks[i].tokens;
    }
    if (!status && pack->journal && !pack->finished)
        status = pack_journal_finish(pack->journal, &pack->parts, error);
    if (!status && pack->parts.shuffle && !pack->sort.wanted)
        status = shuffle_end(pack->parts.shuffle, pack->journal ? pack_journal_folder(pack->journal) : NULL,
                             pack->options->sync, error);
    return status;
}

/* Completes all that gets names, and checks the sums. */
static enum tokmap_status work_finish(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    struct pack_result *result = pack->result;
    enum tokmap_status status = documents_finish(pack, error);
    if (!pack->batches.one_by_one) {
        result->eod_tokens = options->eod_id != TOKMAP_NO_ID ? result->counts.documents : 0;
        result->bos_tokens = options->bos_id != TOKMAP_NO_ID ? result->counts.documents : 0;
    }
    if (!status && pack->parts.drop)
        status = drop_filter_finish(pack->parts.drop, &result->dropped, error);
    if (!status && !pack->finished)
        status = pack_accounts_check(options, pack->sets, pack->parts.set_count, result, error);
    if (!status && pack->journal)
        pack_journal_settle(pack->journal);
    return status;
}

/* Gives the output its names, and writes the files of other projects beside it. */
static enum tokmap_status work_commit(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    const enum tokmap_status status = pack->finished ? TOKMAP_OK : commit(pack, error);
    return status || !options->also
               ? status
               : pack_also_write(options, pack_journal_kept_folder(pack->journal), pack->finished, pack->result, error);
}

/* Removes what is not committed, or leaves it for the next attempt. */
static void output_close(struct pack *pack, enum tokmap_status status)
{
    const struct pack_options *options = pack->options;
    const bool failed = status != TOKMAP_OK, complete = !failed || status == TOKMAP_ERROR_EXISTS;
    const bool keep = failed && pack->journal && pack_journal_kept(pack->journal);
    pack->result->kept = keep;
    for (uint32_t i = 0; i < pack->parts.set_count; i++)
        (keep ? shard_set_leave : shard_set_abandon)(pack->sets[i]);
    (keep ? drop_filter_leave : drop_filter_free)(pack->parts.drop);
    pack_journal_close(pack->journal, !failed);
    (keep ? set_work_leave : set_work_abandon)(pack->work); /* the lock goes last */
    if (!pack->names || !complete)
        return;
    /* After a power cut, files may be there again that a process removed at its end, or before it began its journal. */
    work_folder_sweep(options->prefix, pack_journal_owns);
    const bool is_set = options->shard_tokens || options->split;
    if (is_set || options->start_over) /* the work that was given up may have been that of a set */
        set_work_clear(options->prefix);
    if (!is_set)
        work_folder_settle(options->prefix);
}

/* Opens the inputs, the journal of earlier work, and the output. */
static enum tokmap_status work_begin(struct pack *pack, const char *const *operands, size_t count,
                                     struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    struct ordered_workers_options workers = {.name = "tokmap-pack",
                                              .threads = options->threads,
                                              .corpus = options->corpus,
                                              .counts = &pack->result->counts,
                                              .skip_limit = options->skip_limit,
                                              .other_output = options->other_output,
                                              .process = batch_encode,
                                              .commit = batch_commit,
                                              .committed = batch_committed,
                                              .self = pack,
                                              .skipped = options->skipped,
                                              .progress = options->progress,
                                              .stop = options->stop,
                                              .user = options->user};
    pack_batches_begin(&pack->batches, options, pack->result);
    pack_batches_corpus(&pack->batches, &workers.corpus);
    pack->drop.inputs = (struct scan_inputs){operands, count, outputs_exclude, pack};
    enum tokmap_status status = ordered_workers_new(&pack->parts.workers, &workers, operands, count, error);
    if (!status && pack->writes && pack_journal_is_needed(options, drop_may_search(pack)))
        status = pack_journal_open(&pack->journal, options, operands, count, pack->names, error);
    if (!status && pack->writes)
        status = output_take(pack, error);
    return status;
}

/* Prepares the steps that documents go through. */
static enum tokmap_status steps_make(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    enum tokmap_status status = TOKMAP_OK;
    if (options->listed && !pack->finished)
        status =
            listed_search_new(&pack->parts.listed, options->listed, ordered_workers_item_count(pack->parts.workers),
                              &pack->result->listed, pack->journal != NULL, error);
    if (!status && options->drop && !pack->finished)
        status = drop_open(pack, error);
    return status ? status : pack_batches_make(&pack->batches, &pack->parts, error);
}

/* Frees everything, after which the output is complete, or left for the next attempt. */
static void work_end(struct pack *pack, enum tokmap_status status)
{
    histogram_free(&pack->batches.lengths);
    if (!pack->sort.wanted) /* its files are in the folder that is removed */
        shuffle_free(pack->parts.shuffle);
    dedup_stages_free(&pack->drop.stages);
    output_close(pack, status);
    if (pack->sort.wanted && pack->parts.shuffle && status && !pack->result->kept && !pack->sort.is_recorded)
        shuffle_remove(pack->parts.shuffle);
    if (pack->sort.wanted)
        shuffle_free(pack->parts.shuffle);
    listed_search_free(pack->parts.listed);
    ordered_workers_free(pack->parts.workers);
}

enum tokmap_status pack_run(const struct pack_options *options, const char *const *operands, size_t count,
                            struct pack_result *result, struct tokmap_error *error)
{
    struct tokmap_error unused;
    const bool writes = !options->dry_run, unit = options->unit;
    struct pack pack = {.options = options,
                        .result = result,
                        .writes = writes,
                        .names = writes && !unit,
                        .sort.wanted = unit && options->shuffle,
                        .drop.searches = writes && !unit && options->drop};
    pack.parts = (struct pack_parts){.sets = pack.sets,
                                     .lengths = &pack.batches.lengths,
                                     .result = result,
                                     .open_tokens = &pack.batches.open_tokens};
    assert(options->threads && options->threads <= PACK_THREADS_MOST);
    assert(options->prefix || options->dry_run);
    assert(options->tokenizer || (options->vocabulary && options->corpus.content == CORPUS_CONTENT_IDS));
    error = error ? error : &unused;
    memset(result, 0, sizeof *result);
    enum tokmap_status status = work_begin(&pack, operands, count, error);
    if (!status)
        status = steps_make(&pack, error);
    if (!status)
        status = work_run(&pack, error);
    pack_batches_free(&pack.batches);
    if (!status)
        status = work_finish(&pack, error);
    if (!status && writes)
        status = work_commit(&pack, error);
    work_end(&pack, status);
    return status;
}
