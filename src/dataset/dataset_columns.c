/* SPDX-License-Identifier: MIT */
/*
 * dataset_columns.c - the columns of a dataset: which there are, and the value of one for a document.
 *
 * Shards may have different columns, in a different order. The columns of a dataset are those of its shards, in the
 * order in which they first appear. To find them in n log n steps whatever the shards have, all names are collected
 * with their positions, sorted by name, freed of repetitions, and sorted by position again.
 */
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "dataset.h"
#include "dataset_fetch.h"
#include "documents.h"
#include "format/index_columns.h"
#include "open_shards.h"
#include "opened_dataset.h"

struct named {
    const char *name;
    uint64_t position; /* number of the shard * COLUMNS_MAX + number of the column */
};

static int by_name(const void *a, const void *b)
{
    const struct named *one = a, *other = b;
    const int names = strcmp(one->name, other->name);
    return names ? names : (one->position > other->position) - (one->position < other->position);
}

static int by_position(const void *a, const void *b)
{
    const struct named *one = a, *other = b;
    return (one->position > other->position) - (one->position < other->position);
}

/* Returns the name of a column of a shard, which is held, where it lives as long as the dataset: in the index, or, if
 * the shard may be closed again, in a list that has each name once. NULL without memory. */
static const char *name_of(const struct tokmap_dataset *dataset, uint64_t number, const char *name)
{
    if (shard_if_kept(dataset, number))
        return name;
    struct column_name **end = &dataset->column_names->next, *made = NULL;
    const size_t bytes = strlen(name) + 1;
    for (;;) {
        struct column_name *next = __atomic_load_n(end, __ATOMIC_ACQUIRE);
        if (next && !strcmp(next->text, name)) {
            free(made);
            return next->text;
        }
        if (!next && !made) {
            if (!(made = calloc(1, sizeof *made + bytes)))
                return NULL;
            memcpy(made->text, name, bytes);
        }
        if (!next && __atomic_compare_exchange_n(end, &next, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return made->text;
        if (next && strcmp(next->text, name) != 0)
            end = &next->next;
    }
}

/* Stores the names of all columns of all shards in all[0 .. *count), which the caller frees. */
static enum tokmap_status collect(const struct tokmap_dataset *dataset, struct named **all, size_t *count,
                                  struct tokmap_error *error)
{
    struct index_column columns[COLUMNS_MAX];
    uint64_t room = 0;
    *all = NULL;
    *count = 0;
    for (uint64_t s = 0; s < dataset->shard_count; s++) {
        const struct shard *shard;
        uint32_t found;
        dataset_fetch_shards(dataset, s);
        enum tokmap_status status = shard_hold(dataset, s, &shard, error);
        if (status)
            return status;
        status = index_columns(&shard->index, columns, &found, error);
        for (uint32_t c = 0; c < found && !status; c++) {
            if (!list_room(all, *count, &room, sizeof **all)) {
                status = error_set_memory(error, "the names of columns", room * sizeof **all);
                break;
            }
            const char *name = name_of(dataset, s, columns[c].name);
            (*all)[*count] = (struct named){name, s * COLUMNS_MAX + c};
            *count += name != NULL;
            status = name ? status : error_set_memory(error, "the name of a column", strlen(columns[c].name));
        }
        shard_release(dataset, s);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

enum tokmap_status tokmap_dataset_columns(const struct tokmap_dataset *dataset, const char **names, size_t capacity,
                                          size_t *count, struct tokmap_error *error)
{
    if (!dataset || !count || (!names && capacity))
        return dataset_no_room(error);
    struct named *all;
    size_t found, kept = 0;
    *count = 0;
    enum tokmap_status status = collect(dataset, &all, &found, error);
    if (!status && found) {
        qsort(all, found, sizeof *all, by_name);
        for (size_t i = 0; i < found; i++)
            if (!i || strcmp(all[i].name, all[kept - 1].name) != 0)
                all[kept++] = all[i];
        qsort(all, kept, sizeof *all, by_position);
        for (size_t i = 0; i < kept && i < capacity; i++)
            names[i] = all[i].name;
        *count = kept;
        if (kept > capacity && names)
            status = error_set(error, TOKMAP_ERROR_LIMIT, dataset->name, TOKMAP_NO_OFFSET,
                               "the dataset has %zu columns, but there is room for only %zu names", kept, capacity);
    }
    free(all);
    return status;
}

/* Looks for a column in one shard, which is held if *found: it is there. */
static enum tokmap_status find(const struct tokmap_dataset *dataset, uint64_t number, const char *name,
                               const struct shard **shard, struct index_column *column, bool *found,
                               struct tokmap_error *error)
{
    struct index_column columns[COLUMNS_MAX];
    uint32_t count = 0;
    *found = false;
    enum tokmap_status status = shard_hold(dataset, number, shard, error);
    if (status)
        return status;
    status = index_columns(&(*shard)->index, columns, &count, error);
    for (uint32_t c = 0; c < count && !status && !*found; c++)
        if (!strcmp(columns[c].name, name)) {
            *column = columns[c];
            *found = true;
        }
    if (!*found)
        shard_release(dataset, number);
    return status;
}

static enum tokmap_status no_column(const struct tokmap_dataset *dataset, const char *name, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_NOT_FOUND, dataset->name, TOKMAP_NO_OFFSET,
                     "the dataset has no column '%.100s'; `tokmap info` lists its columns", name);
}

enum tokmap_status tokmap_dataset_column(const struct tokmap_dataset *dataset, const char *name,
                                         struct tokmap_column_info *info, struct tokmap_error *error)
{
    if (!dataset || !name)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the dataset or the name is NULL");
    struct tokmap_column_info sum = TOKMAP_COLUMN_INFO_INIT;
    enum tokmap_status status = struct_size_check(info, sizeof sum, "tokmap_column_info", error);
    for (uint64_t s = 0; s < dataset->shard_count && !status; s++) {
        const struct shard *shard;
        struct index_column column;
        bool found;
        status = find(dataset, s, name, &shard, &column, &found, error);
        if (status || !found)
            continue;
        sum.name = sum.name ? sum.name : name_of(dataset, s, column.name);
        if (!sum.name)
            status = error_set_memory(error, "the name of a column", strlen(name));
        sum.shards++;
        sum.documents += dataset->slots[s].place.documents;
        sum.values += column.head.values;
        sum.bytes += column.layout.end - column.layout.name_at;
        shard_release(dataset, s);
    }
    if (!status && !sum.shards)
        status = no_column(dataset, name, error);
    return status ? status : struct_copy_out(info, &sum, sizeof sum, "tokmap_column_info", error);
}

enum tokmap_status tokmap_dataset_value(const struct tokmap_dataset *dataset, uint64_t number, const char *name,
                                        struct tokmap_value *value, struct tokmap_error *error)
{
    if (!dataset || !name || !value)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the dataset, the name, or the place for the result is NULL");
    if (number >= dataset->documents)
        return error_set(error, TOKMAP_ERROR_RANGE, dataset->name, TOKMAP_NO_OFFSET,
                         "document %" PRIu64 " does not exist: the dataset has %" PRIu64 " documents, counted from 0",
                         number, dataset->documents);
    struct index_column column;
    const struct shard *shard;
    bool found = false;
    enum tokmap_status status = TOKMAP_OK;
    if (dataset->shard_count) {
        const uint64_t at = dataset_shard_of_document(dataset, number);
        status = find(dataset, at, name, &shard, &column, &found, error);
        if (!status && found) {
            const struct index *index;
            status = shard_index_keep(dataset, at, &index, error);
            if (!status)
                status =
                    index_value(index, &column, number - shard->place.first_document + shard->place.skipped_documents,
                                &value->json, &value->bytes, error);
            shard_release(dataset, at);
            return status;
        }
    }
    for (uint64_t s = 0; s < dataset->shard_count && !status && !found; s++) {
        status = find(dataset, s, name, &shard, &column, &found, error);
        if (!status && found)
            shard_release(dataset, s);
    }
    if (!status && !found)
        status = no_column(dataset, name, error);
    if (!status)
        *value = (struct tokmap_value){"", 0}; /* other shards have the column */
    return status;
}
