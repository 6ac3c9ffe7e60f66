/* SPDX-License-Identifier: MIT */
/*
 * unit_scan.c - see unit_scan.h. Threads compute the keys of documents and find n-grams in them; in the order of the
 * input these go to lists in memory. When it is time for it, or the lists have PART_BYTES, they become a part
 * (stage_parts.h), and are empty then. In the end the sections of all parts are appended to each other.
 *
 * Example: the documents a b c d e f are scanned, and the keys of a, c, and d belong to section 7. After c the lists
 * become part 0, whose section 7 is a c, and the process is killed after e. The next one begins with d, since the state
 * of part 0 says where that is; its last part has d in section 7. So section 7 of the scan is a c d, wherever parts
 * end.
 */
#include "unit_scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus/corpus_range.h"
#include "document_bands.h"
#include "encode/ordered_workers.h"
#include "platform/os.h"
#include "work/stage_parts.h"

#define BATCH_MOST ((uint64_t)256 << 10)
#define BATCH_LEAST ((uint64_t)32 << 10)
#define BATCHES_ALL ((uint64_t)8 << 20)
#define PART_BYTES ((uint64_t)32 << 20) /* most bytes of all lists, but for one batch */

/* The sections of a part: those of the scan but the first one, and the state. */
#define PART_SECTIONS ((uint64_t)SCAN_SECTIONS)
#define PART_LISTS (PART_SECTIONS - 1)
#define PART_OF(section) ((section)-1)

/* Facts about a document that the threads find. */
struct judged {
    struct hash128 key;
    uint64_t ngram; /* or NGRAM_NONE */
};

struct scan_item {
    struct bytes_buffer judged, found; /* found: of each document, what document_bands_add() appends */
    struct document_bands bands;
    struct ngram_search search;
};

/* State from which a process continues after a part. */
struct scan_state {
    struct unit_scan found;
    struct corpus_place place;
    uint64_t progress; /* stored bytes of the inputs, up to here */
    uint64_t complete; /* all inputs are read */
};

struct scan {
    const struct unit_scan_options *options;
    struct scan_item *items;
    struct corpus_counts counts; /* the lines of all processes are used */
    struct scan_state state;
    struct bytes_buffer lists[PART_LISTS]; /* at PART_OF() of their sections */
    uint64_t list_bytes;
    uint64_t cut_ns; /* when the last part ended */
    struct stage_parts parts;
    struct band_signer signer;
};

/* ---- documents ---- */

static enum tokmap_status scan_process(void *self, struct work_item *item, struct tokmap_error *error)
{
    const struct scan *scan = self;
    const struct ngram_table *ngrams = scan->options->stage.drop->ngrams;
    struct scan_item *own = &scan->items[item->index];
    enum tokmap_status status = TOKMAP_OK;
    own->judged.count = own->found.count = 0;
    if (scan->options->listed)
        listed_documents_remove(scan->options->listed, &item->batch);
    for (uint64_t i = 0; i < item->batch.document_count && !status; i++) {
        const struct corpus_document *document = &item->batch.documents[i];
        struct judged judged = {.key = document_key(document), .ngram = NGRAM_NONE};
        assert(!document->resumed && !document->unfinished);
        if (ngrams)
            status = ngram_table_find(ngrams, &own->search, document->text, document->bytes, document->second,
                                      document->second_bytes, &judged.ngram, error);
        if (!status && !bytes_append(&own->judged, &judged, sizeof judged))
            status = error_set_memory(error, "the keys of documents", own->judged.count);
        if (!status && scan->options->stage.drop->minhash)
            status = document_bands_add(&scan->signer, &own->bands, document, judged.ngram != NGRAM_NONE, &own->found,
                                        error);
    }
    return status;
}

static enum tokmap_status list_add(struct scan *scan, uint64_t section, const void *bytes, size_t count,
                                   struct tokmap_error *error)
{
    if (!bytes_append(&scan->lists[PART_OF(section)], bytes, count))
        return error_set_memory(error, "the keys of documents", scan->list_bytes);
    scan->list_bytes += count;
    return TOKMAP_OK;
}

static enum tokmap_status path_add(struct scan *scan, const char *path, struct tokmap_error *error)
{
    const uint32_t bytes = (uint32_t)strlen(path);
    const enum tokmap_status status = list_add(scan, SCAN_PATHS, &bytes, sizeof bytes, error);
    return status ? status : list_add(scan, SCAN_PATHS, path, bytes, error);
}

/* Adds the place of a document, and its bands, which are at *at. */
static enum tokmap_status bands_add(struct scan *scan, const struct document_place *place, const uint8_t **at,
                                    struct tokmap_error *error)
{
    const struct scan_place own = {.record = place->record, .input = place->input};
    const uint64_t document = scan->state.found.places.documents - 1;
    const bool any = *(*at)++;
    if (document >= UINT32_MAX - 1)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "there are more than 2^32 documents; search fewer for near-duplicates at once");
    enum tokmap_status status = list_add(scan, SCAN_PLACES, &own, sizeof own, error);
    for (uint32_t i = 0; any && i < scan->signer.form.bands && !status; i++) {
        struct hash128 band;
        memcpy(&band, *at, sizeof band);
        *at += sizeof band;
        const struct band_record record = {band.low, (uint32_t)band.high, (uint32_t)document};
        status = list_add(scan, SCAN_FIRST + (band.high >> 56), &record, sizeof record, error);
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
        place_counter_next(&scan->state.found.places, part, document->record, judged->key, &place, &is_new, error);
    if (!status && is_new)
        status = path_add(scan, part->path, error);
    if (!status && scan->options->stage.drop->minhash)
        status = bands_add(scan, &place, at, error);
    struct stage_record record = {.record = place.record, .input = place.input};
    if (!status && judged->ngram != NGRAM_NONE) {
        record.first = judged->ngram;
        record.second = STAGE_EXCLUDED;
        return list_add(scan, SCAN_EXCLUDED, &record, sizeof record, error);
    }
    if (status || !scan->options->stage.drop->duplicates)
        return status;
    record.first = judged->key.low;
    record.second = judged->key.high;
    return list_add(scan, SCAN_FIRST + (judged->key.high >> 56), &record, sizeof record, error);
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

/* ---- parts ---- */

static enum tokmap_status part_write(struct scan *scan, bool stays, struct tokmap_error *error)
{
    struct stage_writer *writer;
    enum tokmap_status status = stage_part_open(&scan->parts, &writer, error);
    for (uint64_t i = 0; i < PART_LISTS && !status; i++) {
        if (i)
            status = stage_writer_next(writer, error);
        if (!status)
            status = stage_writer_add(writer, scan->lists[i].bytes, scan->lists[i].count, error);
        bytes_free(&scan->lists[i]);
    }
    scan->state.found.lines = scan->counts.lines;
    if (status)
        stage_writer_free(writer);
    else
        status = stage_part_commit(&scan->parts, writer, stays, &scan->state, sizeof scan->state,
                                   scan->options->stage.sync, error);
    scan->list_bytes = 0;
    scan->cut_ns = os_clock_ns();
    return status;
}

static enum tokmap_status scan_committed(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct scan *scan = self;
    const uint64_t every = scan->options->stage.checkpoint_ns;
    const bool fit = !item->batch.place.unfit;
    const bool due = fit && every && os_clock_ns() - scan->cut_ns >= every;
    scan->state.place = item->batch.place;
    scan->state.progress = item->batch.progress;
    return due || scan->list_bytes >= PART_BYTES ? part_write(scan, fit, error) : TOKMAP_OK;
}

/* Makes the reader begin where the unit, or the work that is left of it, begins. */
static enum tokmap_status reading_begin(struct scan *scan, struct corpus *corpus, struct tokmap_error *error)
{
    uint64_t carried;
    if (scan->parts.count)
        return corpus_resume(corpus, &scan->state.place, &carried, error);
    const struct corpus_range *range = &scan->options->corpus.range;
    return range->begin && !range->groups ? corpus_range_begin(corpus, &carried, error) : TOKMAP_OK;
}

static enum tokmap_status inputs_read(struct scan *scan, const struct scan_inputs *inputs, struct tokmap_error *error)
{
    const struct unit_scan_options *options = scan->options;
    struct ordered_workers *workers = NULL;
    struct ordered_workers_options reading = {.name = "tokmap-scan",
                                              .threads = options->threads,
                                              .corpus = options->corpus,
                                              .counts = &scan->counts,
                                              .other_output = options->other_output,
                                              .process = scan_process,
                                              .commit = scan_commit,
                                              .committed = scan_committed,
                                              .self = scan,
                                              .progress = options->compared,
                                              .stop = options->stage.stop,
                                              .user = options->stage.user};
    reading.corpus.column_count = 0;
    reading.corpus.cut_anywhere = false;
    reading.corpus.cut = NULL;
    reading.corpus.batch_bytes = min64(BATCH_MOST, max64(BATCH_LEAST, BATCHES_ALL / options->threads));
    enum tokmap_status status = ordered_workers_new(&workers, &reading, inputs->operands, inputs->count, error);
    const uint32_t items = workers ? ordered_workers_item_count(workers) : 0;
    if (!status && !(scan->items = calloc(items, sizeof *scan->items)))
        status = error_set_memory(error, "the keys of documents", items * sizeof *scan->items);
    if (!status && inputs->prepare)
        status = inputs->prepare(inputs->self, ordered_workers_corpus(workers), error);
    if (!status)
        status = reading_begin(scan, ordered_workers_corpus(workers), error);
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
    return status;
}

/* ---- the file ---- */

/* Writes the file from its section `section` on. */
static enum tokmap_status sections_write(struct scan *scan, struct stage_writer *writer, uint64_t section,
                                         struct tokmap_error *error)
{
    const uint64_t every = scan->options->stage.checkpoint_ns;
    struct unit_scan totals = scan->state.found;
    uint64_t kept_ns = os_clock_ns();
    enum tokmap_status status = TOKMAP_OK;
    totals.places.input = 0; /* it is about the reading */
    for (uint64_t i = section; i < SCAN_SECTIONS && !status; i++) {
        const struct bytes_buffer *list = &scan->lists[i == SCAN_TOTALS ? 0 : PART_OF(i)];
        if (i > section)
            status = stage_writer_next(writer, error);
        if (!status && scan->parts.count && every && os_clock_ns() - kept_ns >= every) {
            status = stage_writer_keep(writer, scan->parts.token, scan->options->stage.sync, error);
            kept_ns = os_clock_ns();
        }
        if (!status && scan->options->stage.stop && scan->options->stage.stop(scan->options->stage.user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        if (status)
            break;
        status = i == SCAN_TOTALS    ? stage_writer_add(writer, &totals, sizeof totals, error)
                 : scan->parts.count ? stage_parts_copy(&scan->parts, PART_OF(i), writer, error)
                                     : stage_writer_add(writer, list->bytes, list->count, error);
    }
    return status;
}

static enum tokmap_status file_write(struct scan *scan, struct stage_writer *writer, struct tokmap_error *error)
{
    uint64_t section = 0, bytes = 0;
    enum tokmap_status status = TOKMAP_OK;
    if (scan->parts.count && !scan->state.complete) {
        scan->state.complete = true;
        status = part_write(scan, true, error);
    }
    scan->state.found.lines = scan->parts.count ? scan->state.found.lines : scan->counts.lines;
    if (!status)
        status = stage_writer_resume(writer, scan->parts.token, &section, &bytes, error);
    if (!status && bytes) /* only whole sections are kept */
        status = stage_corrupt(&scan->parts.id, error);
    if (!status)
        status = sections_write(scan, writer, section, error);
    if (!status)
        status = stage_writer_commit(writer, scan->options->stage.sync, error);
    if (!status)
        stage_parts_remove(&scan->parts);
    return status;
}

enum tokmap_status unit_scan_run(const struct unit_scan_options *options, const struct scan_inputs *inputs,
                                 const struct stage_id *id, uint64_t *before, struct tokmap_error *error)
{
    struct stage_writer *writer = NULL;
    struct scan *scan = calloc(1, sizeof *scan);
    if (!scan)
        return error_set_memory(error, "the keys of documents", sizeof *scan);
    _Static_assert(sizeof scan->state <= STAGE_STATE_MOST, "the state of a part");
    scan->options = options;
    scan->cut_ns = os_clock_ns();
    enum tokmap_status status =
        options->stage.drop->minhash ? band_signer_make(&scan->signer, options->stage.drop->minhash, error) : TOKMAP_OK;
    if (!status)
        status = stage_writer_reopen(&writer, id, error);
    if (!status)
        status = stage_parts_find(&scan->parts, id, PART_SECTIONS, &scan->state, sizeof scan->state, error);
    scan->counts.lines = scan->state.found.lines;
    *before = scan->state.progress;
    if (!status && inputs->count && !scan->state.complete)
        status = inputs_read(scan, inputs, error);
    if (!status)
        status = file_write(scan, writer, error);
    stage_writer_free(writer);
    band_signer_free(&scan->signer);
    for (uint64_t i = 0; i < PART_LISTS; i++)
        bytes_free(&scan->lists[i]);
    free(scan);
    return status;
}
