/*
 * pack.c - see pack.h. Workers encode batches of documents in parallel, and pass the tokens to the shard set
 * (shard_set.h) in the order of the input (ordered_workers.h).
 *
 * A work item has memory for a fixed number of tokens (struct output). Its batch is encoded in groups of documents
 * whose tokens certainly fit. Usually a batch is one group, which is written when the item is committed. If a batch
 * needs more groups, the worker waits for its turn after the first one, and writes each group before it encodes the
 * next. Documents that are not plain texts are encoded one by one (document_encode.h), and a batch of them is one
 * group.
 */
#include "pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "encode/document_encode.h"
#include "encode/ordered_workers.h"
#include "encode/shard_set.h"
#include "format/shard_file.h"
#include "inputs/corpus_issue.h"
#include "inputs/corpus_range.h"
#include "output_names.h"
#include "pack_also.h"
#include "pack_finish.h"
#include "pack_journal.h"
#include "pack_output.h"
#include "pack_stages.h"
#include "shuffle/shuffle.h"
#include "text/path.h"
#include "work/work_folder.h"

/* Bytes of text in a batch. At most 256 KiB, so that text and tokens stay in the processor's cache from reading to
 * writing; less with many threads, so that the batches of all workers together have about 8 MiB. */
#define BATCH_MOST ((uint64_t)256 << 10)
#define BATCH_LEAST ((uint64_t)32 << 10)
#define BATCHES_ALL ((uint64_t)8 << 20)
/* Most tokens in an output, unless a document that cannot be cut needs more. */
#define OUTPUT_MOST ((uint64_t)4 << 20)
/* Most documents in a group. */
#define GROUP_MOST 8192

/* Consecutive documents of a batch that are encoded in one call. The first and the last may be parts of documents. */
struct group {
    uint64_t first, count; /* indexes in the batch's documents */
    bool resumed, unfinished;
};

/* What belongs to one thread. */
struct worker {
    struct tokenizer_state *state; /* NULL until the first batch, so that the threads make theirs in parallel */
    struct tokmap_text *texts;     /* GROUP_MOST of them */
    struct histogram lengths;      /* of the documents that begin and end in one of this thread's batches */
    struct document_encoder documents;
};

/* What belongs to one work item. */
struct output {
    struct tokenizer_out out; /* with GROUP_MOST ends */
    struct group group;       /* the documents whose tokens are in `out` */
    uint64_t *text_bytes;     /* GROUP_MOST: of each of these documents, or of its part, the bytes of text */
    bool pending;             /* these tokens are not written yet */
    uint64_t tokens, largest; /* number of tokens of the batch so far, and their largest id */
    /* Lengths of the documents that began in an earlier batch, or continue in a later one: tokens of this batch before
     * the end of the first document, if that is here, and tokens after the last end. */
    uint64_t head, tail;
    bool head_ended;
    struct document_tokens documents; /* if documents are encoded one by one: `out` points to their tokens */
};

/* What the about sections of a set need. */
struct set_of {
    struct pack *pack;
    uint32_t number;
};

struct pack {
    const struct pack_options *options;
    struct ordered_workers *workers;
    struct set_work *work; /* NULL for a single shard */
    bool writes;           /* false for a dry run */
    bool sorts;            /* a unit of a shuffle: its documents are sorted, and shards are made later */
    struct shuffle_sorted sorted;
    bool is_recorded;         /* the record of the unit may have its name, also after an error */
    struct drop_filter *drop; /* NULL without options.drop */
    struct drop_stages stages;
    struct scan_inputs inputs; /* that the stages read */
    struct shard_set *sets[SPLIT_SETS_MOST];
    struct set_of set_of[SPLIT_SETS_MOST];
    struct shuffle *shuffle; /* between the workers and the sets; NULL: none */
    uint32_t set_count;
    struct tokenizer_info tokenizer; /* without a tokenizer: width and vocabulary */
    bool one_by_one;                 /* documents are encoded one by one */
    struct document_rules rules;     /* for this */
    struct pack_result *result;
    struct worker *threads;
    uint32_t thread_count;
    struct output *outputs;
    uint32_t output_count;
    struct histogram lengths;     /* of the documents that several batches share; in the end, of all */
    uint64_t open_tokens;         /* of the document that is not ended yet, in the batches that are committed */
    bool finished;                /* all was done by a killed process */
    struct pack_journal *journal; /* NULL if the work is not saved */
};

/* ---- encode and write ---- */

/* Counts the lengths of the documents that end in the output's group. What is written is counted by whoever has the
 * turn, so that the counts are those of committed batches. Only batch_commit() knows the lengths of those that began in
 * an earlier batch. */
static void lengths_count(struct histogram *lengths, const struct corpus_batch *batch, struct output *output)
{
    const struct group *group = &output->group;
    const struct tokenizer_out *out = &output->out;
    const uint64_t complete = group->count - group->unfinished;
    uint64_t begin = 0, i = 0;
    if (complete && group->first == 0 && batch->documents[0].resumed) {
        output->head = output->tail + out->ends[0];
        output->head_ended = true;
        output->tail = 0;
        begin = out->ends[0];
        i = 1;
    }
    if (i < complete) {
        histogram_add(lengths, output->tail + out->ends[i] - begin, 1);
        output->tail = 0;
        histogram_add_steps(lengths, out->ends[i], out->ends + i + 1, complete - i - 1);
        begin = out->ends[complete - 1];
    }
    output->tail += out->count - begin;
}

/* Passes the output's tokens to the shard set, or to the shuffle before it, with one call for each run of documents
 * that come from one file, have consecutive record numbers, and belong to one set. */
static enum tokmap_status group_write(struct pack *pack, const struct corpus_batch *batch, struct output *output,
                                      struct tokmap_error *error)
{
    const struct group *group = &output->group;
    const struct corpus_document *documents = batch->documents + group->first;
    const struct tokenizer_out *out = &output->out;
    const uint32_t width = pack->tokenizer.width;
    const uint8_t *sets = pack->options->split ? output->documents.sets : NULL;
    const uint64_t *text_bytes = pack->one_by_one ? output->documents.text_bytes : output->text_bytes;
    uint64_t base = 0;
    enum tokmap_status status = TOKMAP_OK;
    assert(group->first + group->count <= batch->document_count);
    if (pack->one_by_one)
        histogram_add_steps(&pack->lengths, 0, out->ends, group->count);
    else
        lengths_count(&pack->lengths, batch, output);
    for (uint64_t i = 0; i < group->count && !status;) {
        const struct corpus_document *first = &documents[i];
        const char *path = batch->parts[first->part].path;
        uint64_t next = i + 1;
        while (next < group->count && batch->parts[documents[next].part].path == path &&
               documents[next].record == documents[next - 1].record + 1 && (!sets || sets[next] == sets[i]))
            next++;
        const uint64_t end = out->ends[next - 1];
        const bool unfinished = group->unfinished && next == group->count;
        if (base)
            for (uint64_t k = i; k < next; k++)
                out->ends[k] -= base;
        const struct document_run run = {.path = path,
                                         .input = batch->parts[first->part].input,
                                         .tokens = (const char *)out->tokens + base * width,
                                         .count = end - base,
                                         .ends = out->ends + i,
                                         .documents = next - i - unfinished,
                                         .unfinished = unfinished,
                                         .from = first,
                                         .text_bytes = text_bytes + i,
                                         .largest = out->largest,
                                         .mask = output->documents.mask,
                                         .mask_first = base};
        const uint32_t set = sets ? sets[i] : 0;
        status =
            pack->shuffle ? shuffle_add(pack->shuffle, set, &run, error) : shard_set_add(pack->sets[set], &run, error);
        base = end;
        i = next;
    }
    output->pending = false;
    return status;
}

/* Grows the memory for tokens, for a document that cannot be cut. */
static enum tokmap_status out_grow(const struct pack *pack, struct tokenizer_out *out, uint64_t tokens,
                                   struct tokmap_error *error)
{
    uint64_t bytes;
    void *grown = NULL;
    if (!mul_overflows(tokens, pack->tokenizer.width, &bytes) && bytes < SIZE_MAX / 2)
        grown = realloc(out->tokens, (size_t)bytes);
    if (!grown)
        return error_set_memory(error, "the tokens of a long document", tokens);
    out->tokens = grown;
    out->capacity = tokens;
    return TOKMAP_OK;
}

/* Chooses the next group: documents whose tokens fit in the output, from byte *at of document *document on. Sets both
 * to where the next group begins. */
static enum tokmap_status group_choose(const struct pack *pack, const struct work_item *item, uint64_t *document,
                                       uint64_t *at, struct tokmap_error *error)
{
    const struct corpus_batch *batch = &item->batch;
    const struct tokenizer_info *info = &pack->tokenizer;
    struct tokmap_text *texts = pack->threads[item->worker].texts;
    struct tokenizer_out *out = &pack->outputs[item->index].out;
    struct group *group = &pack->outputs[item->index].group;
    uint64_t *text_bytes = pack->outputs[item->index].text_bytes;
    const uint64_t each = (uint64_t)out->has_prefix + (uint64_t)out->has_suffix;
    uint64_t room = out->capacity;
    group->first = *document;
    group->count = 0;
    group->resumed = batch->documents[*document].resumed || *at;
    group->unfinished = false;
    while (*document < batch->document_count && group->count < GROUP_MOST) {
        const struct corpus_document *next = &batch->documents[*document];
        uint64_t bytes = next->bytes - *at, wanted;
        assert(!next->unfinished || *document + 1 == batch->document_count);
        if (mul_overflows(bytes, info->ids_per_byte_most, &wanted) || add_overflows(wanted, each, &wanted))
            wanted = UINT64_MAX;
        if (wanted > room && group->count)
            break;
        bool cut = false;
        const uint64_t some = wanted > room && info->cuts ? tokenizer_cut(pack->options->tokenizer, next->text + *at,
                                                                          (room - each) / info->ids_per_byte_most)
                                                          : 0;
        if (some) {
            bytes = some;
            wanted = room;
            cut = true;
        } else if (wanted > room) {
            const enum tokmap_status status = out_grow(pack, out, wanted, error);
            if (status)
                return status;
            room = wanted;
        }
        text_bytes[group->count] = bytes;
        texts[group->count++] = (struct tokmap_text){next->text + *at, bytes};
        room -= wanted;
        if (cut) {
            *at += bytes;
            group->unfinished = true;
            break;
        }
        group->unfinished = next->unfinished;
        *at = 0;
        ++*document;
        if (next->unfinished) /* its rest is in the next batch, and belongs to the same document */
            break;
    }
    return TOKMAP_OK;
}

/* Makes the state of a thread, when its first batch is encoded. */
static enum tokmap_status worker_begin(const struct pack *pack, struct worker *worker, struct tokmap_error *error)
{
    const struct tokenizer *tokenizer = pack->options->tokenizer;
    const enum tokmap_status status =
        worker->state || !tokenizer ? TOKMAP_OK : tokenizer_state_new(&worker->state, tokenizer, error);
    if (!status && worker->state)
        tokenizer_state_stop(worker->state, pack->options->stop, pack->options->user);
    if (!status && !worker->lengths.cells && !histogram_new(&worker->lengths))
        return error_set_memory(error, "the lengths of documents", 0);
    worker->documents.rules = &pack->rules;
    worker->documents.state = worker->state;
    worker->documents.lengths = pack->writes ? NULL : &worker->lengths;
    return status;
}

/* Encodes a batch. The tokens of its last group stay in the output until batch_commit(). */
static enum tokmap_status batch_encode(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct pack *pack = self;
    struct worker *worker = &pack->threads[item->worker];
    struct output *output = &pack->outputs[item->index];
    enum tokmap_status status = worker_begin(pack, worker, error);
    if (!status && pack->drop)
        status = drop_filter_batch(pack->drop, pack->workers, item, error);
    output->tokens = output->largest = output->head = output->tail = 0;
    output->head_ended = false;
    output->pending = false;
    for (uint64_t document = 0, at = 0; document < item->batch.document_count && !status;) {
        if (output->pending) {
            if (!ordered_workers_wait_turn(pack->workers, item))
                return TOKMAP_OK;
            status = group_write(pack, &item->batch, output, error);
        }
        if (!status)
            status = group_choose(pack, item, &document, &at, error);
        if (status)
            break;
        const struct group *group = &output->group;
        const struct tokenizer_batch texts = {worker->texts, group->count, group->resumed, group->unfinished};
        status = tokenizer_encode(worker->state, &texts, &output->out, error);
        if (status == TOKMAP_ERROR_INPUT || status == TOKMAP_ERROR_LIMIT)
            corpus_error_add_place(&item->batch, group->first + output->out.failed, error);
        output->tokens += output->out.count;
        output->largest = max64(output->largest, output->out.largest);
        if (!status && !pack->writes)
            lengths_count(&worker->lengths, &item->batch, output);
        output->pending = pack->writes;
    }
    return status;
}

/* Encodes a batch whose documents are encoded one by one. */
static enum tokmap_status documents_process(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct pack *pack = self;
    struct worker *worker = &pack->threads[item->worker];
    struct output *output = &pack->outputs[item->index];
    struct document_tokens *tokens = &output->documents;
    enum tokmap_status status = worker_begin(pack, worker, error);
    if (!status && pack->drop)
        status = drop_filter_batch(pack->drop, pack->workers, item, error);
    if (!status)
        status = documents_encode(&worker->documents, &item->batch, tokens, error);
    output->tokens = tokens->count;
    output->largest = tokens->largest;
    output->group = (struct group){.count = item->batch.document_count};
    output->out.tokens = tokens->tokens;
    output->out.ends = tokens->ends;
    output->out.count = tokens->count;
    output->out.largest = tokens->largest;
    output->pending = pack->writes && item->batch.document_count;
    return status;
}

/* Writes what batch_encode() has left, in the order of the input. */
static enum tokmap_status batch_commit(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct pack *pack = self;
    struct output *output = &pack->outputs[item->index];
    struct document_tokens *documents = &output->documents;
    struct pack_result *result = pack->result;
    enum tokmap_status status = output->pending ? group_write(pack, &item->batch, output, error) : TOKMAP_OK;
    if (!status)
        pack_values_count(pack->result, pack->options->corpus.column_count, &item->batch);
    result->tokens += output->tokens;
    result->largest_id = max64(result->largest_id, output->largest);
    if (pack->one_by_one) {
        result->eod_tokens += documents->eod_added;
        result->bos_tokens += documents->bos_added;
        result->eod_present += documents->eod_present;
        result->bos_present += documents->bos_present;
        result->counted_tokens += documents->counted;
        result->untaught += documents->untaught;
        document_tokens_trim(documents);
        return status;
    }
    if (output->head_ended) {
        histogram_add(&pack->lengths, pack->open_tokens + output->head, 1);
        pack->open_tokens = 0;
    }
    pack->open_tokens += output->tail;
    return status;
}

static struct pack_parts parts_of(struct pack *pack)
{
    return (struct pack_parts){.sets = pack->sets,
                               .set_count = pack->set_count,
                               .lengths = &pack->lengths,
                               .result = pack->result,
                               .open_tokens = &pack->open_tokens,
                               .workers = pack->workers,
                               .drop = pack->drop,
                               .shuffle = pack->shuffle};
}

/* Makes a checkpoint from time to time. */
static enum tokmap_status batch_committed(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct pack *pack = self;
    const struct pack_parts parts = parts_of(pack);
    enum tokmap_status status = pack->drop ? drop_filter_committed(pack->drop, item, error) : TOKMAP_OK;
    if (!status && pack->drop && drop_filter_is_full(pack->drop))
        status = pack_journal_flush(pack->journal, pack->drop, error);
    return !status && pack->journal ? pack_journal_save(pack->journal, &parts, &item->batch.place, error) : status;
}

/* Adds up the lengths that the threads have counted. */
static void lengths_summarize(struct pack *pack)
{
    for (uint32_t i = 0; i < pack->thread_count; i++)
        histogram_merge(&pack->lengths, &pack->threads[i].lengths);
    lengths_of(&pack->lengths, &pack->result->lengths);
}

/* ---- memory ---- */

static enum tokmap_status output_make(const struct pack *pack, uint64_t batch_bytes, struct output *output,
                                      struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    struct tokenizer_out *out = &output->out;
    out->has_suffix = options->eod_id != TOKMAP_NO_ID;
    out->suffix = (uint32_t)options->eod_id;
    out->has_prefix = options->bos_id != TOKMAP_NO_ID;
    out->prefix = (uint32_t)options->bos_id;
    /* The system gives the memory when tokens are written to it. So texts cost what their batches need. */
    out->capacity =
        min64(CORPUS_PARQUET_BATCH_MOST * batch_bytes * pack->tokenizer.ids_per_byte_most, OUTPUT_MOST) + GROUP_MOST;
    out->tokens = malloc((size_t)out->capacity * pack->tokenizer.width);
    out->ends = malloc(GROUP_MOST * sizeof *out->ends);
    output->text_bytes = malloc(GROUP_MOST * sizeof *output->text_bytes);
    if (!out->tokens || !out->ends || !output->text_bytes)
        return error_set_memory(error, "the tokens of a batch", out->capacity * pack->tokenizer.width);
    return TOKMAP_OK;
}

static enum tokmap_status memory_make(struct pack *pack, uint64_t batch_bytes, struct tokmap_error *error)
{
    const uint32_t threads = pack->options->threads, items = ordered_workers_item_count(pack->workers);
    enum tokmap_status status = TOKMAP_OK;
    pack->threads = calloc(threads, sizeof *pack->threads);
    pack->outputs = calloc(items, sizeof *pack->outputs);
    if (!pack->threads || !pack->outputs || !histogram_new(&pack->lengths))
        return error_set_memory(error, "the threads of the packer", threads * sizeof *pack->threads);
    for (; pack->thread_count < threads && !status; pack->thread_count++) {
        struct worker *worker = &pack->threads[pack->thread_count];
        worker->texts = malloc(GROUP_MOST * sizeof *worker->texts);
        if (!worker->texts)
            status = error_set_memory(error, "a thread of the packer", GROUP_MOST * sizeof *worker->texts);
    }
    for (; pack->output_count < items && !status && !pack->one_by_one; pack->output_count++)
        status = output_make(pack, batch_bytes, &pack->outputs[pack->output_count], error);
    return status;
}

static void memory_free(struct pack *pack)
{
    for (uint32_t i = 0; i < pack->thread_count; i++) {
        tokenizer_state_free(pack->threads[i].state);
        free(pack->threads[i].texts);
        histogram_free(&pack->threads[i].lengths);
        document_encoder_free(&pack->threads[i].documents);
    }
    for (uint32_t i = 0; i < pack->output_count; i++) {
        free(pack->outputs[i].out.tokens);
        free(pack->outputs[i].out.ends);
        free(pack->outputs[i].text_bytes);
    }
    for (uint32_t i = 0; pack->one_by_one && pack->outputs && i < ordered_workers_item_count(pack->workers); i++)
        document_tokens_free(&pack->outputs[i].documents);
    free(pack->threads);
    free(pack->outputs);
}

/* ---- open, check and commit ---- */

/* Makes the about section of a shard; of one without a set, it has the totals of all inputs. */
static char *about_make(void *self, const struct shard_totals *shard, uint64_t *bytes)
{
    const struct set_of *set_of = self;
    const struct pack *pack = set_of->pack;
    return pack_output_about(pack->options, pack->result, set_of->number, pack->work ? shard : NULL, bytes);
}

/* An output must not be read as an input, which would happen if it is in a folder that is an input. */
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
    pack->set_count = pack->sorts ? 0 : sets;
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
        work_folder_sweep(options->prefix, options->unit ? pack_journal_owns_unit : pack_journal_owns);
    return options->shard_tokens || options->split ? set_work_open(&pack->work, options->prefix, &work, error)
                                                   : TOKMAP_OK;
}

/* Files of the shuffle have names if another process continues, or can. */
static enum tokmap_status shuffle_place(void *owner, const char **folder, struct tokmap_error *error)
{
    const struct pack *pack = owner;
    const enum tokmap_status status = pack->journal ? pack_journal_begin(pack->journal, folder, error) : TOKMAP_OK;
    if (!status && !*folder && pack->sorts)
        *folder = set_work_folder(pack->work);
    return status;
}

/* Makes a checkpoint from time to time, while documents are merged. */
static enum tokmap_status shuffle_checkpoint(void *owner, struct tokmap_error *error)
{
    struct pack *pack = owner;
    const struct pack_parts parts = parts_of(pack);
    const struct corpus_place end = {.done = 1};
    return pack->journal ? pack_journal_save(pack->journal, &parts, &end, error) : TOKMAP_OK;
}

static enum tokmap_status shuffle_make(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    char *folder = path_folder(options->prefix);
    const struct shuffle_options shuffle = {.seed = options->shuffle->seed,
                                            .width = pack->tokenizer.width,
                                            .columns = (uint32_t)options->corpus.column_count,
                                            .sets = pack_output_sets(options),
                                            .mask = pack->result->has_mask,
                                            .own_thread = options->threads > 1,
                                            .keyed = pack->sorts,
                                            .first_input = pack->sorts ? options->unit->first_input : 0,
                                            .folder = folder,
                                            .chunk_bytes = round_down(options->shuffle->memory, 4096),
                                            .stop = options->stop,
                                            .progress = options->shuffled,
                                            .user = options->user,
                                            .place = shuffle_place,
                                            .save = shuffle_checkpoint,
                                            .owner = pack};
    const enum tokmap_status status =
        folder ? shuffle_open(&pack->shuffle, &shuffle, error) : error_set_memory(error, "a path", 0);
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
    const struct drop_output dropping = pack_output_drop(options);
    for (uint32_t i = 0; i < pack->set_count && !status; i++) {
        struct shard_set_options set = common;
        pack->set_of[i] = (struct set_of){pack, i};
        set.number = i;
        set.user = &pack->set_of[i];
        status = resumes(pack) ? shard_set_reopen(&pack->sets[i], &set, pack_journal_set(pack->journal, i), error)
                               : shard_set_open(&pack->sets[i], &set, error);
    }
    if (!status && !options->unit)
        status = drop_names_settle(&dropping, resumes(pack) && options->drop, error);
    if (!status && options->shuffle)
        status = shuffle_make(pack, error);
    return status ? status : outputs_exclude(pack, ordered_workers_corpus(pack->workers), error);
}

/* Compares all documents, when the table of their keys is full. That may take long, so what is packed is saved. */
static enum tokmap_status documents_compare(void *self, const struct drop_source **found, struct tokmap_error *error)
{
    struct pack *pack = self;
    const struct pack_parts parts = parts_of(pack);
    enum tokmap_status status = pack_journal_save_now(pack->journal, &parts, error);
    if (!status)
        status = drop_stages_do(&pack->stages, pack->options, &pack->inputs, pack->journal, NULL, error);
    *found = &pack->stages.source;
    return status;
}

/* Prepares for leaving documents out. */
static enum tokmap_status drop_open(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    const struct drop_source *own = drop_stages_precede(options) ? &pack->stages.source : NULL;
    const struct drop_filter_options drop = {.drop = options->drop,
                                             .name = pack->writes && !options->unit ? options->prefix : NULL,
                                             .source = options->unit ? options->unit->drops : own,
                                             .compare =
                                                 drop_stages_follow(options, &pack->inputs) ? documents_compare : NULL,
                                             .self = pack,
                                             .sync = options->sync,
                                             .items = ordered_workers_item_count(pack->workers),
                                             .resume = resumes(pack) ? pack_journal_drop_state(pack->journal) : NULL,
                                             .saves = pack->journal != NULL};
    struct corpus *corpus = ordered_workers_corpus(pack->workers);
    enum tokmap_status status =
        own ? drop_stages_do(&pack->stages, options, &pack->inputs, pack->journal, corpus, error) : TOKMAP_OK;
    if (!status)
        status = drop_filter_new(&pack->drop, &drop, error);
    return status ? status : outputs_exclude(pack, corpus, error); /* now with the list of dropped documents */
}

/* Opens the output. If a killed process has a journal and its files have their names already, or are gone, there is
 * nothing to continue. */
static enum tokmap_status output_take(struct pack *pack, struct tokmap_error *error)
{
    enum tokmap_status status = output_open(pack, error);
    if (!resumes(pack) || (status != TOKMAP_ERROR_EXISTS && status != TOKMAP_ERROR_NOT_FOUND))
        return status;
    struct pack_result *last = calloc(1, sizeof *last);
    if (!last)
        return error_set_memory(error, "the report", sizeof *last);
    *last = *pack_journal_result(pack->journal);
    pack->finished = pack_journal_is_named(pack->journal, pack->set_count, last);
    if (pack->finished) {
        pack_journal_result_set(pack->journal, last);
        pack_output_settle(pack->options);
    }
    free(last);
    if (pack->finished || status == TOKMAP_ERROR_EXISTS)
        return pack->finished ? TOKMAP_OK : status;
    for (uint32_t i = 0; i < pack->set_count; i++) {
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
    for (uint32_t i = 0; i < pack->set_count && !status; i++) {
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
    pack->is_recorded = true;
    const enum tokmap_status status = unit->committed(unit->user, pack->result, &pack->sorted, error);
    if (status)
        return status;
    set_work_tidy(pack->work);
    set_work_leave(pack->work);
    pack->work = NULL;
    return TOKMAP_OK;
}

/* Gives the files their names. What belongs to an older output is touched only when all that takes long is done. */
static enum tokmap_status commit(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_options *options = pack->options;
    struct pack_result *result = pack->result;
    uint64_t shards[SPLIT_SETS_MOST];
    const uint64_t index = pack->work ? 0 : pack_index_inode(options, true);
    const struct drop_output dropping = pack_output_drop(options);
    struct drop_names names = {.aside = false};
    bool visible = false;
    enum tokmap_status status = pack->work ? sets_commit(pack, shards, error) : shard_set_finish(pack->sets[0], error);
    if (!status && options->unit)
        return unit_commit(pack, error);
    if (!status && !pack->work && pack->journal)
        status = pack_journal_ready(pack->journal, error);
    if (!status)
        status = drop_names_begin(&names, &dropping, pack->drop ? drop_filter_list(pack->drop) : NULL,
                                  pack->work ? set_work_group(pack->work) : NULL, error);
    if (!status && pack->work) {
        struct set_work *work = pack->work;
        pack->work = NULL;
        status = set_work_commit(work, shards, result->has_mask, &visible, error);
    } else if (!status) {
        status = sets_commit(pack, shards, error);
        visible = !status || (index && pack_index_inode(options, false) == index);
    }
    drop_names_end(&names, &dropping, visible);
    if (!options->split)
        memcpy(result->content, result->sets[0].content, sizeof result->content);
    return status;
}

static uint64_t corpus_cut(void *user, const char *bytes, uint64_t count)
{
    return tokenizer_cut(((const struct pack *)user)->options->tokenizer, bytes, count);
}

/* Decides how documents are encoded. */
static void rules_make(struct pack *pack)
{
    const struct pack_options *options = pack->options;
    const struct corpus_options *corpus = &options->corpus;
    pack_output_tokenizer(options, &pack->tokenizer);
    pack->one_by_one =
        corpus->content != CORPUS_CONTENT_TEXT || options->min_tokens || options->max_tokens || options->split;
    pack->result->has_mask = document_is_masked(corpus);
    pack->rules = (struct document_rules){.corpus = corpus,
                                          .tokenizer = options->tokenizer,
                                          .chat = options->chat,
                                          .width = pack->tokenizer.width,
                                          .ids_per_byte_most = pack->tokenizer.ids_per_byte_most,
                                          .eod_id = options->eod_id,
                                          .bos_id = options->bos_id,
                                          .split = options->split,
                                          .min_tokens = options->min_tokens,
                                          .max_tokens = options->max_tokens ? options->max_tokens : UINT64_MAX};
}

/* Packs all inputs, or those that a killed process has not packed. */
static enum tokmap_status work_run(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_parts parts = parts_of(pack);
    enum tokmap_status status = TOKMAP_OK;
    if (pack->finished) {
        const struct pack_parts report = {
            .lengths = parts.lengths, .result = parts.result, .open_tokens = parts.open_tokens};
        return pack_journal_report(pack->journal, &report, error);
    }
    if (resumes(pack)) {
        status = pack_journal_restore(pack->journal, &parts, error);
    } else if (pack->options->corpus.range.begin && !pack->options->corpus.range.groups) {
        uint64_t carried;
        status = corpus_range_begin(ordered_workers_corpus(pack->workers), &carried, error);
        parts.result->counts.stream_bytes += carried;
        parts.result->counts.stored_bytes -= pack->options->corpus.range.begin; /* the end of the file counts all */
    }
    if (!status)
        status = ordered_workers_run(pack->workers, error);
    return status;
}

/* Writes the shuffled or sorted documents, and makes the last checkpoint. */
static enum tokmap_status work_finish(struct pack *pack, struct tokmap_error *error)
{
    const struct pack_parts parts = parts_of(pack);
    enum tokmap_status status = pack->drop ? drop_filter_check(pack->drop, error) : TOKMAP_OK;
    if (status == TOKMAP_ERROR_MISMATCH && pack->journal) /* what was found is of other inputs */
        pack_journal_drop(pack->journal);
    if (!status && pack->sorts)
        status = shuffle_sort(pack->shuffle, pack->options->sync, &pack->sorted, error);
    else if (!status && pack->shuffle)
        status = shuffle_finish(pack->shuffle, pack->sets, error);
    if (pack->sorts) /* a checkpoint may have had them */
        memset(pack->result->sets, 0, sizeof pack->result->sets);
    for (uint64_t i = 0; i < pack->sorted.count; i++) {
        struct shard_set_result *set = &pack->result->sets[pack->sorted.chunks[i].set];
        set->documents += pack->sorted.chunks[i].keys;
        set->tokens += pack->sorted.chunks[i].tokens;
    }
    if (!status && pack->journal && !pack->finished)
        status = pack_journal_finish(pack->journal, &parts, error);
    if (!status && pack->shuffle && !pack->sorts)
        status = shuffle_end(pack->shuffle, pack->journal ? pack_journal_folder(pack->journal) : NULL,
                             pack->options->sync, error);
    return status;
}

/* Removes what is not committed, or leaves it for the next attempt. */
static void output_close(struct pack *pack, enum tokmap_status status)
{
    const struct pack_options *options = pack->options;
    const bool failed = status != TOKMAP_OK, complete = !failed || status == TOKMAP_ERROR_EXISTS;
    const bool keep = failed && pack->journal && pack_journal_kept(pack->journal);
    pack->result->kept = keep;
    for (uint32_t i = 0; i < pack->set_count; i++)
        (keep ? shard_set_leave : shard_set_abandon)(pack->sets[i]);
    (keep ? drop_filter_leave : drop_filter_free)(pack->drop);
    pack_journal_close(pack->journal, !failed);
    (keep ? set_work_leave : set_work_abandon)(pack->work); /* the lock goes last */
    if (!pack->writes || !complete || options->unit)
        return;
    /* A power cut may bring back what a process removed at its end, or before it began its journal. */
    work_folder_sweep(options->prefix, pack_journal_owns);
    const bool is_set = options->shard_tokens || options->split;
    if (is_set || options->start_over) /* the work that was given up may have been that of a set */
        set_work_clear(options->prefix);
    if (!is_set)
        work_folder_settle(options->prefix);
}

enum tokmap_status pack_run(const struct pack_options *options, const char *const *operands, size_t count,
                            struct pack_result *result, struct tokmap_error *error)
{
    struct tokmap_error unused;
    struct pack pack = {
        .options = options, .result = result, .writes = !options->dry_run, .sorts = options->unit && options->shuffle};
    struct ordered_workers_options workers = {.name = "tokmap-pack",
                                              .threads = options->threads,
                                              .corpus = options->corpus,
                                              .counts = &result->counts,
                                              .skip_limit = options->skip_limit,
                                              .other_output = options->other_output,
                                              .commit = batch_commit,
                                              .committed = batch_committed,
                                              .self = &pack,
                                              .skipped = options->skipped,
                                              .progress = options->progress,
                                              .stop = options->stop,
                                              .user = options->user};
    assert(options->threads && options->threads <= PACK_THREADS_MOST);
    assert(options->prefix || options->dry_run);
    assert(options->tokenizer || (options->vocabulary && options->corpus.content == CORPUS_CONTENT_IDS));
    error = error ? error : &unused;
    memset(result, 0, sizeof *result);
    rules_make(&pack);
    pack.inputs = (struct scan_inputs){operands, count, outputs_exclude, &pack};
    workers.process = pack.one_by_one ? documents_process : batch_encode;
    workers.corpus.vocabulary = pack.tokenizer.vocabulary;
    workers.corpus.cut_anywhere = pack.tokenizer.cuts && !pack.one_by_one && !options->drop;
    workers.corpus.cut = pack.tokenizer.cut_anywhere ? NULL : corpus_cut;
    workers.corpus.cut_user = &pack;
    workers.corpus.batch_bytes = min64(BATCH_MOST, max64(BATCH_LEAST, BATCHES_ALL / options->threads));
    enum tokmap_status status = ordered_workers_new(&pack.workers, &workers, operands, count, error);
    if (!status && pack.writes && pack_journal_is_needed(options, drop_stages_may_come(options, &pack.inputs)))
        status = pack_journal_open(&pack.journal, options, operands, count, error);
    if (!status && !options->dry_run)
        status = output_take(&pack, error);
    if (!status && options->drop && !pack.finished)
        status = drop_open(&pack, error);
    if (!status)
        status = memory_make(&pack, workers.corpus.batch_bytes, error);
    if (!status)
        status = work_run(&pack, error);
    if (!status)
        lengths_summarize(&pack);
    if (!status && options->unit)
        histogram_merge(options->unit->lengths, &pack.lengths);
    memory_free(&pack);
    if (!status)
        status = work_finish(&pack, error);
    histogram_free(&pack.lengths);
    if (!pack.sorts)
        shuffle_free(pack.shuffle);
    if (!pack.one_by_one) {
        result->eod_tokens = options->eod_id != TOKMAP_NO_ID ? result->counts.documents : 0;
        result->bos_tokens = options->bos_id != TOKMAP_NO_ID ? result->counts.documents : 0;
    }
    if (!status && pack.drop)
        status = drop_filter_finish(pack.drop, &result->dropped, error);
    drop_stages_free(&pack.stages);
    if (!status && !pack.finished)
        status = pack_accounts_check(options, pack.sets, pack.set_count, result, error);
    if (!status && pack.journal)
        pack_journal_settle(pack.journal);
    if (!status && pack.writes && !pack.finished)
        status = commit(&pack, error);
    if (!status && pack.writes && options->also)
        status = pack_also_write(options, pack_journal_kept_folder(pack.journal), pack.finished, result, error);
    output_close(&pack, status);
    if (pack.sorts && pack.shuffle && status && !result->kept && !pack.is_recorded)
        shuffle_remove(pack.shuffle);
    if (pack.sorts)
        shuffle_free(pack.shuffle);
    ordered_workers_free(pack.workers);
    return status;
}
