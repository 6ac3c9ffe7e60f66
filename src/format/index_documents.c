/* SPDX-License-Identifier: MIT */
/*
 * index_documents.c - finds documents and their origins in an open index.
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
 *
 * Without a mapping. The low halves can be gigabytes, so what is read of them is not kept. A search reads single values
 * until it has PART documents left, of which it then reads all at once; the first steps, which all searches share, are
 * kept by index_pages.h. What follows is read in parts, of which a caller can use one for two functions. A document of
 * a shard of a million thus costs one call of pread(), once the first steps are kept. A call that fails sets
 * ends.status, and low_of() returns 0: each function looks at the status before it believes an answer.
 */
#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "index_documents.h"

#define REMEDY "run `tokmap verify` on it, and restore the index or pack the shard again"

#define PART ((uint64_t)INDEX_PART)

/* The ends of an index's documents, for one call. */
struct ends {
    const struct index *index;
    enum tokmap_status status;
    struct tokmap_error *error;
    struct index_part *part; /* the caller's, or own */
    struct index_part own;
};

static void ends_begin(struct ends *ends, const struct index *index, struct index_part *part,
                       struct tokmap_error *error)
{
    ends->index = index;
    ends->status = TOKMAP_OK;
    ends->error = error;
    ends->part = part ? part : &ends->own;
    if (!part)
        index_part_clear(&ends->own);
}

static uint64_t low_offset(const struct index *index, uint64_t document)
{
    return index->documents.offset + 4 * document;
}

/* Notes that the low half of a document could not be read. */
static __attribute__((cold)) void ends_failed(struct ends *ends, int system, uint64_t document)
{
    ends->status = index_read_failed(ends->index, system, low_offset(ends->index, document), ends->error);
}

/* Reads the low halves from a document on. */
static void read_part(struct ends *ends, uint64_t document)
{
    const struct index *index = ends->index;
    ends->part->first = document;
    ends->part->end = min64(index->shard.documents, document + PART);
    const int system = index_pages_read(index->pages, low_offset(index, document), ends->part->bytes,
                                        (size_t)(4 * (ends->part->end - ends->part->first)));
    if (system) {
        ends->part->end = ends->part->first;
        ends_failed(ends, system, document);
    }
}

static __attribute__((noinline)) uint32_t read_low(struct ends *ends, uint64_t document)
{
    if (ends->status)
        return 0;
    if (document < ends->part->first || document >= ends->part->end)
        read_part(ends, document ? document - 1 : 0); /* the end before it is its start */
    return ends->status ? 0 : load32(ends->part->bytes + 4 * (document - ends->part->first));
}

static inline uint32_t low_of(struct ends *ends, uint64_t document)
{
    return __builtin_expect(ends->index->pages != NULL, 0)
               ? read_low(ends, document)
               : load32(ends->index->bytes + low_offset(ends->index, document));
}

/* Does the same in a search among documents [first, last). */
static __attribute__((noinline)) uint32_t read_step(struct ends *ends, uint64_t document, uint64_t first, uint64_t last)
{
    uint8_t bytes[4];
    uint32_t low;
    if (ends->status || (document >= ends->part->first && document < ends->part->end))
        return read_low(ends, document);
    if (index_pages_step(ends->index->pages, document, &low))
        return low;
    if (last - first < PART) { /* the document before the first one, too: its end is the start */
        read_part(ends, first ? first - 1 : 0);
        return read_low(ends, document);
    }
    const int system = index_pages_read(ends->index->pages, low_offset(ends->index, document), bytes, sizeof bytes);
    if (system) {
        ends_failed(ends, system, document);
        return 0;
    }
    index_pages_keep(ends->index->pages, document, load32(bytes));
    return load32(bytes);
}

/* Finds a carry. There is one carry for each 2^32 tokens, so without a mapping those that are met are kept. */
static uint64_t carry_of(struct ends *ends, uint64_t k)
{
    const struct index *index = ends->index;
    const uint64_t lows = round_up(4 * index->shard.documents, 8), at = index->documents.offset + lows + 8 * k;
    if (ends->status)
        return 0;
    ends->status = index_need(index, at, 8, ends->error);
    return ends->status ? 0 : load64(index->bytes + at);
}

/* Returns the number of carries <= document, which is the high half of its end. */
static uint64_t high_of(struct ends *ends, uint64_t document)
{
    uint64_t first = 0, last = ends->index->carries;
    while (first < last) {
        uint64_t middle = first + (last - first) / 2;
        if (carry_of(ends, middle) <= document)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

static uint64_t end_of(struct ends *ends, uint64_t document)
{
    return high_of(ends, document) << 32 | low_of(ends, document);
}

/* Reports that what is read is wrong at a document, unless it could not be read. */
static enum tokmap_status contradiction(const struct ends *ends, uint64_t document)
{
    const struct index *index = ends->index;
    if (ends->status)
        return ends->status;
    return error_set(ends->error, TOKMAP_ERROR_CORRUPT, index->path, index->documents.offset + 4 * document,
                     "the ends of documents near document %" PRIu64
                     " contradict each other or the number of tokens; " REMEDY,
                     document);
}

static enum tokmap_status document_of(struct ends *ends, uint64_t number, uint64_t *start, uint64_t *end)
{
    const struct section_shard *shard = &ends->index->shard;
    assert(number < shard->documents);
    *start = number ? end_of(ends, number - 1) : 0;
    *end = end_of(ends, number);
    if (*start > *end || *end > shard->tokens || (number == shard->documents - 1 && *end != shard->tokens))
        return contradiction(ends, number);
    return ends->status;
}

enum tokmap_status index_document(const struct index *index, uint64_t number, uint64_t *start, uint64_t *end,
                                  struct tokmap_error *error)
{
    struct ends ends;
    ends_begin(&ends, index, NULL, error);
    return document_of(&ends, number, start, end);
}

enum tokmap_status index_document_at(const struct index *index, uint64_t token, uint64_t *number, uint64_t *start,
                                     uint64_t *end, struct index_part *part, struct tokmap_error *error)
{
    assert(token < index->shard.tokens);
    struct ends ends;
    ends_begin(&ends, index, part, error);
    uint64_t k = token >> 32;
    uint64_t first = k ? carry_of(&ends, k - 1) : 0;
    uint64_t last = k < index->carries ? carry_of(&ends, k) : index->shard.documents;
    if (first > last || last > index->shard.documents)
        return contradiction(&ends, min64(first, index->shard.documents - 1));
    while (first < last) {
        uint64_t middle = first + (last - first) / 2;
        const uint32_t low = __builtin_expect(index->pages != NULL, 0)
                                 ? read_step(&ends, middle, first, last)
                                 : load32(index->bytes + low_offset(index, middle));
        if (low > (uint32_t)token)
            last = middle;
        else
            first = middle + 1;
    }
    /* If every document of the range ends at or before the token, the first document of the next range holds it. */
    if (first >= index->shard.documents)
        return contradiction(&ends, index->shard.documents - 1);
    *number = first;
    enum tokmap_status status = document_of(&ends, first, start, end);
    if (!status && (token < *start || token >= *end))
        status = contradiction(&ends, first);
    return status;
}

enum tokmap_status index_ends(const struct index *index, uint64_t number, uint64_t least, uint64_t last, uint64_t shift,
                              uint64_t *ends, uint64_t capacity, uint64_t *used, struct index_part *part,
                              struct tokmap_error *error)
{
    assert(number <= index->shard.documents && (ends || !capacity));
    struct ends all;
    ends_begin(&all, index, part, error);
    uint64_t high = number ? high_of(&all, number - 1) : 0;
    uint64_t before = number ? high << 32 | low_of(&all, number - 1) : 0;
    for (uint64_t i = number; i < index->shard.documents; i++) {
        while (high < index->carries && carry_of(&all, high) <= i)
            high++;
        uint64_t end = high << 32 | low_of(&all, i);
        if (end < before || end < least || end > index->shard.tokens || __builtin_expect(all.status != TOKMAP_OK, 0))
            return contradiction(&all, i);
        if (end > last)
            break;
        if (end != before) {
            if (*used < capacity)
                ends[*used] = end + shift;
            ++*used;
        }
        before = end;
    }
    return all.status;
}

enum tokmap_status index_walk_begin(const struct index *index, uint64_t first_document, uint64_t end_document,
                                    uint64_t first_token, uint64_t end_token, struct index_walk *walk,
                                    struct tokmap_error *error)
{
    struct ends ends;
    ends_begin(&ends, index, NULL, error);
    assert(first_document <= end_document && end_document <= index->shard.documents);
    assert(first_token <= end_token && end_token <= index->shard.tokens);
    *walk = (struct index_walk){first_document, high_of(&ends, first_document), first_token, end_document, end_token};
    return ends.status;
}

enum tokmap_status index_walk_ends(const struct index *index, struct index_walk *walk, uint64_t shift, uint64_t *ends,
                                   uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    assert(capacity);
    struct index_walk now = *walk;
    uint64_t found = 0;
    struct ends all;
    ends_begin(&all, index, NULL, error);
    *used = 0;
    while (found < capacity && now.document < now.documents) {
        while (now.high < index->carries && carry_of(&all, now.high) <= now.document)
            now.high++;
        uint64_t same = now.documents; /* the documents up to, not including, this one have the same high half */
        if (now.high < index->carries)
            same = min64(same, carry_of(&all, now.high));
        if (all.status)
            return all.status;
        for (; found < capacity && now.document < same; now.document++) {
            uint64_t end = now.high << 32 | low_of(&all, now.document);
            if (end < now.before || end > index->shard.tokens || __builtin_expect(all.status != TOKMAP_OK, 0))
                return contradiction(&all, now.document);
            end = min64(end, now.end);
            ends[found] = end + shift; /* if the document is empty, the next end replaces this one */
            found += end != now.before;
            now.before = end;
        }
    }
    *used = found;
    *walk = now;
    if (now.document == now.documents && now.before != now.end)
        return contradiction(&all, now.document ? now.document - 1 : 0);
    return TOKMAP_OK;
}

/* ---- origin ---- */

/* Makes a part of the origin section usable, before a number there is loaded. */
static enum tokmap_status origin_need(const struct index *index, uint64_t at, uint64_t bytes,
                                      struct tokmap_error *error)
{
    return index_need(index, index->origin.offset + at, bytes, error);
}

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
    enum tokmap_status status = origin_need(index, 0, min64(index->origin.bytes, sizeof(struct origin_head)), error);
    if (status)
        return status;
    if (!origin_layout_of(index, &layout))
        return bad_origin(index, 0, error);
    const uint8_t *section = index->bytes + index->origin.offset;
    /* Find the last run that begins at or before the document. */
    uint64_t first = 0, last = layout.runs;
    while (first < last) {
        uint64_t middle = first + (last - first) / 2;
        const uint64_t at = layout.runs_at + middle * sizeof(struct origin_run);
        if ((status = origin_need(index, at, sizeof(struct origin_run), error)))
            return status;
        if (load64(section + at) <= document)
            first = middle + 1;
        else
            last = middle;
    }
    if (!first)
        return bad_origin(index, layout.runs_at, error);
    uint64_t run_at = layout.runs_at + (first - 1) * sizeof(struct origin_run);
    struct origin_run run;
    if ((status = origin_need(index, run_at, sizeof run, error)))
        return status;
    memcpy(&run, section + run_at, sizeof run);
    uint64_t file_at = layout.files_at + run.file * sizeof(struct origin_file);
    if (run.document > document || run.file >= layout.files ||
        add_overflows(run.record, document - run.document, &origin->record))
        return bad_origin(index, run_at, error);
    const uint64_t before_at = run.file ? file_at - sizeof(struct origin_file) : file_at;
    if ((status = origin_need(index, before_at, file_at + sizeof(struct origin_file) - before_at, error)))
        return status;
    uint64_t begin = run.file ? load64(section + before_at) : 0;
    uint64_t end = load64(section + file_at);
    if (begin > end || end > layout.path_bytes)
        return bad_origin(index, file_at, error);
    origin->path = (const char *)section + layout.paths_at + begin;
    origin->path_bytes = end - begin;
    return origin_need(index, layout.paths_at + begin, end - begin, error);
}
