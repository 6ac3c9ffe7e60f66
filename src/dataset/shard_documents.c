/* SPDX-License-Identifier: MIT */
/*
 * shard_documents.c - see shard_documents.h.
 *
 * The index (or the functions of a foreign file) knows the whole file. Each function here asks it with numbers of the
 * file, and brings the answer into the part: a bound before the part becomes its start, a bound behind it its end.
 */
#include "shard_documents.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"

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

enum tokmap_status shard_document(const struct shard *shard, uint64_t number, uint64_t *start, uint64_t *end,
                                  struct tokmap_error *error)
{
    number += shard->place.skipped_documents;
    const enum tokmap_status status = file_document(shard, number, start, end, error);
    return status ? status : into_part(shard, number, start, end, error);
}

enum tokmap_status shard_document_at(const struct shard *shard, uint64_t token, uint64_t *number, uint64_t *start,
                                     uint64_t *end, struct index_part *part, struct tokmap_error *error)
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

enum tokmap_status shard_ends(const struct shard *shard, uint64_t number, uint64_t least, uint64_t last, uint64_t shift,
                              uint64_t *ends, uint64_t capacity, uint64_t *used, struct index_part *part,
                              struct tokmap_error *error)
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

enum tokmap_status shard_walk_begin(const struct shard *shard, struct index_walk *walk, struct tokmap_error *error)
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

enum tokmap_status shard_walk_ends(const struct shard *shard, struct index_walk *walk, uint64_t *ends,
                                   uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    const uint64_t shift = shard->place.first_token - shard->place.skipped_tokens;
    return shard->foreign.end ? foreign_walk(shard, walk, shift, ends, capacity, used, error)
                              : index_walk_ends(&shard->index, walk, shift, ends, capacity, used, error);
}
