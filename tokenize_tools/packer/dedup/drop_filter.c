/* SPDX-License-Identifier: MIT */
/*
 * drop_filter.c - see drop_filter.h.
 *
 * The keys of a batch's documents, and the n-grams in them, are computed by many threads. Then each batch waits for
 * those before it, because whether a document is a duplicate depends on all earlier ones. What follows is encoded by
 * many threads again. The list and the counts get the decisions about a batch when it is committed, so that between
 * two commits they are those of the committed batches, which the journal saves.
 *
 * The journal has no keys. A process that continues begins without a table, so it asks the stages before it packs the
 * next document.
 *
 * Example: the documents a b a c b, and room for one key in the table. At b the table is full. The stages compare all
 * five documents, and list 2, a duplicate of 0, and 4, a duplicate of 1. The work continues with document 1, and drops
 * 2 and 4. What was decided before it, with the table, is in the list as well, and is skipped there.
 */
#include "drop_filter.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"

#define AHEAD 8 /* documents whose entries of the table are on their way from memory */

/* Facts about a document before it is compared with earlier ones. */
struct judged {
    struct hash128 key;
    uint64_t ngram; /* the first excluded one, or NGRAM_NONE */
};

/* Facts about a document that are listed when its batch is committed. */
struct decided {
    const char *new_input; /* its input, if this is the first document of it; else NULL */
    struct document_place place, kept;
    uint64_t ngram;         /* of an excluded document; else NGRAM_NONE */
    bool keep, is_excluded; /* neither: a duplicate or near-duplicate of *kept */
};

/* State of one work item. */
struct drop_item {
    struct bytes_buffer judged;  /* struct judged of each document */
    struct bytes_buffer decided; /* struct decided of the documents that are dropped or begin an input */
    struct place_counter places; /* after the batch */
    struct place_counter listed; /* of the documents that stages have compared */
    struct ngram_search search;
};

struct drop_filter {
    struct drop_filter_options options;
    struct drop_item *items;
    bool tabled;                      /* duplicates are found by the table, at least at first */
    struct key_table table;           /* of all documents before, unless `known` has the answers */
    const struct drop_source *source; /* findings of the stages, of which `known` is the list */
    struct drop_list *known;          /* NULL: no stages have decided */
    struct place_counter compared;    /* of the documents of the stages, also of those of a killed process */
    struct dropped_writer *list;      /* NULL: nothing is written */
    uint64_t *ngram_numbers;          /* of each n-gram: 1 + its number in the list, or 0 */
    /* For the journal, of committed documents. */
    struct {
        struct bytes_buffer ngrams; /* u64: those in the list, in its order */
        size_t ngrams_saved;        /* bytes of them that the last save has passed on, and that are on storage */
        size_t ngrams_passed;
    } journal;
    struct place_counter places; /* of all batches that were decided */
    struct place_counter done;   /* of those that are committed */
    struct place_counter listed; /* `compared`, when the last of these was decided */
    struct drop_counts counts;   /* of those that are committed */
};

static enum tokmap_status ngrams_begin(struct drop_filter *filter, struct tokmap_error *error)
{
    struct ngram_counts counts;
    if (!filter->options.drop->ngrams)
        return TOKMAP_OK;
    ngram_table_counts(filter->options.drop->ngrams, &counts);
    filter->ngram_numbers = calloc((size_t)counts.listed, sizeof *filter->ngram_numbers);
    return filter->ngram_numbers
               ? TOKMAP_OK
               : error_set_memory(error, "the excluded n-grams", counts.listed * sizeof *filter->ngram_numbers);
}

static bool is_changed(const struct place_counter *a, const struct place_counter *b)
{
    return a->documents != b->documents || a->digest != b->digest;
}

static enum tokmap_status inputs_changed(const struct drop_filter *filter, const struct place_counter *compared,
                                         const struct place_counter *now, struct tokmap_error *error)
{
    if (filter->list)
        return error_set(error, TOKMAP_ERROR_MISMATCH, NULL, TOKMAP_NO_OFFSET,
                         "the inputs have changed while they were read: the search for duplicates found %" PRIu64
                         " documents, and the packing found %" PRIu64
                         " or others; pack inputs that do not change, and begin again with --no-resume",
                         compared->documents, now->documents);
    return error_set(error, TOKMAP_ERROR_MISMATCH, filter->source->folder, TOKMAP_NO_OFFSET,
                     "the inputs have changed since they were read for the first time: the search found %" PRIu64
                     " documents in unit %" PRIu64 ", and the packing found %" PRIu64
                     " or others; remove this folder, and begin again with inputs that do not change",
                     compared->documents, filter->source->unit, now->documents);
}

/* Takes what stages have found. continues: some documents were decided before. */
static enum tokmap_status known_begin(struct drop_filter *filter, const struct drop_source *found, bool continues,
                                      struct tokmap_error *error)
{
    struct drop_source source = *found;
    const struct stage_id scan = scan_file_id(source.folder, source.key, source.unit);
    filter->source = found;
    /* The documents before were dropped by what a killed process has found, which may be gone since then. */
    if (filter->compared.documents && is_changed(&filter->compared, source.places))
        return inputs_changed(filter, &filter->compared, source.places, error);
    filter->compared = *source.places;
    filter->counts.by_minhash = filter->options.drop->minhash != NULL;
    filter->counts.read_twice = true;
    source.continues = continues;
    const enum tokmap_status status = stage_bytes_from(&scan, SCAN_PLACES, &filter->counts.file_bytes, error);
    return status ? status : drop_list_open(&filter->known, &source, error);
}

enum tokmap_status drop_filter_new(struct drop_filter **filter, const struct drop_filter_options *options,
                                   struct tokmap_error *error)
{
    struct drop_filter *made = *filter = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "what is left out", sizeof *made);
    made->options = *options;
    made->items = calloc(options->items, sizeof *made->items);
    if (!made->items)
        return error_set_memory(error, "what is left out", options->items * sizeof *made->items);
    made->tabled = options->drop->duplicates && !options->source;
    key_table_init(&made->table, options->compare ? options->drop->memory : UINT64_MAX);
    if (options->resume) { /* the numbers of the killed process */
        made->places = made->done = options->resume->places;
        made->counts = options->resume->counts;
        made->listed = made->compared = options->resume->listed;
    }
    assert(options->source || !options->drop->minhash);
    enum tokmap_status status = options->name || !options->source ? ngrams_begin(made, error) : TOKMAP_OK;
    if (!status && options->name && options->resume)
        status = dropped_writer_reopen(&made->list, options->name, &options->resume->list, error);
    else if (!status && options->name)
        status = dropped_writer_open(&made->list, options->name, error);
    if (!status && options->source)
        status = known_begin(made, options->source, options->resume != NULL, error);
    return status;
}

void drop_filter_leave(struct drop_filter *filter)
{
    if (!filter)
        return;
    dropped_writer_leave(filter->list);
    filter->list = NULL;
    drop_filter_free(filter);
}

void drop_filter_free(struct drop_filter *filter)
{
    if (!filter)
        return;
    for (uint32_t i = 0; filter->items && i < filter->options.items; i++) {
        bytes_free(&filter->items[i].judged);
        bytes_free(&filter->items[i].decided);
        ngram_search_free(&filter->items[i].search);
    }
    free(filter->items);
    free(filter->ngram_numbers);
    bytes_free(&filter->journal.ngrams);
    key_table_free(&filter->table);
    drop_list_free(filter->known);
    dropped_writer_free(filter->list);
    free(filter);
}

/* ---- documents ---- */

/* Computes what does not depend on other documents. */
static enum tokmap_status batch_judge(const struct drop_filter *filter, struct drop_item *of,
                                      const struct corpus_batch *batch, struct tokmap_error *error)
{
    const struct drop_filter_options *options = &filter->options;
    const struct ngram_table *ngrams = options->source ? NULL : options->drop->ngrams;
    enum tokmap_status status = TOKMAP_OK;
    of->judged.count = 0;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        const struct corpus_document *document = &batch->documents[i];
        struct judged judged = {.ngram = NGRAM_NONE};
        if (filter->tabled || options->source)
            judged.key = document_key(document);
        if (ngrams)
            status = ngram_table_find(ngrams, &of->search, document->text, document->bytes, document->second,
                                      document->second_bytes, &judged.ngram, error);
        if (!status && !bytes_append(&of->judged, &judged, sizeof judged))
            status = error_set_memory(error, "the keys of a batch", batch->document_count * sizeof judged);
    }
    return status;
}

/* Gives an n-gram its number in the list. */
static bool ngram_number(struct drop_filter *filter, uint64_t ngram)
{
    if (!bytes_append(&filter->journal.ngrams, &ngram, sizeof ngram))
        return false;
    filter->ngram_numbers[ngram] = filter->journal.ngrams.count / sizeof ngram;
    return true;
}

static enum tokmap_status excluded_list(struct drop_filter *filter, const struct document_place *place, uint64_t ngram,
                                        struct tokmap_error *error)
{
    struct ngram_origin origin;
    enum tokmap_status status = TOKMAP_OK;
    filter->counts.excluded++;
    if (!filter->list)
        return TOKMAP_OK;
    if (!filter->ngram_numbers[ngram]) {
        ngram_table_origin(filter->options.drop->ngrams, ngram, &origin);
        status = dropped_writer_ngram(filter->list, origin.text, origin.bytes, origin.path, origin.record, error);
        if (!status && !ngram_number(filter, ngram))
            status = error_set_memory(error, "the list of n-grams", filter->journal.ngrams.count);
    }
    return status ? status
                  : dropped_writer_excluded(filter->list, place->input, place->record, filter->ngram_numbers[ngram] - 1,
                                            error);
}

static enum tokmap_status duplicate_list(struct drop_filter *filter, const struct document_place *place,
                                         const struct document_place *kept, struct tokmap_error *error)
{
    const bool near = filter->options.drop->minhash != NULL;
    ++*(near ? &filter->counts.near_duplicates : &filter->counts.duplicates);
    return filter->list ? dropped_writer_duplicate(filter->list, near, place->input, place->record, kept->input,
                                                   kept->record, error)
                        : TOKMAP_OK;
}

/* ---- duplicates ---- */

/* Lets stages find the duplicates, because the table has no room. END: the work has failed elsewhere. */
static enum tokmap_status table_replace(struct drop_filter *filter, struct ordered_workers *workers,
                                        struct work_item *item, struct tokmap_error *error)
{
    const struct drop_source *found;
    if (!ordered_workers_wait_turn(workers, item))
        return TOKMAP_END;
    key_table_free(&filter->table);
    const enum tokmap_status status = filter->options.compare(filter->options.self, &found, error);
    return status ? status : known_begin(filter, found, true, error);
}

/* Asks the table about a document. *is_known: it has an answer. */
static enum tokmap_status answer_find(struct drop_filter *filter, struct hash128 key, struct decided *decided,
                                      bool *is_duplicate, bool *is_known, struct tokmap_error *error)
{
    const struct document_place *place = &decided->place, *kept = &decided->kept;
    *is_known = true;
    switch (key_table_find(&filter->table, key, place, &decided->kept)) {
    case KEY_FOUND:
        *is_duplicate = true;
        if (kept->input < place->input || (kept->input == place->input && kept->record < place->record))
            return TOKMAP_OK;
        return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                         "the journal of the unfinished work is damaged; start over with --no-resume");
    case KEY_ADDED:
        return TOKMAP_OK;
    case KEY_NO_MEMORY:
        return error_set_memory(error, "the keys of documents", filter->table.bytes);
    case KEY_NO_ROOM:
        *is_known = false;
    }
    return TOKMAP_OK;
}

/* Says what stages have decided about a document. What is listed must be right. */
static enum tokmap_status known_find(const struct drop_filter *filter, struct decided *decided, bool *is_duplicate,
                                     struct tokmap_error *error)
{
    const struct document_place *place = &decided->place;
    struct stage_record record;
    struct ngram_counts counts = {0};
    bool is_dropped;
    const enum tokmap_status status = drop_list_find(filter->known, place, &is_dropped, &record, error);
    if (status || !is_dropped)
        return status;
    const bool is_excluded = record.second == STAGE_EXCLUDED;
    *is_duplicate = !is_excluded;
    decided->is_excluded = decided->is_excluded || is_excluded;
    if (!filter->list)
        return TOKMAP_OK;
    if (filter->options.drop->ngrams)
        ngram_table_counts(filter->options.drop->ngrams, &counts);
    if (is_excluded)
        decided->ngram = record.first;
    decided->kept = (struct document_place){.record = record.first, .input = (uint32_t)record.second};
    const bool good =
        is_excluded ? record.first < counts.listed
                    : record.second < place->input || (record.second == place->input && record.first < place->record);
    return good ? TOKMAP_OK
                : error_set(error, TOKMAP_ERROR_CORRUPT, filter->source->folder, TOKMAP_NO_OFFSET,
                            "what the stages have found is damaged; start over with --no-resume");
}

/* Says whether a document is a duplicate of one before it, or a near-duplicate, or what else stages say. */
static enum tokmap_status duplicate_find(struct drop_filter *filter, struct ordered_workers *workers,
                                         struct work_item *item, struct hash128 key, struct decided *decided,
                                         bool *is_duplicate, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (filter->tabled && !filter->known) {
        bool is_known = false;
        if (!filter->options.resume)
            status = answer_find(filter, key, decided, is_duplicate, &is_known, error);
        if (status || is_known)
            return status;
        status = table_replace(filter, workers, item, error);
    }
    return !status && filter->known ? known_find(filter, decided, is_duplicate, error) : status;
}

/* Decides about a document. */
static enum tokmap_status document_decide(struct drop_filter *filter, struct ordered_workers *workers,
                                          struct work_item *item, const struct corpus_document *document,
                                          const struct judged *judged, struct decided *decided,
                                          struct tokmap_error *error)
{
    const struct corpus_part *part = &item->batch.parts[document->part];
    bool is_new, is_duplicate = false;
    *decided = (struct decided){.ngram = judged->ngram, .is_excluded = judged->ngram != NGRAM_NONE};
    enum tokmap_status status =
        place_counter_next(&filter->places, part, document->record, judged->key, &decided->place, &is_new, error);
    if (!status)
        status = duplicate_find(filter, workers, item, judged->key, decided, &is_duplicate, error);
    if (is_new)
        decided->new_input = part->path;
    decided->keep = !decided->is_excluded && !is_duplicate;
    return status;
}

/* Decides about all documents of a batch, and removes those that are dropped. END: the work has failed elsewhere. */
static enum tokmap_status batch_decide(struct drop_filter *filter, struct drop_item *of,
                                       struct ordered_workers *workers, struct work_item *item,
                                       struct tokmap_error *error)
{
    struct corpus_batch *batch = &item->batch;
    const uint64_t count = batch->document_count;
    const bool minhash = filter->options.drop->minhash != NULL;
    uint64_t kept = 0;
    enum tokmap_status status = TOKMAP_OK;
    of->decided.count = 0;
    for (uint64_t i = 0; i < count && !status; i++) {
        for (uint64_t k = i ? i + AHEAD : 0; filter->tabled && !filter->known && k <= i + AHEAD && k < count; k++)
            key_table_prefetch(&filter->table, ((const struct judged *)(const void *)of->judged.bytes)[k].key);
        const struct corpus_document document = batch->documents[i];
        struct judged judged;
        struct decided decided;
        memcpy(&judged, of->judged.bytes + i * sizeof judged, sizeof judged);
        status = document_decide(filter, workers, item, &document, &judged, &decided, error);
        if (status)
            break;
        if ((!decided.keep || decided.new_input) && !bytes_append(&of->decided, &decided, sizeof decided))
            status = error_set_memory(error, "the documents of a batch that are dropped", of->decided.count);
        if (decided.keep)
            batch->documents[kept++] = document;
        else
            corpus_batch_leave_out(batch, &document,
                                   decided.is_excluded ? CORPUS_REASON_EXCLUDED
                                   : minhash           ? CORPUS_REASON_NEAR_DUPLICATE
                                                       : CORPUS_REASON_DUPLICATE);
    }
    of->places = filter->places;
    of->listed = filter->compared;
    batch->document_count = status ? 0 : kept;
    return status;
}

enum tokmap_status drop_filter_batch(struct drop_filter *filter, struct ordered_workers *workers,
                                     struct work_item *item, struct tokmap_error *error)
{
    struct corpus_batch *batch = &item->batch;
    struct drop_item *of = &filter->items[item->index];
    enum tokmap_status status = batch_judge(filter, of, batch, error);
    if (status)
        return status;
    if (!ordered_workers_wait_order(workers, item)) {
        batch->document_count = 0;
        return TOKMAP_OK;
    }
    status = batch_decide(filter, of, workers, item, error);
    if (!status)
        ordered_workers_pass(workers);
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

enum tokmap_status drop_filter_committed(struct drop_filter *filter, const struct work_item *item,
                                         struct tokmap_error *error)
{
    struct drop_item *of = &filter->items[item->index];
    enum tokmap_status status = TOKMAP_OK;
    for (size_t at = 0; at < of->decided.count && !status; at += sizeof(struct decided)) {
        struct decided decided;
        memcpy(&decided, of->decided.bytes + at, sizeof decided);
        if (decided.new_input && filter->list)
            status = dropped_writer_input(filter->list, decided.new_input, error);
        if (!status && decided.is_excluded)
            status = excluded_list(filter, &decided.place, decided.ngram, error);
        else if (!status && !decided.keep)
            status = duplicate_list(filter, &decided.place, &decided.kept, error);
    }
    filter->done = of->places;
    filter->listed = of->listed;
    return status;
}

/* ---- the journal ---- */

enum tokmap_status drop_filter_save(struct drop_filter *filter, struct drop_state *state, struct state_sink *sink,
                                    struct tokmap_error *error)
{
    state->places = filter->done;
    state->listed = filter->listed;
    state->counts = filter->counts;
    state->counts.documents = filter->done.documents;
    if (!filter->list)
        return TOKMAP_OK;
    if (filter->journal.ngrams.count > filter->journal.ngrams_saved)
        state_put(sink, 0, filter->journal.ngrams.bytes + filter->journal.ngrams_saved,
                  filter->journal.ngrams.count - filter->journal.ngrams_saved);
    filter->journal.ngrams_passed = filter->journal.ngrams.count;
    return dropped_writer_save(filter->list, &state->list, error);
}

enum tokmap_status drop_filter_sync(struct drop_filter *filter, struct tokmap_error *error)
{
    return filter->list ? dropped_writer_sync(filter->list, error) : TOKMAP_OK;
}

void drop_filter_saved(struct drop_filter *filter)
{
    filter->journal.ngrams_saved = filter->journal.ngrams_passed;
}

static enum tokmap_status load_failed(const struct drop_filter *filter, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, filter->options.name, TOKMAP_NO_OFFSET,
                     "the journal of the unfinished work is damaged; start over with --no-resume");
}

enum tokmap_status drop_filter_load(struct drop_filter *filter, const uint8_t *bytes, size_t count,
                                    struct tokmap_error *error)
{
    struct ngram_counts counts = {0};
    bool good = filter->options.drop->ngrams && filter->list && count % sizeof(uint64_t) == 0;
    if (good)
        ngram_table_counts(filter->options.drop->ngrams, &counts);
    for (size_t at = 0; at < count && good; at += sizeof(uint64_t)) {
        const uint64_t ngram = load64(bytes + at);
        good = ngram < counts.listed && !filter->ngram_numbers[ngram];
        if (good && !ngram_number(filter, ngram))
            return error_set_memory(error, "the list of n-grams", filter->journal.ngrams.count);
    }
    filter->journal.ngrams_saved = filter->journal.ngrams.count;
    return good ? TOKMAP_OK : load_failed(filter, error);
}

/* ---- the end ---- */

enum tokmap_status drop_filter_check(struct drop_filter *filter, struct tokmap_error *error)
{
    if ((filter->known || filter->compared.documents) && is_changed(&filter->compared, &filter->places))
        return inputs_changed(filter, &filter->compared, &filter->places, error);
    return filter->known ? drop_list_end(filter->known, error) : TOKMAP_OK;
}

enum tokmap_status drop_filter_finish(struct drop_filter *filter, struct drop_counts *counts,
                                      struct tokmap_error *error)
{
    filter->counts.documents = filter->places.documents;
    *counts = filter->counts;
    return filter->list ? dropped_writer_finish(filter->list, filter->counts.documents, filter->options.sync, error)
                        : TOKMAP_OK;
}

struct dropped_writer *drop_filter_list(struct drop_filter *filter)
{
    return filter->list;
}
