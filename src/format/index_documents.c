/*
 * index_documents.c - finds documents and their origins in the mapped index.
 *
 * The end of document i is (number of carries <= i) << 32 | low[i]. carry[k] is the first document that ends at or
 * after token (k + 1) << 32. The documents whose ends have the high half k are therefore [carry[k-1], carry[k]), and a
 * binary search inside one of these ranges finds the document that holds a token.
 *
 * Example: a shard of 6 * 10^9 tokens has one carry. If documents 0 to 9 end below 2^32 and document 10 is the first
 * that ends at or after it, carry[0] = 10. Token 5 * 10^9 has the high half 1, so the search looks at documents 10 and
 * later, and compares the low halves of their ends with 5 * 10^9 - 2^32.
 *
 * Opening does not check that ends and carries are in order, because that would take time proportional to the number of
 * documents. Each function therefore compares its answer with the neighboring values before it returns the answer.
 */
#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "index_documents.h"

#define REMEDY "run `tokmap verify` on it, and restore the index or pack the shard again"

static uint32_t low_of(const struct index *index, uint64_t document)
{
    return load32(index->bytes + index->documents.offset + 4 * document);
}

static uint64_t carry_of(const struct index *index, uint64_t k)
{
    uint64_t lows = round_up(4 * index->shard.documents, 8);
    return load64(index->bytes + index->documents.offset + lows + 8 * k);
}

/* Returns the number of carries <= document, which is the high half of its end. */
static uint64_t high_of(const struct index *index, uint64_t document)
{
    uint64_t first = 0, last = index->carries;
    while (first < last) {
        uint64_t middle = first + (last - first) / 2;
        if (carry_of(index, middle) <= document)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

static uint64_t end_of(const struct index *index, uint64_t document)
{
    return high_of(index, document) << 32 | low_of(index, document);
}

static enum tokmap_status contradiction(const struct index *index, uint64_t document, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, index->path, index->documents.offset + 4 * document,
                     "the ends of documents near document %" PRIu64
                     " contradict each other or the number of tokens; " REMEDY,
                     document);
}

enum tokmap_status index_document(const struct index *index, uint64_t number, uint64_t *start, uint64_t *end,
                                  struct tokmap_error *error)
{
    assert(number < index->shard.documents);
    *start = number ? end_of(index, number - 1) : 0;
    *end = end_of(index, number);
    if (*start > *end || *end > index->shard.tokens ||
        (number == index->shard.documents - 1 && *end != index->shard.tokens))
        return contradiction(index, number, error);
    return TOKMAP_OK;
}

enum tokmap_status index_document_at(const struct index *index, uint64_t token, uint64_t *number, uint64_t *start,
                                     uint64_t *end, struct tokmap_error *error)
{
    assert(token < index->shard.tokens);
    uint64_t k = token >> 32;
    uint64_t first = k ? carry_of(index, k - 1) : 0;
    uint64_t last = k < index->carries ? carry_of(index, k) : index->shard.documents;
    if (first > last || last > index->shard.documents)
        return contradiction(index, min64(first, index->shard.documents - 1), error);
    while (first < last) {
        uint64_t middle = first + (last - first) / 2;
        if (low_of(index, middle) > (uint32_t)token)
            last = middle;
        else
            first = middle + 1;
    }
    /* If every document of the range ends at or before the token, the first document of the next range holds it. */
    if (first >= index->shard.documents)
        return contradiction(index, index->shard.documents - 1, error);
    *number = first;
    enum tokmap_status status = index_document(index, first, start, end, error);
    if (!status && (token < *start || token >= *end))
        status = contradiction(index, first, error);
    return status;
}

enum tokmap_status index_ends(const struct index *index, uint64_t number, uint64_t least, uint64_t last, uint64_t shift,
                              uint64_t *ends, uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    assert(number <= index->shard.documents && (ends || !capacity));
    uint64_t high = number ? high_of(index, number - 1) : 0;
    uint64_t before = number ? high << 32 | low_of(index, number - 1) : 0;
    for (uint64_t i = number; i < index->shard.documents; i++) {
        while (high < index->carries && carry_of(index, high) <= i)
            high++;
        uint64_t end = high << 32 | low_of(index, i);
        if (end < before || end < least || end > index->shard.tokens)
            return contradiction(index, i, error);
        if (end > last)
            break;
        if (end != before) {
            if (*used < capacity)
                ends[*used] = end + shift;
            ++*used;
        }
        before = end;
    }
    return TOKMAP_OK;
}

void index_walk_begin(const struct index *index, uint64_t first_document, uint64_t end_document, uint64_t first_token,
                      uint64_t end_token, struct index_walk *walk)
{
    assert(first_document <= end_document && end_document <= index->shard.documents);
    assert(first_token <= end_token && end_token <= index->shard.tokens);
    *walk = (struct index_walk){first_document, high_of(index, first_document), first_token, end_document, end_token};
}

enum tokmap_status index_walk_ends(const struct index *index, struct index_walk *walk, uint64_t shift, uint64_t *ends,
                                   uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    assert(capacity);
    struct index_walk now = *walk;
    uint64_t found = 0;
    *used = 0;
    while (found < capacity && now.document < now.documents) {
        while (now.high < index->carries && carry_of(index, now.high) <= now.document)
            now.high++;
        uint64_t same = now.documents; /* the documents up to, not including, this one have the same high half */
        if (now.high < index->carries)
            same = min64(same, carry_of(index, now.high));
        for (; found < capacity && now.document < same; now.document++) {
            uint64_t end = now.high << 32 | low_of(index, now.document);
            if (end < now.before || end > index->shard.tokens)
                return contradiction(index, now.document, error);
            end = min64(end, now.end);
            ends[found] = end + shift; /* if the document is empty, the next end replaces this one */
            found += end != now.before;
            now.before = end;
        }
    }
    *used = found;
    *walk = now;
    if (now.document == now.documents && now.before != now.end)
        return contradiction(index, now.document ? now.document - 1 : 0, error);
    return TOKMAP_OK;
}

/* ---- origin ---- */

static enum tokmap_status bad_origin(const struct index *index, uint64_t at, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, index->path, index->origin.offset + at,
                     "the origin section is inconsistent at this byte; " REMEDY);
}

bool origin_layout_of(const struct index *index, struct origin_layout *layout)
{
    struct origin_head head;
    uint64_t run_bytes, file_bytes, bytes = sizeof head;
    if (index->origin.bytes < sizeof head)
        return false;
    memcpy(&head, index->bytes + index->origin.offset, sizeof head);
    if (mul_overflows(head.runs, sizeof(struct origin_run), &run_bytes) ||
        mul_overflows(head.files, sizeof(struct origin_file), &file_bytes) || add_overflows(bytes, run_bytes, &bytes) ||
        add_overflows(bytes, file_bytes, &bytes) || add_overflows(bytes, head.path_bytes, &bytes) ||
        bytes != index->origin.bytes || head.reserved)
        return false;
    layout->runs = head.runs;
    layout->files = head.files;
    layout->path_bytes = head.path_bytes;
    layout->runs_at = sizeof head;
    layout->files_at = sizeof head + run_bytes;
    layout->paths_at = sizeof head + run_bytes + file_bytes;
    return true;
}

enum tokmap_status index_origin(const struct index *index, uint64_t document, struct tokmap_origin *origin,
                                struct tokmap_error *error)
{
    if (!index->origin.offset)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, index->path, TOKMAP_NO_OFFSET,
                         "the index has no origin section, so the source of its documents is unknown");
    struct origin_layout layout;
    if (!origin_layout_of(index, &layout))
        return bad_origin(index, 0, error);
    const uint8_t *section = index->bytes + index->origin.offset;
    /* Find the last run that begins at or before the document. */
    uint64_t first = 0, last = layout.runs;
    while (first < last) {
        uint64_t middle = first + (last - first) / 2;
        if (load64(section + layout.runs_at + middle * sizeof(struct origin_run)) <= document)
            first = middle + 1;
        else
            last = middle;
    }
    if (!first)
        return bad_origin(index, layout.runs_at, error);
    uint64_t run_at = layout.runs_at + (first - 1) * sizeof(struct origin_run);
    struct origin_run run;
    memcpy(&run, section + run_at, sizeof run);
    uint64_t file_at = layout.files_at + run.file * sizeof(struct origin_file);
    if (run.document > document || run.file >= layout.files ||
        add_overflows(run.record, document - run.document, &origin->record))
        return bad_origin(index, run_at, error);
    uint64_t begin = run.file ? load64(section + file_at - sizeof(struct origin_file)) : 0;
    uint64_t end = load64(section + file_at);
    if (begin > end || end > layout.path_bytes)
        return bad_origin(index, file_at, error);
    origin->path = (const char *)section + layout.paths_at + begin;
    origin->path_bytes = end - begin;
    return TOKMAP_OK;
}
