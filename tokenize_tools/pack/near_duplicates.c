/*
 * near_duplicates.c - see near_duplicates.h.
 *
 * Example: the documents 0 to 3, where 0 and 3 have a band in common, and so have 2 and 3. The partition with the band
 * of 0 and 3 says that the first document of this band is 0, so 3 refers to 0. Another partition says 2 and 3: both are
 * followed to the first documents of their clusters, 2 and 0, and the later one refers to the earlier one. Now
 * first[] is 0 1 0 0: the clusters are 0 2 3 and 1, and 2 and 3 are dropped.
 *
 * A document refers only to earlier ones, so the end of each way is the first document of its cluster, whatever the
 * order in which bands are compared. Ways are halved when they are followed, so they stay short.
 *
 * A partition is compared in passes whose bands fit in the memory, as in duplicates.c.
 */
#include "near_duplicates.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "block_chain.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "document_bands.h"
#include "ordered_workers.h"

#define MEMORY_LEAST ((uint64_t)1 << 20)
#define PARTITIONS 256
#define PLACE_BUFFER ((uint32_t)4 << 10)

struct near_duplicates {
    struct near_options options;
    struct band_signer signer;
    struct block_file file;
    struct block_chain partitions[PARTITIONS];
    struct block_chain places; /* of each document: u64, the number of its record */
    struct chain_reader reader;
    struct place_counter counter;
    uint32_t *inputs; /* of each input: the number of its first document */
    uint64_t input_count, input_capacity;
    uint32_t *first; /* of each document: an earlier one of its cluster, or itself */
    uint64_t documents;
};

/* What belongs to one item of the first reading. Of each document `found` has its key, a byte that is 1 if it has a
 * signature, and then the struct hash128 of each band. */
struct near_item {
    struct bytes_buffer found;
    struct document_bands bands;
    struct ngram_search search;
};

struct near_scan {
    struct near_duplicates *near;
    struct near_item *items;
};

/* ---- signatures ---- */

/* Adds what the item has of a document. */
static enum tokmap_status document_sign(const struct near_duplicates *near, struct near_item *item,
                                        const struct corpus_document *document, struct tokmap_error *error)
{
    const struct ngram_set *ngrams = near->options.ngrams;
    const struct hash128 key = document_key(document);
    uint64_t ngram = NGRAM_NONE;
    enum tokmap_status status = TOKMAP_OK;
    assert(!document->resumed && !document->unfinished);
    if (ngrams)
        status = ngram_set_find(ngrams, &item->search, document->text, document->bytes, document->second,
                                document->second_bytes, &ngram, error);
    if (!status && !bytes_append(&item->found, &key, sizeof key))
        status = error_set_memory(error, "the words of a document", document->bytes);
    return status ? status
                  : document_bands_add(&near->signer, &item->bands, document, ngram != NGRAM_NONE, &item->found, error);
}

static enum tokmap_status near_process(void *self, struct work_item *item, struct tokmap_error *error)
{
    const struct near_scan *scan = self;
    struct near_item *own = &scan->items[item->index];
    enum tokmap_status status = TOKMAP_OK;
    own->found.count = 0;
    for (uint64_t i = 0; i < item->batch.document_count && !status; i++)
        status = document_sign(scan->near, own, &item->batch.documents[i], error);
    return status;
}

/* ---- the file ---- */

static enum tokmap_status input_add(struct near_duplicates *near, struct tokmap_error *error)
{
    if (near->input_count == near->input_capacity) {
        const uint64_t more = 2 * near->input_capacity + 64;
        uint32_t *grown = realloc(near->inputs, (size_t)more * sizeof *grown);
        if (!grown)
            return error_set_memory(error, "the list of inputs", more * sizeof *grown);
        near->inputs = grown;
        near->input_capacity = more;
    }
    near->inputs[near->input_count++] = (uint32_t)near->documents;
    return TOKMAP_OK;
}

/* Writes the place and the bands of a document, which are at *at. */
static enum tokmap_status document_write(struct near_duplicates *near, const struct corpus_part *part,
                                         const struct corpus_document *document, const uint8_t **at,
                                         struct tokmap_error *error)
{
    struct hash128 key, band;
    struct document_place place;
    bool is_new;
    memcpy(&key, *at, sizeof key);
    const bool any = (*at)[sizeof key];
    *at += sizeof key + 1;
    if (near->documents == UINT32_MAX - 1)
        return error_set(error, TOKMAP_ERROR_LIMIT, part->path, TOKMAP_NO_OFFSET,
                         "there are more than 2^32 documents; search fewer for near-duplicates at once");
    enum tokmap_status status = place_counter_next(&near->counter, part, document->record, key, &place, &is_new, error);
    if (!status && is_new)
        status = input_add(near, error);
    if (!status)
        status = block_chain_add(&near->file, &near->places, &place.record, error);
    for (uint32_t i = 0; any && i < near->options.form->bands && !status; i++) {
        memcpy(&band, *at, sizeof band);
        *at += sizeof band;
        const struct band_record record = {band.low, (uint32_t)band.high, (uint32_t)near->documents};
        status = block_chain_add(&near->file,
                                 &near->partitions[(band.high >> 56) * near->options.inputs.partitions / PARTITIONS],
                                 &record, error);
    }
    near->documents++;
    return status;
}

static enum tokmap_status near_commit(void *self, struct work_item *item, struct tokmap_error *error)
{
    const struct near_scan *scan = self;
    const struct corpus_batch *batch = &item->batch;
    struct bytes_buffer *bands = &scan->items[item->index].found;
    const uint8_t *at = bands->bytes;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        const struct corpus_document *document = &batch->documents[i];
        status = document_write(scan->near, &batch->parts[document->part], document, &at, error);
    }
    bytes_trim(bands);
    return status;
}

static enum tokmap_status inputs_read(struct near_duplicates *near, struct tokmap_error *error)
{
    const struct duplicates_options *inputs = &near->options.inputs;
    struct near_scan scan = {.near = near};
    struct corpus_counts counts = {0};
    struct ordered_workers *workers = NULL;
    const struct ordered_workers_options reading = {.name = "tokmap-minhash",
                                                    .threads = inputs->threads,
                                                    .corpus = inputs->corpus,
                                                    .counts = &counts,
                                                    .other_output = inputs->other_output,
                                                    .process = near_process,
                                                    .commit = near_commit,
                                                    .self = &scan,
                                                    .progress = near->options.progress,
                                                    .stop = inputs->stop,
                                                    .user = inputs->user};
    enum tokmap_status status = ordered_workers_new(&workers, &reading, inputs->operands, inputs->operand_count, error);
    const uint32_t items = workers ? ordered_workers_item_count(workers) : 0;
    if (!status && !(scan.items = calloc(items, sizeof *scan.items)))
        status = error_set_memory(error, "the signatures of a batch", items * sizeof *scan.items);
    if (!status && inputs->prepare)
        status = inputs->prepare(inputs->self, ordered_workers_corpus(workers), error);
    if (!status)
        status = ordered_workers_run(workers, error);
    for (uint32_t i = 0; scan.items && i < items; i++) {
        bytes_free(&scan.items[i].found);
        document_bands_free(&scan.items[i].bands);
        ngram_search_free(&scan.items[i].search);
    }
    free(scan.items);
    ordered_workers_free(workers);
    return status;
}

/* ---- clusters ---- */

/* One pass: joins documents that have one of the bands of *from in common, and adds those that had no room to *rest. */
static enum tokmap_status pass_join(struct near_duplicates *near, struct key_table *table,
                                    const struct block_chain *from, struct block_chain *rest,
                                    struct tokmap_error *error)
{
    const struct duplicates_options *inputs = &near->options.inputs;
    struct chain_reader reader = {.chain = from, .buffer_bytes = CHAIN_BLOCK};
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t done = 0; !status; done++) {
        const void *next;
        struct band_record record;
        struct document_place found;
        status = chain_reader_next(&near->file, &reader, &next, error);
        if (status || !next)
            break;
        memcpy(&record, next, sizeof record);
        const struct hash128 key = {record.low, record.high};
        const struct document_place place = {.record = record.document};
        switch (key_table_find(table, key, &place, &found)) {
        case KEY_FOUND:
            (void)clusters_join(near->first, (uint32_t)found.record, record.document);
            break;
        case KEY_ADDED:
            break;
        case KEY_NO_ROOM:
            status = block_chain_add(&near->file, rest, &record, error);
            break;
        case KEY_NO_MEMORY:
            status = error_set_memory(error, "the bands of documents", table->bytes);
        }
        if (!status && done % 65536 == 0 && inputs->stop && inputs->stop(inputs->user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    }
    chain_reader_free(&reader);
    return status ? status : block_chain_end(&near->file, rest, error);
}

static enum tokmap_status partition_join(struct near_duplicates *near, struct key_table *table,
                                         struct block_chain *bands, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    while (!status && bands->records) {
        struct block_chain rest = {.record_bytes = sizeof(struct band_record)};
        status = pass_join(near, table, bands, &rest, error);
        assert(status || rest.records < bands->records);
        key_table_free(table);
        block_chain_free(&near->file, bands);
        *bands = rest;
    }
    block_chain_free(&near->file, bands);
    return status;
}

static enum tokmap_status clusters_find(struct near_duplicates *near, struct tokmap_error *error)
{
    struct key_table table;
    enum tokmap_status status = block_chain_end(&near->file, &near->places, error);
    for (uint32_t i = 0; i < PARTITIONS && !status; i++)
        status = block_chain_end(&near->file, &near->partitions[i], error);
    if (status)
        return status;
    near->first = malloc((size_t)max64(near->documents, 1) * sizeof *near->first);
    if (!near->first)
        return error_set_memory(error, "the clusters of documents", near->documents * sizeof *near->first);
    for (uint32_t i = 0; i < near->documents; i++)
        near->first[i] = i;
    key_table_init(&table, max64(near->options.inputs.memory, MEMORY_LEAST));
    for (uint32_t i = 0; i < PARTITIONS && !status; i++)
        status = partition_join(near, &table, &near->partitions[i], error);
    key_table_free(&table);
    return status;
}

/* ---- open, ask, and close ---- */

enum tokmap_status near_duplicates_new(struct near_duplicates **near, const struct near_options *options,
                                       struct tokmap_error *error)
{
    const struct minhash_form *form = options->form;
    struct near_duplicates *made = *near = calloc(1, sizeof *made);
    assert(form->words && form->words <= SHINGLE_WORDS_MOST && options->inputs.folder);
    if (!made)
        return error_set_memory(error, "the clusters of documents", sizeof *made);
    made->options = *options;
    if (!made->options.inputs.partitions)
        made->options.inputs.partitions = PARTITIONS;
    block_file_init(&made->file, options->inputs.folder);
    made->places.record_bytes = sizeof(uint64_t);
    for (uint32_t i = 0; i < PARTITIONS; i++)
        made->partitions[i].record_bytes = sizeof(struct band_record);
    if (!duplicates_can_repeat(options->inputs.operands, options->inputs.operand_count, &options->inputs.corpus.select))
        return error_set(
            error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
            "options.dedup minhash reads the inputs twice, and standard input, a pipe, or a list of paths from "
            "one of them can be read only once; save it in a file first");
    enum tokmap_status status = band_signer_make(&made->signer, form, error);
    if (!status)
        status = inputs_read(made, error);
    return status ? status : clusters_find(made, error);
}

void near_duplicates_free(struct near_duplicates *near)
{
    if (!near)
        return;
    chain_reader_free(&near->reader);
    block_chain_free(&near->file, &near->places);
    for (uint32_t i = 0; i < PARTITIONS; i++)
        block_chain_free(&near->file, &near->partitions[i]);
    block_file_free(&near->file);
    band_signer_free(&near->signer);
    free(near->inputs);
    free(near->first);
    free(near);
}

/* Reads the place of a document. */
static enum tokmap_status place_read(struct near_duplicates *near, uint32_t document, struct document_place *place,
                                     struct tokmap_error *error)
{
    struct chain_reader *reader = &near->reader;
    const void *record;
    uint64_t low = 0, high = near->input_count;
    while (high - low > 1) { /* the last input that begins with this document or before it */
        const uint64_t middle = (low + high) / 2;
        if (near->inputs[middle] <= document)
            low = middle;
        else
            high = middle;
    }
    reader->chain = &near->places;
    reader->buffer_bytes = PLACE_BUFFER;
    if (document < reader->first)
        reader->past = 0; /* what is in the buffer comes after it */
    reader->next = document;
    const enum tokmap_status status = chain_reader_next(&near->file, reader, &record, error);
    if (status)
        return status;
    *place = (struct document_place){.input = (uint32_t)low};
    memcpy(&place->record, record, sizeof place->record);
    return TOKMAP_OK;
}

enum tokmap_status near_duplicates_find(struct near_duplicates *near, uint64_t document, bool *is_duplicate,
                                        struct document_place *kept, struct tokmap_error *error)
{
    *is_duplicate = false;
    if (document >= near->documents) /* the input has changed, as near_duplicates_finish() will say */
        return TOKMAP_OK;
    const uint32_t first = cluster_first(near->first, (uint32_t)document);
    if (first == document)
        return TOKMAP_OK;
    *is_duplicate = true;
    return place_read(near, first, kept, error);
}

enum tokmap_status near_duplicates_finish(const struct near_duplicates *near, const struct place_counter *all,
                                          uint64_t *file_bytes, struct tokmap_error *error)
{
    const struct place_counter *before = &near->counter;
    *file_bytes = (uint64_t)near->file.blocks * CHAIN_BLOCK;
    if (before->documents == all->documents && before->digest == all->digest)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_MISMATCH, NULL, TOKMAP_NO_OFFSET,
                     "the inputs have changed while they were read: the search for near-duplicates found %" PRIu64
                     " documents, and the packing found %" PRIu64 " or others; pack inputs that do not change",
                     before->documents, all->documents);
}
