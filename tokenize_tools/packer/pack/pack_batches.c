/* SPDX-License-Identifier: MIT */
/*
 * pack_batches.c - see pack_batches.h.
 *
 * A work item has memory for a fixed number of tokens (struct output). Its batch is encoded in groups of documents
 * whose tokens certainly fit. Usually a batch is one group, which is written when the item is committed. If a batch
 * needs more groups, the worker waits for its turn after the first one, and writes each group before it encodes the
 * next. Documents that are not plain texts are encoded one by one (document_encode.h), and a batch of them is one
 * group.
 */
#include "pack_batches.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus/corpus_issue.h"
#include "engine/cut_tokenizer.h"
#include "pack_output.h"

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

/* State of one thread. */
struct worker {
    struct tokenizer_state *state; /* NULL until the first batch, so that the threads make theirs in parallel */
    struct tokmap_text *texts;     /* GROUP_MOST of them */
    struct histogram lengths;      /* lengths of the documents that begin and end in one of this thread's batches */
    struct document_encoder documents;
};

/* State of one work item. */
struct output {
    struct tokenizer_out out; /* with GROUP_MOST ends */
    struct group group;       /* the documents whose tokens are in `out` */
    uint64_t *text_bytes;     /* GROUP_MOST: of each of these documents, or of its part, the bytes of text */
    bool pending;             /* true if these tokens are not written yet */
    uint64_t tokens, largest; /* number of tokens of the batch so far, and their largest id */
    /* Lengths of the documents that began in an earlier batch, or continue in a later one: tokens of this batch before
     * the end of the first document, if that is here, and tokens after the last end. */
    uint64_t head, tail;
    bool head_ended;
    struct document_tokens documents; /* if documents are encoded one by one: `out` points to their tokens */
};

/* ---- encode and write ---- */

/* Counts the lengths of the documents that end in the output's group. The thread whose turn it is counts what it
 * writes, so the counts cover the committed batches. Only pack_batch_commit() knows the lengths of those that began in
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
static enum tokmap_status group_write(struct pack_batches *batches, const struct corpus_batch *batch,
                                      struct output *output, struct tokmap_error *error)
{
    const struct group *group = &output->group;
    const struct corpus_document *documents = batch->documents + group->first;
    const struct tokenizer_out *out = &output->out;
    const uint32_t width = batches->tokenizer.width;
    const uint8_t *sets = batches->options->split ? output->documents.sets.bytes : NULL;
    const uint64_t *text_bytes =
        batches->one_by_one ? (const void *)output->documents.text_bytes.bytes : output->text_bytes;
    uint64_t base = 0;
    enum tokmap_status status = TOKMAP_OK;
    assert(group->first + group->count <= batch->document_count);
    if (batches->one_by_one)
        histogram_add_steps(&batches->lengths, 0, out->ends, group->count);
    else
        lengths_count(&batches->lengths, batch, output);
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
                                         .mask = output->documents.mask.bytes,
                                         .mask_first = base};
        const uint32_t set = sets ? sets[i] : 0;
        status = batches->parts->shuffle ? shuffle_add(batches->parts->shuffle, set, &run, error)
                                         : shard_set_add(batches->parts->sets[set], &run, error);
        base = end;
        i = next;
    }
    output->pending = false;
    return status;
}

/* Grows the memory for tokens, for a document that cannot be cut. */
static enum tokmap_status out_grow(const struct pack_batches *batches, struct tokenizer_out *out, uint64_t tokens,
                                   struct tokmap_error *error)
{
    uint64_t bytes;
    void *grown = NULL;
    if (!mul_overflows(tokens, batches->tokenizer.width, &bytes) && bytes < SIZE_MAX / 2)
        grown = realloc(out->tokens, (size_t)bytes);
    if (!grown)
        return error_set_memory(error, "the tokens of a long document", tokens);
    out->tokens = grown;
    out->capacity = tokens;
    return TOKMAP_OK;
}

/* Chooses the next group: documents whose tokens fit in the output, from byte *at of document *document on. Sets both
 * to where the next group begins. */
static enum tokmap_status group_choose(const struct pack_batches *batches, const struct work_item *item,
                                       uint64_t *document, uint64_t *at, struct tokmap_error *error)
{
    const struct corpus_batch *batch = &item->batch;
    const struct tokenizer_info *info = &batches->tokenizer;
    struct tokmap_text *texts = batches->threads[item->worker].texts;
    struct tokenizer_out *out = &batches->outputs[item->index].out;
    struct group *group = &batches->outputs[item->index].group;
    uint64_t *text_bytes = batches->outputs[item->index].text_bytes;
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
        const uint64_t some = wanted > room && info->cuts ? tokenizer_cut(batches->options->tokenizer, next->text + *at,
                                                                          (room - each) / info->ids_per_byte_most)
                                                          : 0;
        if (some) {
            bytes = some;
            wanted = room;
            cut = true;
        } else if (wanted > room) {
            const enum tokmap_status status = out_grow(batches, out, wanted, error);
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
static enum tokmap_status worker_begin(const struct pack_batches *batches, struct worker *worker,
                                       struct tokmap_error *error)
{
    const struct tokenizer *tokenizer = batches->options->tokenizer;
    const enum tokmap_status status =
        worker->state || !tokenizer ? TOKMAP_OK : tokenizer_state_new(&worker->state, tokenizer, error);
    if (!status && worker->state)
        tokenizer_state_stop(worker->state, batches->options->stop, batches->options->user);
    if (!status && !worker->lengths.cells && !histogram_new(&worker->lengths))
        return error_set_memory(error, "the lengths of documents", 0);
    worker->documents.rules = &batches->rules;
    worker->documents.state = worker->state;
    worker->documents.lengths = !batches->options->dry_run ? NULL : &worker->lengths;
    return status;
}

/* Removes the documents of a batch that are left out. */
static enum tokmap_status documents_drop(const struct pack_batches *batches, struct work_item *item,
                                         struct tokmap_error *error)
{
    const struct pack_parts *parts = batches->parts;
    enum tokmap_status status = parts->listed ? listed_search_batch(parts->listed, item, error) : TOKMAP_OK;
    if (!status && parts->drop)
        status = drop_filter_batch(parts->drop, parts->workers, item, error);
    return status;
}

/* Encodes a batch. The tokens of its last group stay in the output until pack_batch_commit(). */
static enum tokmap_status texts_encode(struct pack_batches *batches, struct work_item *item, struct tokmap_error *error)
{
    struct worker *worker = &batches->threads[item->worker];
    struct output *output = &batches->outputs[item->index];
    enum tokmap_status status = worker_begin(batches, worker, error);
    if (!status)
        status = documents_drop(batches, item, error);
    output->tokens = output->largest = output->head = output->tail = 0;
    output->head_ended = false;
    output->pending = false;
    for (uint64_t document = 0, at = 0; document < item->batch.document_count && !status;) {
        if (output->pending) {
            if (!ordered_workers_wait_turn(batches->parts->workers, item))
                return TOKMAP_OK;
            status = group_write(batches, &item->batch, output, error);
        }
        if (!status)
            status = group_choose(batches, item, &document, &at, error);
        if (status)
            break;
        const struct group *group = &output->group;
        const struct tokenizer_batch texts = {worker->texts, group->count, group->resumed, group->unfinished};
        status = tokenizer_encode(worker->state, &texts, &output->out, error);
        if (status == TOKMAP_ERROR_INPUT || status == TOKMAP_ERROR_LIMIT)
            corpus_error_add_place(&item->batch, group->first + output->out.failed, error);
        output->tokens += output->out.count;
        output->largest = max64(output->largest, output->out.largest);
        if (!status && batches->options->dry_run)
            lengths_count(&worker->lengths, &item->batch, output);
        output->pending = !batches->options->dry_run;
    }
    return status;
}

/* Encodes a batch whose documents are encoded one by one. */
static enum tokmap_status one_by_one_encode(struct pack_batches *batches, struct work_item *item,
                                            struct tokmap_error *error)
{
    struct worker *worker = &batches->threads[item->worker];
    struct output *output = &batches->outputs[item->index];
    struct document_tokens *tokens = &output->documents;
    enum tokmap_status status = worker_begin(batches, worker, error);
    if (!status)
        status = documents_drop(batches, item, error);
    if (!status)
        status = documents_encode(&worker->documents, &item->batch, tokens, error);
    output->tokens = tokens->count;
    output->largest = tokens->largest;
    output->group = (struct group){.count = item->batch.document_count};
    output->out.tokens = (char *)tokens->tokens.bytes;
    output->out.ends = (void *)tokens->ends.bytes;
    output->out.count = tokens->count;
    output->out.largest = tokens->largest;
    output->pending = !batches->options->dry_run && item->batch.document_count;
    return status;
}

enum tokmap_status pack_batch_encode(struct pack_batches *batches, struct work_item *item, struct tokmap_error *error)
{
    assert(item->worker < batches->thread_count);
    return batches->one_by_one ? one_by_one_encode(batches, item, error) : texts_encode(batches, item, error);
}

/* Counts the documents that the code of the model might cut. */
static void uncut_count(struct pack_batches *batches, const struct corpus_batch *batch)
{
    const struct tokenizer_info *info = &batches->tokenizer;
    const struct text_cuts *cuts = info->code_cuts && !info->cut_as ? text_cuts_named(info->code_cuts) : NULL;
    struct pack_result *result = batches->result;
    for (uint64_t i = 0; i < batch->document_count && cuts; i++) {
        const struct corpus_document *document = &batch->documents[i];
        result->uncut_bytes = document->bytes + (document->resumed ? result->uncut_bytes : 0);
        result->uncut += !document->unfinished && result->uncut_bytes > cuts->run;
    }
}

enum tokmap_status pack_batch_commit(struct pack_batches *batches, struct work_item *item, struct tokmap_error *error)
{
    struct output *output = &batches->outputs[item->index];
    struct document_tokens *documents = &output->documents;
    struct pack_result *result = batches->result;
    enum tokmap_status status = output->pending ? group_write(batches, &item->batch, output, error) : TOKMAP_OK;
    if (!status)
        pack_values_count(batches->result, batches->options->corpus.column_count, &item->batch);
    result->tokens += output->tokens;
    result->largest_id = max64(result->largest_id, output->largest);
    uncut_count(batches, &item->batch);
    if (batches->one_by_one) {
        result->eod_tokens += documents->eod_added;
        result->bos_tokens += documents->bos_added;
        result->eod_present += documents->eod_present;
        result->bos_present += documents->bos_present;
        result->counted_tokens += documents->counted;
        result->untaught += documents->untaught;
        fim_counts_add(&result->fim, &documents->fim);
        chat_counts_add(result->roles, documents->roles);
        document_tokens_trim(documents);
        return status;
    }
    if (output->head_ended) {
        histogram_add(&batches->lengths, batches->open_tokens + output->head, 1);
        batches->open_tokens = 0;
    }
    batches->open_tokens += output->tail;
    return status;
}

/* ---- begin and end ---- */

static uint64_t corpus_cut(void *user, const char *bytes, uint64_t count)
{
    return tokenizer_cut(((const struct pack_batches *)user)->options->tokenizer, bytes, count);
}

void pack_batches_begin(struct pack_batches *batches, const struct pack_options *options, struct pack_result *result)
{
    const struct corpus_options *corpus = &options->corpus;
    *batches = (struct pack_batches){.options = options, .result = result};
    batches->tokenizer = pack_tokenizer(options->tokenizer, options->vocabulary);
    batches->one_by_one = corpus->content != CORPUS_CONTENT_TEXT || options->min_tokens || options->max_tokens ||
                          options->split || options->fim;
    batches->result->has_mask = document_is_masked(corpus);
    batches->rules = (struct document_rules){.corpus = corpus,
                                             .tokenizer = options->tokenizer,
                                             .chat = options->chat,
                                             .width = batches->tokenizer.width,
                                             .ids_per_byte_most = batches->tokenizer.ids_per_byte_most,
                                             .eod_id = options->eod_id,
                                             .bos_id = options->bos_id,
                                             .split = options->split,
                                             .fim = options->fim,
                                             .min_tokens = options->min_tokens,
                                             .max_tokens = options->max_tokens ? options->max_tokens : UINT64_MAX};
}

void pack_batches_corpus(struct pack_batches *batches, struct corpus_options *corpus)
{
    const struct pack_options *options = batches->options;
    batches->batch_bytes = min64(BATCH_MOST, max64(BATCH_LEAST, BATCHES_ALL / options->threads));
    corpus->vocabulary = batches->tokenizer.vocabulary;
    corpus->cut_anywhere = batches->tokenizer.cuts && !batches->one_by_one && !options->drop && !options->listed;
    corpus->cut = batches->tokenizer.cut_anywhere ? NULL : corpus_cut;
    corpus->cut_user = batches;
    corpus->batch_bytes = batches->batch_bytes;
}

static enum tokmap_status output_make(const struct pack_batches *batches, struct output *output,
                                      struct tokmap_error *error)
{
    const struct pack_options *options = batches->options;
    struct tokenizer_out *out = &output->out;
    out->has_suffix = options->eod_id != TOKMAP_NO_ID;
    out->suffix = (uint32_t)options->eod_id;
    out->has_prefix = options->bos_id != TOKMAP_NO_ID;
    out->prefix = (uint32_t)options->bos_id;
    /* The system provides memory when tokens are written to it, so a small batch uses little. */
    out->capacity =
        min64(CORPUS_PARQUET_BATCH_MOST * batches->batch_bytes * batches->tokenizer.ids_per_byte_most, OUTPUT_MOST) +
        GROUP_MOST;
    out->tokens = malloc((size_t)out->capacity * batches->tokenizer.width);
    out->ends = malloc(GROUP_MOST * sizeof *out->ends);
    output->text_bytes = malloc(GROUP_MOST * sizeof *output->text_bytes);
    if (!out->tokens || !out->ends || !output->text_bytes)
        return error_set_memory(error, "the tokens of a batch", out->capacity * batches->tokenizer.width);
    return TOKMAP_OK;
}

enum tokmap_status pack_batches_make(struct pack_batches *batches, const struct pack_parts *parts,
                                     struct tokmap_error *error)
{
    const uint32_t threads = batches->options->threads, items = ordered_workers_item_count(parts->workers);
    enum tokmap_status status = TOKMAP_OK;
    batches->parts = parts;
    assert(!batches->threads && !batches->outputs && !batches->lengths.cells);
    batches->threads = calloc(threads, sizeof *batches->threads);
    batches->outputs = calloc(items, sizeof *batches->outputs);
    if (!batches->threads || !batches->outputs || !histogram_new(&batches->lengths))
        return error_set_memory(error, "the threads of the packer", threads * sizeof *batches->threads);
    for (; batches->thread_count < threads && !status; batches->thread_count++) {
        struct worker *worker = &batches->threads[batches->thread_count];
        worker->state = batches->options->unit ? batches->options->unit->states[batches->thread_count] : NULL;
        worker->texts = malloc(GROUP_MOST * sizeof *worker->texts);
        if (!worker->texts)
            status = error_set_memory(error, "a thread of the packer", GROUP_MOST * sizeof *worker->texts);
    }
    for (; batches->output_count < items && !status && !batches->one_by_one; batches->output_count++)
        status = output_make(batches, &batches->outputs[batches->output_count], error);
    return status;
}

void pack_batches_end(struct pack_batches *batches)
{
    for (uint32_t i = 0; i < batches->thread_count; i++)
        histogram_merge(&batches->lengths, &batches->threads[i].lengths);
    lengths_of(&batches->lengths, &batches->result->lengths);
}

void pack_batches_free(struct pack_batches *batches)
{
    for (uint32_t i = 0; i < batches->thread_count; i++) {
        if (batches->options->unit)
            batches->options->unit->states[i] = batches->threads[i].state;
        else
            tokenizer_state_free(batches->threads[i].state);
        free(batches->threads[i].texts);
        histogram_free(&batches->threads[i].lengths);
        document_encoder_free(&batches->threads[i].documents);
    }
    for (uint32_t i = 0; i < batches->output_count; i++) {
        free(batches->outputs[i].out.tokens);
        free(batches->outputs[i].out.ends);
        free(batches->outputs[i].text_bytes);
    }
    for (uint32_t i = 0;
         batches->one_by_one && batches->outputs && i < ordered_workers_item_count(batches->parts->workers); i++)
        document_tokens_free(&batches->outputs[i].documents);
    free(batches->threads);
    free(batches->outputs);
}
