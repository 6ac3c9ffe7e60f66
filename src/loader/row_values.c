/* SPDX-License-Identifier: MIT */
/*
 * row_values.c - see row_values.h. Example: a row of 4 columns shows tokens 100 to 104, of which 104 is only a target,
 * and an array has 8 bytes a token. The values of its columns are those of tokens 101 to 104: bytes 808 to 839 of the
 * dataset of values, one extent, which is read as 32 tokens would be.
 */
#include "row_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "dataset/dataset.h"
#include "dataset/dataset_values.h"
#include "fetch_plan.h"
#include "run/exclusion.h"
#include "run/run.h"

/* ---- opening ---- */

/* Opens one array of all sources. */
static enum tokmap_status array_open(struct tokmap_loader *loader, struct row_values_array *array, const char *name,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    array->datasets = calloc(loader->sources, sizeof *array->datasets);
    array->gathers = calloc(loader->sources, sizeof *array->gathers);
    if (!array->datasets || !array->gathers)
        return error_set_memory(error, "values", loader->sources * sizeof *array->datasets);
    for (uint64_t i = 0; i < loader->sources && !status; i++) {
        const struct values_array before = array->type;
        status = dataset_values_open(&array->datasets[i], &array->type, loader->source[i].dataset, name, error);
        if (!status && i && !values_type_equals(&before, &array->type))
            status = error_set(error, TOKMAP_ERROR_MISMATCH, NULL, TOKMAP_NO_OFFSET,
                               "the values '%s' of source '%s' are %s, but those of source '%s' are %s; make them with "
                               "one type",
                               name, loader->source[i].name, VALUES_TYPE(&array->type), loader->source[0].name,
                               VALUES_TYPE(&before));
    }
    return status;
}

enum tokmap_status row_values_open(struct tokmap_loader *loader, const char *names, struct tokmap_error *error)
{
    struct row_values *values = &loader->fill->values;
    const struct tokmap_run_info info = info_of_run(loader->run);
    const uint64_t extents = context_extents_most(&loader->fill->context, run_extents_most(loader->run));
    enum tokmap_status status = TOKMAP_OK;
    if (loader->options.values_present > 1 || (loader->options.values_present && !names))
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "values_present",
                               " is %" PRIu32 "%s; set it to 0, or to 1 with names in values",
                               loader->options.values_present, names ? "" : " without values");
    for (const char *end; names && *(names += strspn(names, " ")) && !status; names = end) {
        char name[VALUES_NAME_MOST + 2] = "";
        end = names + strcspn(names, " ");
        memcpy(name, names, (size_t)min64((uint64_t)(end - names), sizeof name - 1));
        if (values->count == VALUES_ARRAYS_MOST)
            return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "values", " has more than %d names",
                                   VALUES_ARRAYS_MOST);
        struct row_values_array *array = &values->arrays[values->count++];
        status = array_open(loader, array, name, error);
        for (uint32_t i = 0; i + 1 < values->count && !status; i++)
            if (!strcmp(values->arrays[i].type.name, name))
                status =
                    error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "values", " has the name '%s' twice", name);
        array->before = values->column_bytes;
        values->column_bytes += array->type.value_bytes;
    }
    if (status || !values->count)
        return status;
    values->present = loader->options.values_present;
    values->extents = calloc(extents, sizeof *values->extents);
    values->read = calloc(extents, sizeof *values->read);
    values->bits = calloc(mark_words(info.seq_len_most), sizeof *values->bits);
    if (!values->extents || !values->read || !values->bits)
        return error_set_memory(error, "values", extents * sizeof *values->extents);
    return TOKMAP_OK;
}

static bool order(void *user, uint64_t number, struct row_extents *row);
static struct row_extents row_reads(const void *user, const struct tokmap_place *place);

enum tokmap_status row_values_open_files(struct tokmap_loader *loader, uint32_t window,
                                         const struct assignment_rule *rule, struct tokmap_error *error)
{
    struct row_values *values = &loader->fill->values;
    const struct gather_options how = {.trust_files = true};
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t k = 0; k < values->count && !status; k++) {
        struct row_values_array *array = &values->arrays[k];
        const struct residency_options options = {
            .datasets = (const struct tokmap_dataset *const *)array->datasets,
            .sources = loader->sources,
            .window = window,
            .drop_behind = loader->options.drop_behind,
            .trust_files = true, /* an index has no hashes of them */
            .unmapped = loader->options.deadline_ns != 0,
            .in_order = info_of_run(loader->run).order == TOKMAP_SEQUENTIAL,
            .order = order,
            .user = array,
        };
        array->loader = loader->fill;
        array->run = loader->run;
        status = residency_open(&array->residency, &options, error);
        for (uint64_t i = 0; i < loader->sources && !status; i++)
            status = gather_open(&array->gathers[i], &array->residency->sources[i], &how, error);
        const struct fetch_reads reads = {row_reads, array};
        if (!status)
            status = fetch_plan_new(&array->fetches, array->residency, &loader->fill->schedule, rule,
                                    &loader->fill->context, array->gathers, &reads, error);
    }
    return status;
}

void row_values_close(struct tokmap_loader *loader)
{
    struct row_values *values = &loader->fill->values;
    for (uint32_t k = 0; k < values->count; k++) {
        struct row_values_array *array = &values->arrays[k];
        for (uint64_t i = 0; i < loader->sources && array->gathers; i++)
            gather_close(array->gathers[i]);
        fetch_plan_free(array->fetches);
        residency_close(array->residency);
        for (uint64_t i = 0; i < loader->sources && array->datasets; i++)
            tokmap_dataset_close(array->datasets[i]);
        free(array->gathers);
        free(array->datasets);
    }
    free(values->extents);
    free(values->read);
    free(values->bits);
}

const char *row_values_names(const struct row_values *values, char names[ROW_VALUES_NAMES])
{
    size_t at = 0;
    for (uint32_t k = 0; k < values->count; k++)
        at += (size_t)snprintf(names + at, ROW_VALUES_NAMES - at, "%s%s", k ? " " : "", values->arrays[k].type.name);
    return values->count ? names : NULL;
}

uint64_t row_values_bytes(const struct row_values *values, uint64_t seq_len)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < values->count; k++)
        most = max64(most, values->arrays[k].type.value_bytes);
    return most * seq_len;
}

void row_values_set_pool(struct row_values *values, struct read_pool *pool, bool asks, bool deadline)
{
    for (uint32_t k = 0; k < values->count; k++)
        residency_set_pool(values->arrays[k].residency, pool, asks, deadline);
}

void row_values_begin(struct row_values *values, uint64_t rows)
{
    for (uint32_t k = 0; k < values->count; k++)
        residency_begin(values->arrays[k].residency, rows);
}

void row_values_restart(struct row_values *values)
{
    for (uint32_t k = 0; k < values->count; k++) {
        fetch_plan_restart(values->arrays[k].fetches);
        residency_restart(values->arrays[k].residency);
    }
}

/* ---- what is read ---- */

/* A row's chunks of columns, one after another. */
struct cutting {
    struct columns_cut cut;
    const struct chunk *chunks;
    uint64_t count, columns; /* columns: of all of them */
    struct chunk whole;
};

/* Begins with the first chunk of a row of `extents` extents, which are in values->extents. */
static void cutting_begin(struct cutting *cutting, const struct loader_fill *fill, uint64_t source, uint64_t seq_len,
                          uint64_t extents)
{
    const struct context *context = &fill->context;
    const uint64_t tokens = extents ? gather_tokens(fill->gathers[source]) : 0;
    *cutting = (struct cutting){.cut = {fill->values.extents, extents, tokens, 0, 0}, .whole = {0, seq_len}};
    cutting->chunks = &cutting->whole;
    cutting->count = 1;
    if (context_cuts(context)) {
        cutting->count = columns_of_row(&context->columns, seq_len, fill->values.extents, extents, context->chunks);
        cutting->chunks = context->chunks;
    }
}

/* Writes the extents of the values of a chunk's targets, in bytes, to `into`. Returns their number. */
static uint64_t chunk_extents(struct cutting *cutting, const struct chunk *chunk, uint64_t unit,
                              struct tokmap_extent *into)
{
    const uint64_t count = columns_cut_next(&cutting->cut, chunk->first + 1, chunk->count, into);
    for (uint64_t i = 0; i < count; i++) {
        if (!extent_is_padding(&into[i]))
            into[i].first_token *= unit;
        into[i].tokens *= unit;
    }
    return count;
}

/* Finds what is read of an array's values for a row. */
static struct row_extents row_reads(const void *user, const struct tokmap_place *place)
{
    const struct row_values_array *array = user;
    struct loader_fill *fill = array->loader;
    struct row_extents row = {place->source, fill->values.read, 0};
    struct run_step phase;
    struct cutting cutting;
    uint64_t extents;
    if (place->source == TOKMAP_NO_SOURCE ||
        run_row_extents(array->run, place, fill->values.extents, fill->queue.extents_most, &extents, NULL))
        return row;
    run_phase_of(array->run, place->step, &phase);
    cutting_begin(&cutting, fill, place->source, phase.seq_len, extents);
    for (uint64_t k = 0; k < cutting.count; k++) {
        const uint64_t first = row.count;
        const uint64_t end =
            first + chunk_extents(&cutting, &cutting.chunks[k], array->type.value_bytes, fill->values.read + first);
        for (uint64_t i = first; i < end; i++)
            if (!extent_is_padding(&fill->values.read[i]))
                fill->values.read[row.count++] = fill->values.read[i];
    }
    return row;
}

/* Reports row `number` of the order: see struct residency_options. */
static bool order(void *user, uint64_t number, struct row_extents *row)
{
    const struct row_values_array *array = user;
    const struct tokmap_place *place = row_queue_ahead(&array->loader->queue, number);
    if (place)
        *row = row_reads(array, place);
    return place;
}

/* ---- a row ---- */

/* Returns where column 0 of row i of a part is written: an array, or, from part `count` on, which of its columns are
 * present. */
static uint8_t *row_at(const struct tokmap_loader *loader, const struct slot *slot, uint64_t i, uint32_t part,
                       uint64_t bytes)
{
    const struct row_values *values = &loader->fill->values;
    const uint64_t columns = slot->columns * loader->needs.chunks;
    if (!values->out)
        return slot->memory + slot->layout.values_at +
               row_values_part_at(values, slot->shape.rows * slot->columns, part) + i * columns * bytes;
    void *out = part < values->count ? values->out->values[part] : values->out->values_present[part - values->count];
    return (uint8_t *)out + i * columns * bytes;
}

/* Clears the bytes of excluded targets in a chunk, which begins at `into`. */
static void exclude(const struct tokmap_loader *loader, const struct tokmap_place *place, uint64_t extents,
                    const struct chunk *chunk, uint64_t bytes, uint8_t *into)
{
    struct exclusion_walk walk;
    uint64_t first, count;
    if (!loader->exclusions || !extents)
        return;
    exclusion_walk_begin(&walk, loader->exclusions, place, loader->fill->values.extents, extents);
    while (exclusion_walk_next(&walk, &first, &count)) {
        /* A target counts neither if it is excluded nor if its input is. */
        const uint64_t from = max64(max64(first, 1) - 1, chunk->first);
        const uint64_t end = min64(first + count, chunk->first + chunk->count);
        if (from < end)
            memset(into + (from - chunk->first) * bytes, 0, (size_t)((end - from) * bytes));
    }
}

/* Fills an array of a row of `extents` extents. */
static enum tokmap_status fill_array(struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint32_t k,
                                     uint64_t extents, bool *cold, struct tokmap_error *error)
{
    struct row_values *values = &loader->fill->values;
    const struct tokmap_place *place = &slot->places[i];
    const uint64_t unit = values->arrays[k].type.value_bytes;
    uint8_t *into = row_at(loader, slot, i, k, unit);
    struct cutting cutting;
    enum tokmap_status status = TOKMAP_OK;
    cutting_begin(&cutting, loader->fill, place->source, slot->seq_len, extents);
    for (uint64_t c = 0; c < cutting.count && !status; c++) {
        const struct chunk *chunk = &cutting.chunks[c];
        const uint64_t count = chunk_extents(&cutting, chunk, unit, values->read), bytes = chunk->count * unit;
        if (extents)
            status =
                gather_row(values->arrays[k].gathers[place->source], values->read, count, bytes, into, cold, error);
        else
            gather_padding(0, 1, bytes, into);
        if (!status)
            exclude(loader, place, extents, chunk, unit, into);
        into += bytes;
    }
    return status;
}

/* Fills which columns of a row have values. */
static enum tokmap_status fill_present(struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint32_t k,
                                       uint64_t extents, struct tokmap_error *error)
{
    struct row_values *values = &loader->fill->values;
    const struct tokmap_place *place = &slot->places[i];
    uint8_t *into = row_at(loader, slot, i, values->count + k, 1);
    uint64_t tokens = 0;
    struct cutting cutting;
    for (uint64_t e = 0; e < extents; e++)
        tokens += values->extents[e].tokens;
    const enum tokmap_status status =
        uncounted_fill(extents ? gather_uncounted(values->arrays[k].gathers[place->source]) : NULL, values->extents,
                       extents, slot->seq_len, values->bits, error);
    cutting_begin(&cutting, loader->fill, place->source, slot->seq_len, extents);
    for (uint64_t c = 0; c < cutting.count && !status; c++) {
        const struct chunk *chunk = &cutting.chunks[c];
        for (uint64_t j = chunk->first; j < chunk->first + chunk->count; j++)
            into[j - chunk->first] = j + 1 < tokens && !(values->bits[j / 64] >> j % 64 & 1);
        exclude(loader, place, extents, chunk, 1, into);
        into += chunk->count;
    }
    return status;
}

/* Announces a row to the residency of an array; named: it is not in the order. */
static void announce(const struct tokmap_loader *loader, const struct slot *slot, uint64_t i,
                     struct row_values_array *array, bool named)
{
    const struct row_queue *queue = &loader->fill->queue;
    if (!named && array->fetches)
        fetch_plan_next(array->fetches, queue->taken + i);
    if (!named) {
        residency_next(array->residency, queue->taken + i, queue->taken + slot->count);
        return;
    }
    const struct row_extents row = row_reads(array, &slot->places[i]);
    residency_named(array->residency, &row, queue->taken);
}

/* Reports whether its values were in the page cache. The storage is asked for those of the rows that follow a named one
 * that was not. */
static void report(const struct tokmap_loader *loader, const struct slot *slot, uint64_t i,
                   struct row_values_array *array, bool named, bool cold)
{
    const struct row_queue *queue = &loader->fill->queue;
    if (cold)
        __atomic_store_n(&loader->fill->cold_reads, loader->fill->cold_reads + 1, __ATOMIC_RELAXED);
    if (!named && cold)
        residency_was_cold(array->residency, queue->taken + i + 1);
    if (!named)
        return;
    struct row_extents row = row_reads(array, &slot->places[i]);
    residency_named_was(array->residency, &row, cold, queue->taken);
    for (uint64_t later = i + 1; later < slot->count && cold && !i; later++) {
        row = row_reads(array, &slot->places[later]);
        residency_ask(array->residency, &row);
    }
    residency_flush(array->residency);
}

enum tokmap_status row_values_fill(struct tokmap_loader *loader, struct slot *slot, uint64_t i, bool named,
                                   struct tokmap_error *error)
{
    struct row_values *values = &loader->fill->values;
    const struct tokmap_place *place = &slot->places[i];
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t k = 0; k < values->count && !status; k++) {
        struct row_values_array *array = &values->arrays[k];
        uint64_t extents = 0;
        bool cold = false;
        announce(loader, slot, i, array, named);
        if (place->source != TOKMAP_NO_SOURCE)
            status =
                run_row_extents(loader->run, place, values->extents, loader->fill->queue.extents_most, &extents, error);
        if (!status)
            status = fill_array(loader, slot, i, k, extents, &cold, error);
        if (!status && values->present)
            status = fill_present(loader, slot, i, k, extents, error);
        if (!status)
            report(loader, slot, i, array, named, cold);
    }
    return status;
}

/* ---- outputs ---- */

uint32_t row_values_copies(const struct tokmap_loader *loader, const struct slot *slot, const struct tokmap_out *out,
                           struct backend_copy copies[BACKEND_COPIES_MOST])
{
    const struct row_values *values = &loader->fill->values;
    const uint64_t elements = slot->count * slot->columns * loader->needs.chunks;
    const uint32_t parts = values->count << values->present;
    for (uint32_t part = 0; part < parts; part++) {
        const bool present = part >= values->count;
        const struct values_array *type = &values->arrays[part % values->count].type;
        copies[part] = (struct backend_copy){
            .name = present ? "values_present" : "values",
            .into = (uintptr_t)(present ? out->values_present[part - values->count] : out->values[part]),
            .from = slot->layout.values_at + row_values_part_at(values, slot->shape.rows * slot->columns, part),
            .bytes = elements * (present ? 1 : type->value_bytes),
            .element = present ? 1 : values_element_bytes(type->element),
        };
    }
    return parts;
}

enum tokmap_status row_values_check_out(const struct tokmap_loader *loader, const struct tokmap_out *out,
                                        struct tokmap_error *error)
{
    const struct row_values *values = &loader->fill->values;
    for (uint32_t k = 0; k < values->count; k++)
        if (!out->values[k] || (values->present && !out->values_present[k]))
            return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, out->values[k] ? "values_present" : "values",
                                   "[%" PRIu32 "] is NULL, but the loader was opened with the values '%s'; set it to "
                                   "memory for %" PRIu64 " elements",
                                   k, values->arrays[k].type.name, loader->elements_most);
    return TOKMAP_OK;
}

enum tokmap_status tokmap_loader_values(const struct tokmap_loader *loader, uint64_t k, struct tokmap_values_info *info)
{
    if (!loader || k >= loader->fill->values.count || struct_size_check(info, sizeof *info, "tokmap_values_info", NULL))
        return TOKMAP_ERROR_ARGUMENT;
    const struct values_array *type = &loader->fill->values.arrays[k].type;
    struct tokmap_values_info found = {.size = sizeof found,
                                       .name = type->name,
                                       .element = values_element_name(type->element),
                                       .dimensions = type->dimensions,
                                       .bytes = type->value_bytes};
    memcpy(found.shape, type->shape, sizeof found.shape);
    return struct_copy_out(info, &found, sizeof found, "tokmap_values_info", NULL);
}
