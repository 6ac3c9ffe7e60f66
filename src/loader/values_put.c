/* SPDX-License-Identifier: MIT */
/*
 * values_put.c - tokmap_values_put(): the tokens whose values a batch has. For each row a table has the token of the
 * dataset that is the target of each column, and consecutive ones are put together.
 *
 *     row       tokens 100 101 102 | 7 8 9 | padding      of a plan, with two documents
 *     targets          101 102  -    8 9  -  -
 *     puts      101..102 and 8..9; token 7 is no target of its document
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "dataset/opened_dataset.h"
#include "dataset/values_writer.h"
#include "loader_state.h"
#include "run/exclusion.h"

#define NO_TOKEN UINT64_MAX

struct putting {
    struct tokmap_values_writer *writer;
    const struct tokmap_loader *loader;
    const struct tokmap_dataset *dataset; /* of the source */
    uint64_t source, first_token;         /* of that dataset in the writer's */
    const struct tokmap_batch *batch;
    struct tokmap_extent *extents;
    uint64_t extents_most;
    struct chunk *chunks;
    uint64_t *targets; /* of a row, by column */
};

/* Finds the source, and where its dataset is in the writer's. */
static enum tokmap_status source_find(struct putting *putting, const char *name, struct tokmap_error *error)
{
    const struct tokmap_loader *loader = putting->loader;
    const struct tokmap_dataset *whole = putting->writer->dataset;
    while (name && putting->source < loader->sources && strcmp(loader->source[putting->source].name, name) != 0)
        putting->source++;
    if (putting->source == loader->sources || (!name && loader->sources > 1))
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "source",
                               name ? " '%.64s' is not in the run" : " must be named, because the run has several",
                               name);
    putting->dataset = loader->source[putting->source].dataset;
    if (!memcmp(putting->dataset->content, whole->content, sizeof whole->content))
        return TOKMAP_OK;
    putting->first_token = putting->dataset->part_first;
    return memcmp(putting->dataset->whole, whole->content, sizeof whole->content) == 0
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_MISMATCH, putting->dataset->name, TOKMAP_NO_OFFSET,
                           "the source's dataset is not the one whose values are written, %s, or a part of it",
                           whole->name);
}

/* Fills the table of targets of a row. */
static enum tokmap_status targets_find(const struct putting *putting, const struct tokmap_place *place,
                                       uint64_t *extents, struct tokmap_error *error)
{
    const uint64_t columns = putting->batch->seq_len;
    struct exclusion_walk walk;
    uint64_t first, count, row = 0;
    const enum tokmap_status status =
        run_row_extents(putting->loader->run, place, putting->extents, putting->extents_most, extents, error);
    if (status)
        return status;
    memset(putting->targets, 0xff, (size_t)columns * sizeof *putting->targets);
    for (uint64_t e = 0; e < *extents; row += putting->extents[e++].tokens)
        for (uint64_t i = 1; i < putting->extents[e].tokens && row + i <= columns; i++)
            if (!extent_is_padding(&putting->extents[e]))
                putting->targets[row + i - 1] = (putting->extents[e].first_token + i) % putting->dataset->tokens;
    if (!putting->loader->exclusions || !*extents)
        return TOKMAP_OK;
    exclusion_walk_begin(&walk, putting->loader->exclusions, place, putting->extents, *extents);
    while (exclusion_walk_next(&walk, &first, &count))
        for (uint64_t i = first; i <= first + count && i <= columns; i++) /* also the token after them */
            if (i)
                putting->targets[i - 1] = NO_TOKEN;
    return TOKMAP_OK;
}

/* Puts the values of a row. */
static enum tokmap_status row_put(const struct putting *putting, uint64_t row, const void *const *values,
                                  struct tokmap_error *error)
{
    const struct tokmap_values_writer *writer = putting->writer;
    const struct tokmap_batch *batch = putting->batch;
    uint64_t extents, at = row * batch->columns;
    enum tokmap_status status = targets_find(putting, &batch->places[row], &extents, error);
    if (status || !extents)
        return status;
    const uint64_t chunks = columns_of_row(&putting->loader->fill->context.columns, batch->seq_len, putting->extents,
                                           extents, putting->chunks);
    for (uint64_t k = 0; k < chunks && !status; at += putting->chunks[k++].count) {
        const uint64_t *targets = putting->targets + putting->chunks[k].first;
        for (uint64_t i = 0, count; i < putting->chunks[k].count && !status; i += count) {
            for (count = 1; i + count < putting->chunks[k].count && targets[i] != NO_TOKEN &&
                            targets[i + count] == targets[i] + count;)
                count++;
            if (targets[i] == NO_TOKEN)
                continue;
            const void *from[VALUES_ARRAYS_MOST];
            for (uint32_t a = 0; a < writer->array_count; a++)
                from[a] = (const uint8_t *)values[a] + (at + i) * writer->arrays[a].value_bytes;
            status = values_put_at(putting->writer, putting->first_token + targets[i], count, from, error);
        }
    }
    return status;
}

enum tokmap_status tokmap_values_put(struct tokmap_values_writer *writer, struct tokmap_loader *loader,
                                     const struct tokmap_batch *batch, const char *source, const void *const *values,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = values_arguments_check(writer, values, error);
    if (status)
        return status;
    if (!loader || !batch || loader_is_forked(loader) || (batch->count && !batch->places))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the loader or the batch is NULL, or of another process");
    struct putting putting = {.writer = writer, .loader = loader, .batch = batch};
    status = source_find(&putting, source, error);
    if (status)
        return status;
    const uint64_t extents_most = putting.extents_most = run_extents_most(loader->run);
    putting.extents = malloc((size_t)extents_most * sizeof *putting.extents);
    putting.chunks =
        malloc((size_t)columns_chunks_most(&loader->fill->context.columns, extents_most) * sizeof *putting.chunks);
    putting.targets = malloc((size_t)batch->seq_len * sizeof *putting.targets + 1);
    if (!putting.extents || !putting.chunks || !putting.targets)
        status = error_set_memory(error, "the targets of a row", batch->seq_len * sizeof *putting.targets);
    for (uint64_t row = 0; row < batch->count && !status; row++)
        if (batch->places[row].source == putting.source)
            status = row_put(&putting, row, values, error);
    free(putting.extents);
    free(putting.chunks);
    free(putting.targets);
    return status;
}
