#include "document_batch.h"

#include <stdlib.h>
#include <string.h>

void batch_clear(struct corpus_batch *batch, uint64_t usual)
{
    for (uint64_t i = 0; i < batch->issue_count; i++)
        free(batch->issues[i].error);
    for (uint64_t i = 0; i < batch->replaced_count; i++)
        free(batch->replaced[i]);
    for (uint32_t i = 0; i < batch->path_count; i++)
        free(batch->paths[i]);
    batch->filled = batch->part_count = batch->path_count = 0;
    batch->document_count = batch->issue_count = batch->replaced_count = 0;
    memset(&batch->counts, 0, sizeof batch->counts);
    batch->pause = false;
    batch->usual = usual;
    if (batch->capacity > usual) {
        free(batch->bytes);
        batch->bytes = NULL;
        batch->capacity = 0;
    }
}

void corpus_batch_release(struct corpus_batch *batch)
{
    if (batch->capacity > batch->usual || batch->replaced_count)
        batch_clear(batch, batch->usual);
}

void corpus_batch_free(struct corpus_batch *batch)
{
    batch_clear(batch, 0);
    free(batch->bytes);
    free(batch->parts);
    free(batch->documents);
    free(batch->issues);
    free(batch->replaced);
    free(batch->paths);
    memset(batch, 0, sizeof *batch);
}

bool batch_reserve(struct corpus_batch *batch, uint64_t capacity)
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

/* Room for one more element; the new list, or NULL. */
static void *list_grow(void *list, uint64_t count, uint64_t *capacity, size_t element)
{
    if (count < *capacity)
        return list;
    const uint64_t more = *capacity ? 2 * *capacity : 64;
    void *grown = more < SIZE_MAX / 2 / element ? realloc(list, (size_t)more * element) : NULL;
    if (grown)
        *capacity = more;
    return grown;
}

/* Declares `slot`, the new last element of a list of the batch, zeroed; leaves the function with NULL without memory.
 */
#define LIST_ADD(type, list, count, capacity)                                                                          \
    uint64_t room = batch->capacity;                                                                                   \
    type *grown = list_grow(batch->list, batch->count, &room, sizeof *grown);                                          \
    if (!grown)                                                                                                        \
        return NULL;                                                                                                   \
    batch->list = grown;                                                                                               \
    batch->capacity = (__typeof__(batch->capacity))room;                                                               \
    type *slot = &grown[batch->count++];                                                                               \
    memset(slot, 0, sizeof *slot)

struct corpus_part *batch_part(struct corpus_batch *batch)
{
    LIST_ADD(struct corpus_part, parts, part_count, part_capacity);
    return slot;
}

struct corpus_document *batch_document(struct corpus_batch *batch)
{
    LIST_ADD(struct corpus_document, documents, document_count, document_capacity);
    return slot;
}

struct corpus_issue *batch_issue(struct corpus_batch *batch)
{
    LIST_ADD(struct corpus_issue, issues, issue_count, issue_capacity);
    slot->part = batch->part_count;
    slot->record = UINT64_MAX;
    slot->offset = TOKMAP_NO_OFFSET;
    return slot;
}

char *batch_text(struct corpus_batch *batch, uint64_t bytes)
{
    LIST_ADD(char *, replaced, replaced_count, replaced_capacity);
    *slot = bytes < SIZE_MAX / 2 ? malloc((size_t)bytes + 1) : NULL;
    return *slot;
}

const char *batch_path(struct corpus_batch *batch, const char *path)
{
    LIST_ADD(char *, paths, path_count, path_capacity);
    *slot = strdup(path);
    return *slot;
}
