/* SPDX-License-Identifier: MIT */
#include "corpus_batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "parquet/parquet.h"

void corpus_counts_add(struct corpus_counts *sum, const struct corpus_counts *more)
{
    uint64_t *into = (uint64_t *)sum;
    for (size_t i = 0; i < sizeof *sum / sizeof *into; i++)
        into[i] += ((const uint64_t *)more)[i];
}

void corpus_counts_not_read(struct inputs_counts *sum, const struct inputs_counts *before,
                            const struct inputs_counts *now)
{
    uint64_t *into = (uint64_t *)sum;
    for (size_t i = 0; i < sizeof *sum / sizeof *into; i++)
        into[i] += ((const uint64_t *)now)[i] - ((const uint64_t *)before)[i];
}

static const struct {
    const char *word, *text;
} reasons[] = {
#define REASON_ROW(name, word, text) {word, text},
    CORPUS_REASON_MAP(REASON_ROW)
#undef REASON_ROW
};

const char *corpus_reason_word(enum corpus_reason reason)
{
    assert(reason < CORPUS_REASONS);
    return reasons[reason].word;
}

const char *corpus_reason_text(enum corpus_reason reason)
{
    assert(reason < CORPUS_REASONS);
    return reasons[reason].text;
}

/* A block of the memory of corpus_batch_take(). A new block is at least twice as large as the one before it, so a batch
 * that is filled again and again soon needs one only. */
struct corpus_block {
    struct corpus_block *next; /* older than this one */
    uint64_t capacity, used;
    uint64_t last; /* beginning of the memory that was taken last */
    _Alignas(16) char bytes[];
};
#define BLOCK_LEAST ((uint64_t)16 << 10)
#define BLOCK_ALIGN 16

/* Frees all blocks but the newest, and that one too if it is above the usual size. */
static void blocks_clear(struct corpus_batch *batch, uint64_t usual)
{
    struct corpus_block *newest = batch->blocks;
    if (!newest)
        return;
    while (newest->next) {
        struct corpus_block *older = newest->next;
        newest->next = older->next;
        free(older);
    }
    newest->used = newest->last = 0;
    if (newest->capacity > usual) {
        free(newest);
        batch->blocks = NULL;
    }
}

void *corpus_batch_take(struct corpus_batch *batch, uint64_t bytes)
{
    struct corpus_block *block = batch->blocks;
    if (!block || bytes > block->capacity - block->used) {
        uint64_t capacity = max64(bytes, block ? 2 * block->capacity : BLOCK_LEAST);
        capacity = capacity < SIZE_MAX / 4 ? (capacity + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN : 0;
        struct corpus_block *made = capacity ? malloc(sizeof *made + (size_t)capacity) : NULL;
        if (!made)
            return NULL;
        *made = (struct corpus_block){.next = block, .capacity = capacity};
        batch->blocks = block = made;
    }
    block->last = block->used;
    corpus_batch_shorten(batch, block->bytes + block->last, bytes);
    return block->bytes + block->last;
}

void corpus_batch_shorten(struct corpus_batch *batch, void *last, uint64_t bytes)
{
    struct corpus_block *block = batch->blocks;
    assert(block && last == block->bytes + block->last && bytes <= block->capacity - block->last);
    block->used = min64(block->capacity, block->last + (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN);
}

void corpus_batch_clear(struct corpus_batch *batch, uint64_t usual)
{
    blocks_clear(batch, usual);
    for (uint32_t i = 0; i < batch->part_count; i++)
        parquet_rows_free(batch->parts[i].rows);
    for (uint64_t i = 0; i < batch->issue_count; i++) {
        free(batch->issues[i].error);
        free(batch->issues[i].detail);
    }
    for (uint64_t i = 0; i < batch->replaced_count; i++)
        free(batch->replaced[i]);
    for (uint32_t i = 0; i < batch->path_count; i++)
        free(batch->paths[i]);
    batch->filled = batch->part_count = batch->path_count = 0;
    batch->document_count = batch->issue_count = batch->replaced_count = 0;
    memset(&batch->counts, 0, sizeof batch->counts);
    batch->usual = usual;
    if (batch->capacity > usual) {
        free(batch->bytes);
        batch->bytes = NULL;
        batch->capacity = 0;
    }
}

void corpus_batch_trim(struct corpus_batch *batch)
{
    /* Pages of Parquet files are given back, so that the next ones use their memory. */
    if (batch->capacity > batch->usual || batch->replaced_count || (batch->part_count && batch->parts[0].rows) ||
        (batch->blocks && batch->blocks->capacity > batch->usual))
        corpus_batch_clear(batch, batch->usual);
}

void corpus_batch_free(struct corpus_batch *batch)
{
    corpus_batch_clear(batch, 0);
    assert(!batch->blocks);
    free(batch->bytes);
    free(batch->parts);
    free(batch->documents);
    free(batch->issues);
    free(batch->replaced);
    free(batch->paths);
    memset(batch, 0, sizeof *batch);
}

bool corpus_batch_reserve(struct corpus_batch *batch, uint64_t capacity)
{
    if (batch->capacity >= capacity)
        return true;
    char *grown = capacity < SIZE_MAX / 2 ? realloc(batch->bytes, (size_t)capacity) : NULL;
    if (!grown)
        return false;
    batch->bytes = grown;
    batch->capacity = capacity;
    return true;
}

/* Appends a zeroed element to a list of the batch and declares `element`, which points to it. If there is not enough
 * memory, the function that contains this returns NULL. */
#define LIST_ADD(type, list, count, capacity)                                                                          \
    uint64_t room = batch->capacity;                                                                                   \
    if (!list_room(&batch->list, batch->count, &room, sizeof *batch->list))                                            \
        return NULL;                                                                                                   \
    batch->capacity = (__typeof__(batch->capacity))room;                                                               \
    type *element = &batch->list[batch->count++];                                                                      \
    memset(element, 0, sizeof *element)

struct corpus_part *corpus_batch_add_part(struct corpus_batch *batch)
{
    LIST_ADD(struct corpus_part, parts, part_count, part_capacity);
    return element;
}

struct corpus_document *corpus_batch_add_document(struct corpus_batch *batch)
{
    LIST_ADD(struct corpus_document, documents, document_count, document_capacity);
    return element;
}

struct corpus_issue *corpus_batch_add_issue(struct corpus_batch *batch)
{
    LIST_ADD(struct corpus_issue, issues, issue_count, issue_capacity);
    element->part = batch->part_count;
    element->record = UINT64_MAX;
    element->offset = TOKMAP_NO_OFFSET;
    return element;
}

/* Returns true if the first issue does not come after the second one. */
static bool issue_precedes(const struct corpus_issue *first, const struct corpus_issue *second)
{
    if (first->part != second->part)
        return first->part < second->part;
    return !first->inside || (second->inside && first->record <= second->record);
}

bool corpus_batch_merge_issues(struct corpus_batch *batch, uint64_t own)
{
    const uint64_t count = batch->issue_count;
    if (!own || own == count)
        return true;
    struct corpus_issue *first = malloc(own * sizeof *first);
    if (!first)
        return false;
    memcpy(first, batch->issues, own * sizeof *first);
    for (uint64_t i = 0, k = own; i < own;) {
        const bool next = k == count || issue_precedes(&first[i], &batch->issues[k]);
        batch->issues[i + (k - own)] = next ? first[i] : batch->issues[k];
        if (next)
            i++;
        else
            k++;
    }
    free(first);
    return true;
}

void corpus_batch_count_file(struct corpus_batch *batch, enum corpus_format format)
{
    batch->counts.files++;
    batch->counts.files_of[format]++;
}

void corpus_batch_count_issue(struct corpus_batch *batch, const struct corpus_issue *issue)
{
    assert(issue->left_out < CORPUS_REASONS);
    struct corpus_left_out *left_out = &batch->counts.left_out[issue->left_out];
    left_out->files += issue->is_file;
    const uint64_t records = issue->is_file ? 0 : max64(issue->records, 1);
    left_out->records += records;
    left_out->bytes += issue->bytes;
    batch->counts.files_skipped += issue->is_file;
    batch->counts.records_skipped += records;
    batch->counts.skipped_bytes += issue->bytes;
}

void corpus_batch_leave_out(struct corpus_batch *batch, const struct corpus_document *document,
                            enum corpus_reason reason)
{
    struct corpus_counts *counts = &batch->counts;
    counts->documents--;
    counts->empty_documents -= !document->bytes && !document->second_bytes && !document->id_count;
    counts->document_bytes -= document->source_bytes;
    counts->text_bytes -= document->bytes + document->second_bytes;
    counts->skipped_bytes += document->source_bytes;
    counts->records_skipped++;
    counts->left_out[reason].records++;
    counts->left_out[reason].bytes += document->source_bytes;
}

char *corpus_batch_add_text(struct corpus_batch *batch, uint64_t bytes)
{
    LIST_ADD(char *, replaced, replaced_count, replaced_capacity);
    *element = bytes < SIZE_MAX / 2 ? malloc((size_t)bytes + 1) : NULL;
    return *element;
}

const char *corpus_batch_add_path(struct corpus_batch *batch, const char *path)
{
    LIST_ADD(char *, paths, path_count, path_capacity);
    *element = strdup(path);
    return *element;
}

enum corpus_reason corpus_reason_of(enum tokmap_status status)
{
    if (status == TOKMAP_ERROR_UNSUPPORTED)
        return CORPUS_REASON_FORMAT;
    if (status == TOKMAP_ERROR_LIMIT)
        return CORPUS_REASON_TOO_LONG;
    if (status == TOKMAP_ERROR_TRUNCATED || status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_MISMATCH)
        return CORPUS_REASON_DAMAGED;
    return CORPUS_REASON_UNREADABLE;
}
