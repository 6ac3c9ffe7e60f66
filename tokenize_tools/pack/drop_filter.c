/*
 * drop_filter.c - see drop_filter.h.
 *
 * The keys of a batch's documents, and the n-grams in them, are computed by many threads. Then each batch waits for
 * those before it, because whether a document is a duplicate depends on all earlier ones. What follows is encoded by
 * many threads again.
 */
#include "drop_filter.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/dropped_writer.h"
#include "text/path.h"

/* What is known of a document before it is compared with earlier ones. */
struct judged {
    struct hash128 key;
    uint64_t ngram; /* the first excluded one, or NGRAM_NONE */
};

/* What belongs to one work item. */
struct drop_item {
    struct bytes_buffer judged; /* struct judged of each document */
    struct ngram_search search;
};

struct drop_filter {
    struct drop_filter_options options;
    struct drop_item *items;
    char *folder;
    struct duplicates *duplicates; /* NULL: they are kept */
    struct near_duplicates *near;  /* NULL: they are kept */
    struct dropped_writer *list;   /* NULL: nothing is written */
    uint64_t *listed;              /* of each n-gram: 1 + its number in the list, or 0 */
    uint64_t ngrams;               /* in the list */
    struct place_counter places;
    struct drop_counts counts;
};

static enum tokmap_status ngrams_begin(struct drop_filter *filter, struct tokmap_error *error)
{
    struct ngram_counts counts;
    if (!filter->options.drop->ngrams)
        return TOKMAP_OK;
    ngram_set_counts(filter->options.drop->ngrams, &counts);
    filter->listed = calloc((size_t)counts.listed, sizeof *filter->listed);
    return filter->listed ? TOKMAP_OK
                          : error_set_memory(error, "the excluded n-grams", counts.listed * sizeof *filter->listed);
}

static enum tokmap_status near_begin(struct drop_filter *filter, struct tokmap_error *error)
{
    const struct near_options near = {.form = filter->options.drop->minhash,
                                      .ngrams = filter->options.drop->ngrams,
                                      .inputs = filter->options.inputs,
                                      .progress = filter->options.compared};
    filter->counts.by_minhash = filter->counts.read_twice = true;
    return near_duplicates_new(&filter->near, &near, error);
}

enum tokmap_status drop_filter_new(struct drop_filter **filter, const struct drop_filter_options *options,
                                   struct tokmap_error *error)
{
    struct drop_filter *made = *filter = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "what is left out", sizeof *made);
    made->options = *options;
    made->items = calloc(options->items, sizeof *made->items);
    made->folder = options->name ? path_folder(options->name) : NULL;
    if (!made->items || (options->name && !made->folder))
        return error_set_memory(error, "what is left out", options->items * sizeof *made->items);
    made->options.inputs.memory = options->drop->memory;
    made->options.inputs.folder = made->folder;
    enum tokmap_status status = ngrams_begin(made, error);
    if (!status && options->drop->duplicates)
        status = duplicates_new(&made->duplicates, &made->options.inputs, error);
    if (!status && options->name)
        status = dropped_writer_open(&made->list, options->name, error);
    return status || !options->drop->minhash ? status : near_begin(made, error);
}

void drop_filter_free(struct drop_filter *filter)
{
    if (!filter)
        return;
    for (uint32_t i = 0; filter->items && i < filter->options.items; i++) {
        bytes_free(&filter->items[i].judged);
        ngram_search_free(&filter->items[i].search);
    }
    free(filter->items);
    free(filter->folder);
    free(filter->listed);
    duplicates_free(filter->duplicates);
    near_duplicates_free(filter->near);
    dropped_writer_free(filter->list);
    free(filter);
}

/* ---- documents ---- */

/* Computes what does not depend on other documents. */
static enum tokmap_status batch_judge(const struct drop_filter *filter, struct drop_item *of,
                                      const struct corpus_batch *batch, struct tokmap_error *error)
{
    const struct ngram_set *ngrams = filter->options.drop->ngrams;
    enum tokmap_status status = TOKMAP_OK;
    of->judged.count = 0;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        const struct corpus_document *document = &batch->documents[i];
        struct judged judged = {.ngram = NGRAM_NONE};
        if (filter->duplicates || filter->near)
            judged.key = document_key(document);
        if (ngrams)
            status = ngram_set_find(ngrams, &of->search, document->text, document->bytes, document->second,
                                    document->second_bytes, &judged.ngram, error);
        if (!status && !bytes_append(&of->judged, &judged, sizeof judged))
            status = error_set_memory(error, "the keys of a batch", batch->document_count * sizeof judged);
    }
    return status;
}

/* Counts a document as left out in place of packed. */
static void document_uncount(struct corpus_counts *counts, const struct corpus_document *document,
                             enum corpus_reason reason)
{
    counts->documents--;
    counts->empty_documents -= !document->bytes && !document->second_bytes && !document->id_count;
    counts->document_bytes -= document->source_bytes;
    counts->text_bytes -= document->bytes + document->second_bytes;
    counts->skipped_bytes += document->source_bytes;
    counts->records_skipped++;
    counts->left_out[reason].records++;
    counts->left_out[reason].bytes += document->source_bytes;
}

static enum tokmap_status excluded_list(struct drop_filter *filter, const struct document_place *place, uint64_t ngram,
                                        struct tokmap_error *error)
{
    struct ngram_origin origin;
    enum tokmap_status status = TOKMAP_OK;
    filter->counts.excluded++;
    if (!filter->list)
        return TOKMAP_OK;
    if (!filter->listed[ngram]) {
        ngram_set_origin(filter->options.drop->ngrams, ngram, &origin);
        status = dropped_writer_ngram(filter->list, origin.text, origin.bytes, origin.path, origin.record, error);
        filter->listed[ngram] = ++filter->ngrams;
    }
    return status
               ? status
               : dropped_writer_excluded(filter->list, place->input, place->record, filter->listed[ngram] - 1, error);
}

static enum tokmap_status duplicate_list(struct drop_filter *filter, const struct document_place *place,
                                         const struct document_place *kept, struct tokmap_error *error)
{
    const bool near = filter->near != NULL;
    ++*(near ? &filter->counts.near_duplicates : &filter->counts.duplicates);
    return filter->list ? dropped_writer_duplicate(filter->list, near, place->input, place->record, kept->input,
                                                   kept->record, error)
                        : TOKMAP_OK;
}

/* Decides about a document. *keep: it is packed. */
static enum tokmap_status document_decide(struct drop_filter *filter, struct corpus_batch *batch,
                                          const struct corpus_document *document, const struct judged *judged,
                                          bool *keep, struct tokmap_error *error)
{
    const struct corpus_part *part = &batch->parts[document->part];
    struct document_place place, kept;
    bool is_new, is_duplicate = false;
    enum tokmap_status status =
        place_counter_next(&filter->places, part, document->record, judged->key, &place, &is_new, error);
    if (!status && is_new && filter->list)
        status = dropped_writer_input(filter->list, part->path, error);
    if (!status && filter->duplicates)
        status = duplicates_find(filter->duplicates, judged->key, &place, &is_duplicate, &kept, error);
    if (!status && filter->near)
        status = near_duplicates_find(filter->near, filter->places.documents - 1, &is_duplicate, &kept, error);
    *keep = judged->ngram == NGRAM_NONE && !is_duplicate;
    if (status || *keep)
        return status;
    if (judged->ngram != NGRAM_NONE) {
        document_uncount(&batch->counts, document, CORPUS_REASON_EXCLUDED);
        return excluded_list(filter, &place, judged->ngram, error);
    }
    document_uncount(&batch->counts, document, filter->near ? CORPUS_REASON_NEAR_DUPLICATE : CORPUS_REASON_DUPLICATE);
    return duplicate_list(filter, &place, &kept, error);
}

enum tokmap_status drop_filter_batch(struct drop_filter *filter, struct ordered_workers *workers,
                                     struct work_item *item, struct tokmap_error *error)
{
    struct corpus_batch *batch = &item->batch;
    struct drop_item *of = &filter->items[item->index];
    uint64_t kept = 0;
    enum tokmap_status status = batch_judge(filter, of, batch, error);
    if (status)
        return status;
    if (!ordered_workers_wait_order(workers, item)) {
        batch->document_count = 0;
        return TOKMAP_OK;
    }
    const uint64_t count = batch->document_count;
    for (uint64_t i = 0; filter->duplicates && i < count; i++)
        duplicates_prefetch(filter->duplicates, ((const struct judged *)(const void *)of->judged.bytes)[i].key);
    for (uint64_t i = 0; i < count && !status; i++) {
        const struct corpus_document document = batch->documents[i];
        struct judged judged;
        bool keep;
        memcpy(&judged, of->judged.bytes + i * sizeof judged, sizeof judged);
        status = document_decide(filter, batch, &document, &judged, &keep, error);
        if (!status && keep)
            batch->documents[kept++] = document;
    }
    batch->document_count = status ? 0 : kept;
    if (!status)
        ordered_workers_pass(workers);
    return status;
}

enum tokmap_status drop_filter_finish(struct drop_filter *filter, struct drop_counts *counts,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    filter->counts.documents = filter->places.documents;
    if (filter->duplicates) {
        filter->counts.read_twice = duplicates_read_twice(filter->duplicates, &filter->counts.file_bytes);
        status = duplicates_finish(filter->duplicates, &filter->places, error);
    }
    if (filter->near)
        status = near_duplicates_finish(filter->near, &filter->places, &filter->counts.file_bytes, error);
    *counts = filter->counts;
    if (!status && filter->list)
        status = dropped_writer_finish(filter->list, filter->counts.documents, filter->options.sync, error);
    return status;
}

enum tokmap_status drop_filter_commit(struct drop_filter *filter, struct tokmap_error *error)
{
    return filter->list ? dropped_writer_commit(filter->list, error) : TOKMAP_OK;
}
