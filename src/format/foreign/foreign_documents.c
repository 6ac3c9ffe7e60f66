/* foreign_documents.c - see foreign_documents.h. */
#include "foreign_documents.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/error.h"

static enum tokmap_status contradiction(const struct foreign_documents *documents, uint64_t number,
                                        struct tokmap_error *error)
{
    const uint64_t at = documents->is_megatron ? documents->megatron.documents_at + 8 * (number + 1) : 8 * number;
    return error_set(error, TOKMAP_ERROR_CORRUPT, documents->path, at,
                     "the ends of documents near document %" PRIu64
                     " contradict each other or the number of tokens; run `tokmap verify` on the dataset, and restore "
                     "the index",
                     number);
}

static enum tokmap_status end_of(const struct foreign_documents *documents, uint64_t number, uint64_t *end,
                                 struct tokmap_error *error)
{
    assert(number < documents->count);
    if (documents->is_megatron)
        return megatron_document_end(&documents->megatron, documents->path, documents->map, documents->tokens, number,
                                     end, error);
    *end = load64(documents->map + 8 * number);
    return *end > documents->tokens ? contradiction(documents, number, error) : TOKMAP_OK;
}

enum tokmap_status foreign_document(const struct foreign_documents *documents, uint64_t number, uint64_t *start,
                                    uint64_t *end, struct tokmap_error *error)
{
    *start = 0;
    enum tokmap_status status = number ? end_of(documents, number - 1, start, error) : TOKMAP_OK;
    if (!status)
        status = end_of(documents, number, end, error);
    if (!status && (*start > *end || (number == documents->count - 1 && *end != documents->tokens)))
        status = contradiction(documents, number, error);
    return status;
}

enum tokmap_status foreign_document_at(const struct foreign_documents *documents, uint64_t token, uint64_t *number,
                                       uint64_t *start, uint64_t *end, struct tokmap_error *error)
{
    assert(token < documents->tokens && documents->count);
    /* Find the first document that ends after the token. */
    uint64_t first = 0, last = documents->count - 1;
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;
        uint64_t middle_end;
        enum tokmap_status status = end_of(documents, middle, &middle_end, error);
        if (status)
            return status;
        if (middle_end > token)
            last = middle;
        else
            first = middle + 1;
    }
    *number = first;
    enum tokmap_status status = foreign_document(documents, first, start, end, error);
    if (!status && (token < *start || token >= *end))
        status = contradiction(documents, first, error);
    return status;
}

enum tokmap_status foreign_ends(const struct foreign_documents *documents, uint64_t number, uint64_t least,
                                uint64_t last, uint64_t shift, uint64_t *ends, uint64_t capacity, uint64_t *used,
                                struct tokmap_error *error)
{
    assert(number <= documents->count && (ends || !capacity));
    uint64_t before = 0, end;
    enum tokmap_status status = number ? end_of(documents, number - 1, &before, error) : TOKMAP_OK;
    for (uint64_t i = number; i < documents->count && !status; i++) {
        status = end_of(documents, i, &end, error);
        if (!status && (end < before || end < least))
            status = contradiction(documents, i, error);
        if (status || end > last)
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

enum tokmap_status foreign_walk_ends(const struct foreign_documents *documents, struct index_walk *walk, uint64_t shift,
                                     uint64_t *ends, uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    assert(capacity);
    struct index_walk now = *walk;
    uint64_t found = 0, end;
    *used = 0;
    for (; found < capacity && now.document < documents->count; now.document++) {
        enum tokmap_status status = end_of(documents, now.document, &end, error);
        if (!status && end < now.before)
            status = contradiction(documents, now.document, error);
        if (status)
            return status;
        ends[found] = end + shift; /* if the document is empty, the next end replaces this one */
        found += end != now.before;
        now.before = end;
    }
    *used = found;
    *walk = now;
    if (now.document == documents->count && now.before != documents->tokens)
        return contradiction(documents, now.document ? now.document - 1 : 0, error);
    return TOKMAP_OK;
}

enum tokmap_status foreign_documents_check(const struct foreign_documents *documents, struct tokmap_error *error)
{
    if (documents->is_megatron)
        return megatron_check(&documents->megatron, documents->path, documents->map, error);
    uint64_t before = 0;
    for (uint64_t i = 0; i < documents->count; i++) {
        const uint64_t end = load64(documents->map + 8 * i);
        if (end < before || end > documents->tokens)
            return error_set(error, TOKMAP_ERROR_CORRUPT, documents->path, 8 * i,
                             "document %" PRIu64 " ends at token %" PRIu64 ", but begins at token %" PRIu64
                             ", and the file has %" PRIu64 " tokens; copy the files of this .ds again from where "
                             "datatrove wrote them",
                             i, end, before, documents->tokens);
        before = end;
    }
    return TOKMAP_OK;
}
