/*
 * unit_scan.c - see unit_scan.h. Threads compute the keys of documents and find n-grams in them; in the order of the
 * input these go to lists in a file without a name (block_chain.h), which are copied to the sections in the end.
 */
#include "unit_scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "block_chain.h"
#include "common/bytes.h"
#include "common/error.h"
#include "corpus/corpus_range.h"
#include "document_bands.h"
#include "ordered_workers.h"

#define BATCH_MOST ((uint64_t)256 << 10)
#define BATCH_LEAST ((uint64_t)32 << 10)
#define BATCHES_ALL ((uint64_t)8 << 20)

/* What the threads find of a document. */
struct judged {
    struct hash128 key;
    uint64_t ngram; /* or NGRAM_NONE */
};

struct scan_item {
    struct bytes_buffer judged, found; /* found: of each document, what document_bands_add() appends */
    struct document_bands bands;
    struct ngram_search search;
};

struct scan {
    const struct pack_options *options;
    struct scan_item *items;
    struct unit_scan found;
    struct bytes_buffer paths;
    struct block_file file;
    struct block_chain excluded, places, partitions[SCAN_PARTITIONS];
    struct band_signer signer;
};

static enum tokmap_status no_memory(uint64_t bytes, struct tokmap_error *error)
{
    return error_set_memory(error, "the keys of documents", bytes);
}

/* ---- documents ---- */

static enum tokmap_status scan_process(void *self, struct work_item *item, struct tokmap_error *error)
{
    const struct scan *scan = self;
    const struct ngram_set *ngrams = scan->options->drop->ngrams;
    struct scan_item *own = &scan->items[item->index];
    enum tokmap_status status = TOKMAP_OK;
    own->judged.count = own->found.count = 0;
    for (uint64_t i = 0; i < item->batch.document_count && !status; i++) {
        const struct corpus_document *document = &item->batch.documents[i];
        struct judged judged = {.key = document_key(document), .ngram = NGRAM_NONE};
        assert(!document->resumed && !document->unfinished);
        if (ngrams)
            status = ngram_set_find(ngrams, &own->search, document->text, document->bytes, document->second,
                                    document->second_bytes, &judged.ngram, error);
        if (!status && !bytes_append(&own->judged, &judged, sizeof judged))
            status = no_memory(own->judged.count, error);
        if (!status && scan->options->drop->minhash)
            status = document_bands_add(&scan->signer, &own->bands, document, judged.ngram != NGRAM_NONE, &own->found,
                                        error);
    }
    return status;
}

static enum tokmap_status path_add(struct scan *scan, const char *path, struct tokmap_error *error)
{
    const uint32_t bytes = (uint32_t)strlen(path);
    return bytes_append(&scan->paths, &bytes, sizeof bytes) && bytes_append(&scan->paths, path, bytes)
               ? TOKMAP_OK
               : no_memory(scan->paths.count, error);
}

/* Adds the place of a document, and its bands, which are at *at. */
static enum tokmap_status bands_add(struct scan *scan, const struct document_place *place, const uint8_t **at,
                                    struct tokmap_error *error)
{
    const struct scan_place own = {.record = place->record, .input = place->input};
    const uint64_t document = scan->found.places.documents - 1;
    const bool any = *(*at)++;
    if (document >= UINT32_MAX - 1)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "a unit has more than 2^32 documents; choose smaller ones with options.unit_bytes");
    enum tokmap_status status = block_chain_add(&scan->file, &scan->places, &own, error);
    for (uint32_t i = 0; any && i < scan->signer.form.bands && !status; i++) {
        struct hash128 band;
        memcpy(&band, *at, sizeof band);
        *at += sizeof band;
        const struct band_record record = {band.low, (uint32_t)band.high, (uint32_t)document};
        status = block_chain_add(&scan->file, &scan->partitions[band.high >> 56], &record, error);
    }
    return status;
}

static enum tokmap_status document_add(struct scan *scan, const struct corpus_part *part,
                                       const struct corpus_document *document, const struct judged *judged,
                                       const uint8_t **at, struct tokmap_error *error)
{
    struct document_place place;
    bool is_new;
    enum tokmap_status status =
        place_counter_next(&scan->found.places, part, document->record, judged->key, &place, &is_new, error);
    if (!status && is_new)
        status = path_add(scan, part->path, error);
    if (!status && scan->options->drop->minhash)
        status = bands_add(scan, &place, at, error);
    struct stage_record record = {.record = place.record, .input = place.input};
    if (!status && judged->ngram != NGRAM_NONE) {
        record.first = judged->ngram;
        record.second = STAGE_EXCLUDED;
        return block_chain_add(&scan->file, &scan->excluded, &record, error);
    }
    if (status || !scan->options->drop->duplicates)
        return status;
    record.first = judged->key.low;
    record.second = judged->key.high;
    return block_chain_add(&scan->file, &scan->partitions[judged->key.high >> 56], &record, error);
}

static enum tokmap_status scan_commit(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct scan *scan = self;
    const struct corpus_batch *batch = &item->batch;
    const uint8_t *at = scan->items[item->index].found.bytes;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        struct judged judged;
        memcpy(&judged, scan->items[item->index].judged.bytes + i * sizeof judged, sizeof judged);
        status = document_add(scan, &batch->parts[batch->documents[i].part], &batch->documents[i], &judged, &at, error);
    }
    bytes_trim(&scan->items[item->index].found);
    return status;
}

static enum tokmap_status inputs_read(struct scan *scan, const char *const *paths, uint64_t count,
                                      struct tokmap_error *error)
{
    const struct pack_options *options = scan->options;
    struct corpus_counts counts = {0};
    struct ordered_workers *workers = NULL;
    struct tokenizer_info info = {.vocabulary = options->vocabulary};
    struct ordered_workers_options reading = {.name = "tokmap-scan",
                                              .threads = options->threads,
                                              .corpus = options->corpus,
                                              .counts = &counts,
                                              .process = scan_process,
                                              .commit = scan_commit,
                                              .self = scan,
                                              .progress = options->compared,
                                              .stop = options->stop,
                                              .user = options->user};
    if (options->tokenizer)
        tokenizer_info(options->tokenizer, &info);
    reading.corpus.vocabulary = info.vocabulary;
    reading.corpus.column_count = 0;
    reading.corpus.cut_anywhere = false;
    reading.corpus.cut = NULL;
    reading.corpus.batch_bytes = min64(BATCH_MOST, max64(BATCH_LEAST, BATCHES_ALL / options->threads));
    enum tokmap_status status = ordered_workers_new(&workers, &reading, paths, count, error);
    const uint32_t items = workers ? ordered_workers_item_count(workers) : 0;
    if (!status && !(scan->items = calloc(items, sizeof *scan->items)))
        status = no_memory(items * sizeof *scan->items, error);
    if (!status && options->corpus.range.begin) {
        uint64_t carried;
        status = corpus_range_begin(ordered_workers_corpus(workers), &carried, error);
    }
    if (!status)
        status = ordered_workers_run(workers, error);
    for (uint32_t i = 0; scan->items && i < items; i++) {
        bytes_free(&scan->items[i].judged);
        bytes_free(&scan->items[i].found);
        document_bands_free(&scan->items[i].bands);
        ngram_search_free(&scan->items[i].search);
    }
    free(scan->items);
    ordered_workers_free(workers);
    scan->found.places.input = 0; /* it is about this process */
    scan->found.lines = counts.lines;
    return status;
}

/* ---- the file ---- */

/* Copies a list to the open section, and frees it. */
static enum tokmap_status list_write(struct scan *scan, struct stage_writer *writer, struct block_chain *list,
                                     struct tokmap_error *error)
{
    struct chain_reader reader = {.chain = list, .buffer_bytes = CHAIN_BLOCK};
    const void *record = NULL;
    enum tokmap_status status = block_chain_end(&scan->file, list, error);
    while (!status) {
        status = chain_reader_next(&scan->file, &reader, &record, error);
        if (status || !record)
            break;
        status = stage_writer_add(writer, record, list->record_bytes, error);
    }
    chain_reader_free(&reader);
    block_chain_free(&scan->file, list);
    return status;
}

static enum tokmap_status file_write(struct scan *scan, const struct stage_id *id, struct tokmap_error *error)
{
    struct stage_writer *writer;
    enum tokmap_status status = stage_writer_open(&writer, id, error);
    if (!status)
        status = stage_writer_add(writer, &scan->found, sizeof scan->found, error);
    if (!status)
        status = stage_writer_next(writer, error);
    if (!status)
        status = stage_writer_add(writer, scan->paths.bytes, scan->paths.count, error);
    if (!status)
        status = stage_writer_next(writer, error);
    if (!status)
        status = list_write(scan, writer, &scan->excluded, error);
    if (!status)
        status = stage_writer_next(writer, error);
    if (!status)
        status = list_write(scan, writer, &scan->places, error);
    for (uint32_t i = 0; i < SCAN_PARTITIONS && !status; i++) {
        status = stage_writer_next(writer, error);
        if (!status)
            status = list_write(scan, writer, &scan->partitions[i], error);
    }
    if (!status)
        status = stage_writer_commit(writer, scan->options->sync, error);
    stage_writer_free(writer);
    return status;
}

enum tokmap_status unit_scan_run(const struct pack_options *options, const char *const *paths, uint64_t count,
                                 const struct stage_id *id, struct tokmap_error *error)
{
    struct scan *scan = calloc(1, sizeof *scan);
    if (!scan)
        return no_memory(sizeof *scan, error);
    scan->options = options;
    block_file_init(&scan->file, id->folder);
    scan->excluded.record_bytes = sizeof(struct stage_record);
    for (uint32_t i = 0; i < SCAN_PARTITIONS; i++)
        scan->partitions[i].record_bytes =
            options->drop->minhash ? sizeof(struct band_record) : sizeof(struct stage_record);
    scan->places.record_bytes = sizeof(struct scan_place);
    enum tokmap_status status =
        options->drop->minhash ? band_signer_make(&scan->signer, options->drop->minhash, error) : TOKMAP_OK;
    if (!status && count)
        status = inputs_read(scan, paths, count, error);
    if (!status)
        status = file_write(scan, id, error);
    block_chain_free(&scan->file, &scan->excluded);
    block_chain_free(&scan->file, &scan->places);
    band_signer_free(&scan->signer);
    for (uint32_t i = 0; i < SCAN_PARTITIONS; i++)
        block_chain_free(&scan->file, &scan->partitions[i]);
    block_file_free(&scan->file);
    bytes_free(&scan->paths);
    free(scan);
    return status;
}

enum tokmap_status unit_scan_read(struct unit_scan *scan, const struct stage_id *id, struct tokmap_error *error)
{
    struct bytes_buffer bytes = {0};
    enum tokmap_status status = stage_section_load(&bytes, id, SCAN_TOTALS, sizeof *scan, error);
    if (!status && bytes.count != sizeof *scan)
        status = stage_corrupt(id, error);
    if (!status)
        memcpy(scan, bytes.bytes, sizeof *scan);
    bytes_free(&bytes);
    return status;
}
