/* SPDX-License-Identifier: MIT */
/* documents.c - finds documents and their origins by the dataset's numbers for tokens and documents. */
#include "documents.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset_foreign.h"
#include "open_shards.h"
#include "opened_dataset.h"

uint64_t dataset_shard_of(const struct tokmap_dataset *dataset, uint64_t token, uint64_t hint)
{
    assert(dataset->shard_count && token < dataset->tokens);
    if (hint < dataset->shard_count &&
        token - dataset->slots[hint].place.first_token < dataset->slots[hint].place.tokens)
        return hint;
    /* Empty shards can begin at the same token. */
    return last_at_most(&dataset->slots->place.first_token, sizeof *dataset->slots, dataset->shard_count, token);
}

uint64_t dataset_shard_of_document(const struct tokmap_dataset *dataset, uint64_t document)
{
    assert(dataset->shard_count && document < dataset->documents);
    return last_at_most(&dataset->slots->place.first_document, sizeof *dataset->slots, dataset->shard_count, document);
}

/* ---- one shard, or the part of it that its dataset holds ---- */

/*
 * The index (or the functions of a foreign file) knows the whole file. Each function here asks it with numbers of the
 * file, and brings the answer into the part: a bound before the part becomes its start, a bound behind it its end.
 */

bool dataset_documents_unknown(const struct tokmap_dataset *dataset)
{
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        if (dataset->slots[i].place.tokens && !dataset->slots[i].place.documents)
            return true;
    return false;
}

static enum tokmap_status contradiction(const struct shard *shard, uint64_t document, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, shard->index_path, TOKMAP_NO_OFFSET,
                     "the ends of documents near document %" PRIu64
                     " contradict each other or the number of tokens; run `tokmap verify` on it, and restore the file",
                     document);
}

static enum tokmap_status unknown(const struct shard *shard, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, shard->store.path, TOKMAP_NO_OFFSET,
                     "where the documents of this file are is not recorded; run `tokmap index` on it");
}

/* ---- the whole file ---- */

/* Finds the bounds of a document of a foreign file, and compares them with each other and with the number of tokens. */
static enum tokmap_status foreign_document(const struct shard *shard, uint64_t number, uint64_t *start, uint64_t *end,
                                           struct tokmap_error *error)
{
    const struct section_shard *head = &shard->index.shard;
    *start = 0;
    enum tokmap_status status = number ? shard->foreign.end(shard->foreign.user, number - 1, start, error) : TOKMAP_OK;
    if (!status)
        status = shard->foreign.end(shard->foreign.user, number, end, error);
    if (!status && (*start > *end || *end > head->tokens || (number == head->documents - 1 && *end != head->tokens)))
        status = contradiction(shard, number, error);
    return status;
}

static enum tokmap_status file_document(const struct shard *shard, uint64_t number, uint64_t *start, uint64_t *end,
                                        struct tokmap_error *error)
{
    assert(number < shard->index.shard.documents);
    return shard->foreign.end ? foreign_document(shard, number, start, end, error)
                              : index_document(&shard->index, number, start, end, error);
}

/* Finds the first document of a foreign file that ends after the token. */
static enum tokmap_status file_document_at(const struct shard *shard, uint64_t token, uint64_t *number, uint64_t *start,
                                           uint64_t *end, struct index_part *part, struct tokmap_error *error)
{
    if (!shard->index.shard.documents)
        return unknown(shard, error);
    if (!shard->foreign.end)
        return index_document_at(&shard->index, token, number, start, end, part, error);
    uint64_t first = 0, last = shard->index.shard.documents - 1;
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;
        enum tokmap_status status = shard->foreign.end(shard->foreign.user, middle, end, error);
        if (status)
            return status;
        if (*end > token)
            last = middle;
        else
            first = middle + 1;
    }
    *number = first;
    enum tokmap_status status = foreign_document(shard, first, start, end, error);
    return !status && (token < *start || token >= *end) ? contradiction(shard, first, error) : status;
}

/* ---- the part ---- */

/* Brings the bounds of a document of the file into the part. */
static enum tokmap_status into_part(const struct shard *shard, uint64_t number, uint64_t *start, uint64_t *end,
                                    struct tokmap_error *error)
{
    const uint64_t first = shard->place.skipped_tokens, behind = first + shard->place.tokens;
    if (*start > behind || *end < first)
        return contradiction(shard, number, error);
    *start = max64(*start, first) - first;
    *end = min64(*end, behind) - first;
    return TOKMAP_OK;
}

/* Finds the tokens [*start, *end) of document `number` (< documents). Statuses: OK, ERROR_CORRUPT. */
static enum tokmap_status shard_document(const struct shard *shard, uint64_t number, uint64_t *start, uint64_t *end,
                                         struct tokmap_error *error)
{
    number += shard->place.skipped_documents;
    const enum tokmap_status status = file_document(shard, number, start, end, error);
    return status ? status : into_part(shard, number, start, end, error);
}

/* Finds the document that holds token `token` (< tokens), and its bounds. Statuses: OK, ERROR_CORRUPT,
 * ERROR_UNSUPPORTED (documents are unknown). */
static enum tokmap_status shard_document_at(const struct shard *shard, uint64_t token, uint64_t *number,
                                            uint64_t *start, uint64_t *end, struct index_part *part,
                                            struct tokmap_error *error)
{
    assert(token < shard->place.tokens);
    enum tokmap_status status =
        file_document_at(shard, shard->place.skipped_tokens + token, number, start, end, part, error);
    if (!status)
        status = into_part(shard, *number, start, end, error);
    if (!status && *number - shard->place.skipped_documents >= shard->place.documents)
        status = contradiction(shard, *number, error);
    *number -= shard->place.skipped_documents;
    return status;
}

enum tokmap_status shard_is_cut(const struct shard *shard, bool *cut, struct tokmap_error *error)
{
    uint64_t start, end;
    const struct shard_place *place = &shard->place;
    *cut = false;
    if (!place->documents)
        return TOKMAP_OK;
    const enum tokmap_status status =
        file_document(shard, place->skipped_documents + place->documents - 1, &start, &end, error);
    *cut = !status && end > place->skipped_tokens + place->tokens;
    return status;
}

static enum tokmap_status foreign_ends(const struct shard *shard, uint64_t number, uint64_t least, uint64_t last,
                                       uint64_t shift, uint64_t *ends, uint64_t capacity, uint64_t *used,
                                       struct tokmap_error *error)
{
    uint64_t before = 0;
    enum tokmap_status status =
        number ? shard->foreign.end(shard->foreign.user, number - 1, &before, error) : TOKMAP_OK;
    for (uint64_t i = number; !status && i < shard->index.shard.documents; i++) {
        uint64_t end;
        status = shard->foreign.end(shard->foreign.user, i, &end, error);
        if (status)
            break;
        if (end < before || end < least || end > shard->index.shard.tokens)
            return contradiction(shard, i, error);
        if (end > last)
            break;
        if (end != before) {
            if (*used < capacity)
                ends[*used] = end + shift;
            ++*used;
        }
        before = end;
    }
    return status;
}

/* Visits the ends of documents, from document `number` on, that are at most `last`; index_ends() has the rest.
 * Documents must be known. Statuses: OK, ERROR_CORRUPT. */
static enum tokmap_status shard_ends(const struct shard *shard, uint64_t number, uint64_t least, uint64_t last,
                                     uint64_t shift, uint64_t *ends, uint64_t capacity, uint64_t *used,
                                     struct index_part *part, struct tokmap_error *error)
{
    const uint64_t skipped = shard->place.skipped_tokens;
    const uint64_t most = min64(last, shard->place.tokens) + skipped;
    const enum tokmap_status status =
        (shard->foreign.end) ? foreign_ends(shard, number + shard->place.skipped_documents, least + skipped, most,
                                            shift - skipped, ends, capacity, used, error)
                             : index_ends(&shard->index, number + shard->place.skipped_documents, least + skipped, most,
                                          shift - skipped, ends, capacity, used, part, error);
    if (!status && shard->place.cut && last >= shard->place.tokens) {
        if (*used < capacity)
            ends[*used] = shard->place.tokens + shift;
        ++*used;
    }
    return status;
}

static enum tokmap_status foreign_walk(const struct shard *shard, struct index_walk *walk, uint64_t shift,
                                       uint64_t *ends, uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    *used = 0;
    for (; *used < capacity && walk->document < walk->documents; walk->document++) {
        uint64_t end;
        const enum tokmap_status status = shard->foreign.end(shard->foreign.user, walk->document, &end, error);
        if (status)
            return status;
        if (end < walk->before || end > shard->index.shard.tokens)
            return contradiction(shard, walk->document, error);
        end = min64(end, walk->end);
        ends[*used] = end + shift;
        *used += end != walk->before;
        walk->before = end;
    }
    if (walk->document == walk->documents && walk->before != walk->end)
        return contradiction(shard, walk->document ? walk->document - 1 : 0, error);
    return TOKMAP_OK;
}

/* Starts a walk over all documents of the shard. Statuses: OK, ERROR_UNSUPPORTED (documents are unknown). */
static enum tokmap_status shard_walk_begin(const struct shard *shard, struct index_walk *walk,
                                           struct tokmap_error *error)
{
    const uint64_t document = shard->place.skipped_documents, token = shard->place.skipped_tokens;
    if (shard->place.tokens && !shard->place.documents)
        return unknown(shard, error);
    if (shard->foreign.end)
        *walk = (struct index_walk){document, 0, token, document + shard->place.documents, token + shard->place.tokens};
    else
        return index_walk_begin(&shard->index, document, document + shard->place.documents, token,
                                token + shard->place.tokens, walk, error);
    return TOKMAP_OK;
}

/* Continues it: index_walk_ends() has the rest; ends are token numbers of the dataset. Statuses: OK, ERROR_CORRUPT. */
static enum tokmap_status shard_walk_ends(const struct shard *shard, struct index_walk *walk, uint64_t *ends,
                                          uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    const uint64_t shift = shard->place.first_token - shard->place.skipped_tokens;
    return shard->foreign.end ? foreign_walk(shard, walk, shift, ends, capacity, used, error)
                              : index_walk_ends(&shard->index, walk, shift, ends, capacity, used, error);
}

enum tokmap_status dataset_no_room(struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                     "the dataset or the place for the result is NULL");
}

enum tokmap_status dataset_range_check(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                       struct tokmap_error *error)
{
    if (first <= dataset->tokens && count <= dataset->tokens - first)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                     "%" PRIu64 " tokens from token %" PRIu64 " on exceed the dataset, which has %" PRIu64 " tokens",
                     count, first, dataset->tokens);
}

static enum tokmap_status no_document(const struct tokmap_dataset *dataset, uint64_t number, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                     "document %" PRIu64 " does not exist: the dataset has %" PRIu64 " documents, counted from 0",
                     number, dataset->documents);
}

static enum tokmap_status no_numbers(const struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, dataset->name, TOKMAP_NO_OFFSET,
                     "the documents of this dataset have no numbers, because its files do not record where documents "
                     "are; run `tokmap index` on it once");
}

static void synthetic_document(const struct tokmap_dataset *dataset, uint64_t number, struct tokmap_document *document)
{
    /* A part has the tokens of its first and last document that are in it. */
    const uint64_t first = dataset->skipped_tokens, whole = number + dataset->skipped_documents;
    const uint64_t start = max64(synthetic_start(dataset->synthetic, whole), first) - first;
    const uint64_t end = min64(synthetic_end(dataset->synthetic, whole) - first, dataset->tokens);
    *document = (struct tokmap_document){number, start, end - start, 0};
}

enum tokmap_status dataset_document(const struct tokmap_dataset *dataset, uint64_t number,
                                    struct tokmap_document *document, struct tokmap_error *error)
{
    if (dataset->documents_unknown)
        return no_numbers(dataset, error);
    if (number >= dataset->documents)
        return no_document(dataset, number, error);
    if (dataset->synthetic) {
        synthetic_document(dataset, number, document);
        return TOKMAP_OK;
    }
    uint64_t shard = dataset_shard_of_document(dataset, number), start, end;
    const struct shard_place *place = &dataset->slots[shard].place;
    const struct shard *from;
    enum tokmap_status status = shard_hold(dataset, shard, &from, error);
    if (status)
        return status;
    status = shard_document(from, number - place->first_document, &start, &end, error);
    shard_release(dataset, shard);
    if (!status)
        *document = (struct tokmap_document){number, place->first_token + start, end - start, shard};
    return status;
}

enum tokmap_status tokmap_dataset_document(const struct tokmap_dataset *dataset, uint64_t number,
                                           struct tokmap_document *document, struct tokmap_error *error)
{
    return dataset && document ? dataset_document(dataset, number, document, error) : dataset_no_room(error);
}

enum tokmap_status dataset_document_at(const struct tokmap_dataset *dataset, uint64_t token,
                                       struct tokmap_document *document, struct tokmap_error *error)
{
    if (token >= dataset->tokens)
        return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                         "token %" PRIu64 " does not exist: the dataset has %" PRIu64 " tokens, counted from 0", token,
                         dataset->tokens);
    if (dataset->synthetic) {
        const uint64_t number = synthetic_document_at(dataset->synthetic, dataset->skipped_tokens + token);
        synthetic_document(dataset, number - dataset->skipped_documents, document);
        return TOKMAP_OK;
    }
    if (dataset->documents_unknown)
        return no_numbers(dataset, error);
    uint64_t shard = dataset_shard_of(dataset, token, 0), number, start, end;
    const struct shard_place *place = &dataset->slots[shard].place;
    const struct shard *from;
    enum tokmap_status status = shard_hold(dataset, shard, &from, error);
    if (status)
        return status;
    status = shard_document_at(from, token - place->first_token, &number, &start, &end, NULL, error);
    shard_release(dataset, shard);
    if (!status)
        *document =
            (struct tokmap_document){place->first_document + number, place->first_token + start, end - start, shard};
    return status;
}

enum tokmap_status tokmap_dataset_document_at(const struct tokmap_dataset *dataset, uint64_t token,
                                              struct tokmap_document *document, struct tokmap_error *error)
{
    return dataset && document ? dataset_document_at(dataset, token, document, error) : dataset_no_room(error);
}

enum tokmap_status tokmap_dataset_origin(const struct tokmap_dataset *dataset, uint64_t number,
                                         struct tokmap_origin *origin, struct tokmap_error *error)
{
    if (!dataset || !origin)
        return dataset_no_room(error);
    if (dataset->documents_unknown)
        return no_numbers(dataset, error);
    if (number >= dataset->documents)
        return no_document(dataset, number, error);
    if (dataset->synthetic)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                         "the dataset is synthetic: its documents are computed and have no source");
    const struct index *index;
    const uint64_t shard = dataset_shard_of_document(dataset, number);
    const struct shard_place *place = &dataset->slots[shard].place;
    const enum tokmap_status status = shard_index_keep(dataset, shard, &index, error);
    if (status)
        return status;
    if (!index->bytes)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, shard_held(dataset, shard)->store.path, TOKMAP_NO_OFFSET,
                         "a file of another project does not record where its documents come from");
    return index_origin(index, number - place->first_document + place->skipped_documents, origin, error);
}

/* Where a search for ends of documents is: what it has found, and what it knows of the current shard. */
struct search {
    uint64_t first, last; /* tokens of the dataset: ends in (first, last] are wanted */
    uint64_t *ends, capacity, *used;
    uint64_t number, least; /* of the current shard: the document to begin with, and the least end that counts */
    struct index_part part;
};

/* Finds the document of the current shard that holds the first token. */
static enum tokmap_status search_begin(struct search *search, const struct shard *from, uint64_t *start,
                                       struct tokmap_error *error)
{
    uint64_t begin, end;
    if (!from->place.documents)
        return TOKMAP_OK;
    const enum tokmap_status status = shard_document_at(from, search->first - from->place.first_token, &search->number,
                                                        &begin, &end, &search->part, error);
    if (!status)
        *start = from->place.first_token + begin;
    return status;
}

static enum tokmap_status search_shard(struct search *search, const struct tokmap_dataset *dataset,
                                       const struct shard *from, struct tokmap_error *error)
{
    const struct shard_place *place = &from->place;
    const uint64_t shift = place->first_token - search->first, last = search->last - place->first_token;
    return place->documents || !place->tokens
               ? shard_ends(from, search->number, search->least, last, shift, search->ends, search->capacity,
                            search->used, &search->part, error)
               : foreign_scan_ends(from, dataset->width, search->least ? search->least - 1 : 0, last, shift,
                                   search->ends, search->capacity, search->used, error);
}

static enum tokmap_status shards_ends(const struct tokmap_dataset *dataset, struct search *search, uint64_t *start,
                                      struct tokmap_error *error)
{
    uint64_t shard = dataset_shard_of(dataset, search->first, 0);
    const uint64_t first = shard;
    index_part_clear(&search->part);
    /* A shard ends where its last document ends (or is cut), so no case is needed for the border of two shards. From
     * the document that holds `first` on, ends are greater than `first`; in later shards an end can be 0, because
     * documents can be empty. */
    search->least = search->first - dataset->slots[shard].place.first_token + 1;
    for (; shard < dataset->shard_count && dataset->slots[shard].place.first_token < search->last; shard++) {
        const struct shard *from;
        enum tokmap_status status = shard_hold(dataset, shard, &from, error);
        if (status)
            return status;
        if (shard == first)
            status = search_begin(search, from, start, error);
        if (!status)
            status = search_shard(search, dataset, from, error);
        shard_release(dataset, shard);
        if (status)
            return status;
        search->number = search->least = 0;
        index_part_clear(&search->part); /* the next shard has another index */
    }
    return TOKMAP_OK;
}

/* Finds ends of documents. Each document ends in a stretch of its own (see synthetic.c), so consecutive documents need
 * no search. */
static void synthetic_ends(const struct tokmap_dataset *dataset, uint64_t first, uint64_t last, uint64_t *ends,
                           uint64_t capacity, uint64_t *used, uint64_t *start)
{
    struct tokmap_document document;
    const uint64_t whole = synthetic_document_at(dataset->synthetic, dataset->skipped_tokens + first);
    uint64_t number = whole - dataset->skipped_documents;
    synthetic_document(dataset, number, &document);
    *start = document.first_token;
    for (;;) {
        const uint64_t end = document.first_token + document.tokens;
        if (end > last)
            break;
        if (*used < capacity)
            ends[*used] = end - first;
        ++*used;
        if (++number == dataset->documents)
            break;
        synthetic_document(dataset, number, &document);
    }
}

uint64_t dataset_synthetic_most_documents(const struct tokmap_dataset *dataset, uint64_t tokens)
{
    /* At most one document ends in each stretch that the tokens touch. The first document and the one that begins at
     * the seam are added. */
    assert(dataset->synthetic);
    return min64(tokens, tokens / dataset->synthetic->document + 4);
}

enum tokmap_status dataset_ends(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, uint64_t *ends,
                                uint64_t capacity, uint64_t *used, uint64_t *start, struct tokmap_error *error)
{
    assert(ends || !capacity);
    *used = 0;
    *start = first;
    enum tokmap_status status = dataset_range_check(dataset, first, count, error);
    if (status)
        return status;
    if (first == dataset->tokens)
        return TOKMAP_OK;
    uint64_t last = first + count; /* the greatest end that counts */
    if (dataset->synthetic)
        synthetic_ends(dataset, first, last, ends, capacity, used, start);
    else
        status = shards_ends(dataset, &(struct search){first, last, ends, capacity, used, 0, 0, {0}}, start, error);
    if (!status && *used > capacity)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " documents end in the range, but there is space for only %" PRIu64, *used,
                         capacity);
    return status;
}

enum tokmap_status dataset_first_ends(const struct tokmap_dataset *dataset, uint64_t first, uint64_t *count,
                                      uint64_t *ends, uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    uint64_t start;
    enum tokmap_status status = dataset_ends(dataset, first, *count, ends, capacity, used, &start, NULL);
    if (status == TOKMAP_ERROR_LIMIT) {
        *used = capacity;
        *count = ends[capacity - 1];
        return TOKMAP_OK;
    }
    return status ? dataset_ends(dataset, first, *count, ends, capacity, used, &start, error) : TOKMAP_OK;
}

enum tokmap_status dataset_walk_ends(const struct tokmap_dataset *dataset, struct dataset_walk *walk, uint64_t *ends,
                                     uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    *used = 0;
    for (; walk->shard < dataset->shard_count; walk->shard++) {
        const struct shard *from;
        enum tokmap_status status = shard_hold(dataset, walk->shard, &from, error);
        if (status)
            return status;
        if (!walk->begun)
            status = shard_walk_begin(from, &walk->place, error);
        walk->begun = true;
        if (!status)
            status = shard_walk_ends(from, &walk->place, ends, capacity, used, error);
        shard_release(dataset, walk->shard);
        if (status || *used)
            return status;
        walk->begun = false;
    }
    return TOKMAP_OK;
}
