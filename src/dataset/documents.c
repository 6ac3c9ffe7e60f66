/* SPDX-License-Identifier: MIT */
/* documents.c - finds documents and their origins by the dataset's numbers for tokens and documents. */
#include "documents.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset_foreign.h"
#include "dataset_state.h"
#include "shard_documents.h"

uint64_t dataset_shard_of(const struct tokmap_dataset *dataset, uint64_t token, uint64_t hint)
{
    assert(dataset->shard_count && token < dataset->tokens);
    if (hint < dataset->shard_count && token - dataset->shards[hint].first_token < dataset->shards[hint].tokens)
        return hint;
    /* Find the last shard that begins at or before the token. (Empty shards can begin at the same token.) */
    uint64_t first = 0, last = dataset->shard_count;
    while (last - first > 1) {
        uint64_t middle = first + (last - first) / 2;
        if (dataset->shards[middle].first_token <= token)
            first = middle;
        else
            last = middle;
    }
    return first;
}

uint64_t dataset_shard_of_document(const struct tokmap_dataset *dataset, uint64_t document)
{
    assert(dataset->shard_count && document < dataset->documents);
    uint64_t first = 0, last = dataset->shard_count;
    while (last - first > 1) {
        uint64_t middle = first + (last - first) / 2;
        if (dataset->shards[middle].first_document <= document)
            first = middle;
        else
            last = middle;
    }
    return first;
}

static enum tokmap_status no_room(struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                     "the dataset or the place for the result is NULL");
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
    const struct shard *from = &dataset->shards[shard];
    enum tokmap_status status = shard_document(from, number - from->first_document, &start, &end, error);
    if (!status)
        *document = (struct tokmap_document){number, from->first_token + start, end - start, shard};
    return status;
}

enum tokmap_status tokmap_dataset_document(const struct tokmap_dataset *dataset, uint64_t number,
                                           struct tokmap_document *document, struct tokmap_error *error)
{
    return dataset && document ? dataset_document(dataset, number, document, error) : no_room(error);
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
    const struct shard *from = &dataset->shards[shard];
    enum tokmap_status status = shard_document_at(from, token - from->first_token, &number, &start, &end, NULL, error);
    if (!status)
        *document =
            (struct tokmap_document){from->first_document + number, from->first_token + start, end - start, shard};
    return status;
}

enum tokmap_status tokmap_dataset_document_at(const struct tokmap_dataset *dataset, uint64_t token,
                                              struct tokmap_document *document, struct tokmap_error *error)
{
    return dataset && document ? dataset_document_at(dataset, token, document, error) : no_room(error);
}

enum tokmap_status tokmap_dataset_origin(const struct tokmap_dataset *dataset, uint64_t number,
                                         struct tokmap_origin *origin, struct tokmap_error *error)
{
    if (!dataset || !origin)
        return no_room(error);
    if (dataset->documents_unknown)
        return no_numbers(dataset, error);
    if (number >= dataset->documents)
        return no_document(dataset, number, error);
    if (dataset->synthetic)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, NULL, TOKMAP_NO_OFFSET,
                         "the dataset is synthetic: its documents are computed and have no source");
    const struct shard *from = &dataset->shards[dataset_shard_of_document(dataset, number)];
    if (!from->index.bytes)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, from->store.path, TOKMAP_NO_OFFSET,
                         "a file of another project does not record where its documents come from");
    return index_origin(&from->index, number - from->first_document + from->skipped_documents, origin, error);
}

static enum tokmap_status shards_ends(const struct tokmap_dataset *dataset, uint64_t first, uint64_t last,
                                      uint64_t *ends, uint64_t capacity, uint64_t *used, uint64_t *start,
                                      struct tokmap_error *error)
{
    uint64_t shard = dataset_shard_of(dataset, first, 0), number = 0, begin, end;
    const struct shard *from = &dataset->shards[shard];
    struct index_part part;
    index_part_clear(&part);
    if (from->documents) {
        enum tokmap_status status =
            shard_document_at(from, first - from->first_token, &number, &begin, &end, &part, error);
        if (status)
            return status;
        *start = from->first_token + begin;
    }
    /* A shard ends where its last document ends (or is cut), so no case is needed for the border of two shards. From
     * the document that holds `first` on, ends are greater than `first`; in later shards an end can be 0, because
     * documents can be empty. */
    uint64_t least = first - from->first_token + 1;
    for (; shard < dataset->shard_count && dataset->shards[shard].first_token < last; shard++, number = least = 0) {
        from = &dataset->shards[shard];
        const uint64_t shift = from->first_token - first;
        enum tokmap_status status =
            from->documents || !from->tokens
                ? shard_ends(from, number, least, last - from->first_token, shift, ends, capacity, used, &part, error)
                : foreign_scan_ends(from, dataset->width, least ? least - 1 : 0, last - from->first_token, shift, ends,
                                    capacity, used, error);
        if (status)
            return status;
        index_part_clear(&part); /* the next shard has another index */
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
    if (first > dataset->tokens || count > dataset->tokens - first)
        return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " tokens from token %" PRIu64 " on exceed the dataset, which has %" PRIu64
                         " tokens",
                         count, first, dataset->tokens);
    if (first == dataset->tokens)
        return TOKMAP_OK;
    uint64_t last = first + count; /* the greatest end that counts */
    enum tokmap_status status = TOKMAP_OK;
    if (dataset->synthetic)
        synthetic_ends(dataset, first, last, ends, capacity, used, start);
    else
        status = shards_ends(dataset, first, last, ends, capacity, used, start, error);
    if (!status && *used > capacity)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " documents end in the range, but there is space for only %" PRIu64, *used,
                         capacity);
    return status;
}

enum tokmap_status dataset_walk_ends(const struct tokmap_dataset *dataset, struct dataset_walk *walk, uint64_t *ends,
                                     uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    *used = 0;
    for (; walk->shard < dataset->shard_count; walk->shard++) {
        const struct shard *from = &dataset->shards[walk->shard];
        enum tokmap_status status = walk->begun ? TOKMAP_OK : shard_walk_begin(from, &walk->place, error);
        walk->begun = true;
        if (!status)
            status = shard_walk_ends(from, &walk->place, ends, capacity, used, error);
        if (status || *used)
            return status;
        walk->begun = false;
    }
    return TOKMAP_OK;
}
