/* SPDX-License-Identifier: MIT */
#include "sorted_units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "work/work_units.h"

#define CHUNKS_MOST ((uint64_t)1 << 24) /* of a unit; a chunk of the least size has 4 KiB */
#define OFFSET_MOST ((uint64_t)1 << 62)
#define READ_BYTES ((uint32_t)1 << 16)

static const char lacking[] = "the sorted units"; /* in messages about memory */

/* Reports files of a unit that cannot be read, or are not what was written. */
static enum tokmap_status lost(const char *path, int system, uint64_t unit, struct tokmap_error *error)
{
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                            "the sorted documents of unit %" PRIu64
                            " cannot be read; if they are lost, remove the files packed-%06" PRIu64
                            " and cuts-000000 in the folder above this one's, and run all tasks again",
                            unit, unit);
}

static enum tokmap_status damaged(const char *path, uint64_t offset, uint64_t unit, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, path, offset,
                     "the sorted documents of unit %" PRIu64 " are damaged; remove the files packed-%06" PRIu64
                     " and cuts-000000 in the folder above this one's, and run all tasks again",
                     unit, unit);
}

enum tokmap_status sorted_unit_add(struct stage_writer *writer, const struct shuffle_sorted *sorted,
                                   const struct shard_set_result *sets, uint64_t lines, struct tokmap_error *error)
{
    struct sorted_totals totals = {
        .chunks = sorted->count, .files = sorted->files, .long_bytes = sorted->long_bytes, .lines = lines};
    for (uint32_t i = 0; i < SPLIT_SETS_MOST; i++) {
        totals.sets[i].documents = sets[i].documents;
        totals.sets[i].tokens = sets[i].tokens;
    }
    enum tokmap_status status = stage_writer_add(writer, &totals, sizeof totals, error);
    if (!status)
        status = stage_writer_next(writer, error);
    for (uint64_t i = 0; i < sorted->count && !status; i++) {
        struct shuffle_chunk kept = sorted->chunks[i];
        kept.fd = 0;
        status = stage_writer_add(writer, &kept, sizeof kept, error);
    }
    return status;
}

/* Reads the totals of a unit, and counts its chunks. */
static enum tokmap_status totals_read(struct sorted_units *units, const struct stage_id *id, struct tokmap_error *error)
{
    struct sorted_unit *unit = &units->list[id->number];
    uint64_t listed = 0;
    enum tokmap_status status = stage_section_read(id, SORTED_TOTALS, &unit->totals, sizeof unit->totals, error);
    if (!status)
        status = stage_section_count(id, SORTED_CHUNKS, sizeof(struct shuffle_chunk), &listed, error);
    if (status)
        return status;
    const struct sorted_totals *totals = &unit->totals;
    if (totals->chunks != listed || listed > CHUNKS_MOST || totals->files > listed ||
        totals->long_bytes > OFFSET_MOST || totals->lines > OFFSET_MOST)
        return stage_corrupt(id, error);
    unit->first_chunk = units->chunk_count;
    unit->first_file = units->all.files;
    units->chunk_count += listed;
    units->all.files += totals->files;
    units->digest = hash64_seeded(totals, sizeof *totals, units->digest);
    for (uint32_t i = 0; i < SPLIT_SETS_MOST; i++) {
        if (totals->sets[i].documents > OFFSET_MOST || totals->sets[i].tokens > OFFSET_MOST)
            return stage_corrupt(id, error);
        units->all.sets[i].documents += totals->sets[i].documents;
        units->all.sets[i].tokens += totals->sets[i].tokens;
    }
    return units->all.files <= UINT32_MAX ? TOKMAP_OK : stage_corrupt(id, error);
}

/* Checks that the documents that are too long for a record are there. */
static enum tokmap_status long_check(const struct sorted_units *units, const struct stage_id *id,
                                     struct tokmap_error *error)
{
    struct sorted_unit *unit = &units->list[id->number];
    struct os_stat found = {0};
    unit->long_path = unit_path(units->folder, id->number, ".work/" SHUFFLE_LONG_NAME "-0");
    if (!unit->long_path)
        return error_set_memory(error, lacking, 0);
    if (!unit->totals.long_bytes)
        return TOKMAP_OK;
    const int system = os_stat(unit->long_path, &found);
    return system ? lost(unit->long_path, system, id->number, error)
           : found.kind != OS_KIND_FILE || found.bytes < unit->totals.long_bytes
               ? damaged(unit->long_path, TOKMAP_NO_OFFSET, id->number, error)
               : TOKMAP_OK;
}

/* Returns true if a chunk can follow `last` in the files of a unit; NULL: it is the first one. */
static bool chunk_is_good(const struct shuffle_chunk *chunk, const struct shuffle_chunk *last)
{
    const bool next = !last || chunk->file != last->file;
    const uint64_t file = last ? last->file + next : 0;
    const uint64_t begin = next ? 0 : shuffle_chunk_after(last);
    return chunk->file == file && !chunk->fd && chunk->begin == begin && chunk->end > begin &&
           chunk->end < OFFSET_MOST && chunk->set < SPLIT_SETS_MOST && chunk->keys &&
           chunk->keys <= (chunk->end - begin) / sizeof(struct shuffle_head);
}

/* Makes room for one more chunk. The memory grows with the chunks that are there, not with what totals say. */
static bool chunks_grow(struct sorted_units *units, uint64_t count, uint64_t *capacity)
{
    if (count < *capacity)
        return true;
    const uint64_t room = min64(2 * *capacity + 64, units->chunk_count);
    struct shuffle_chunk *grown = realloc(units->chunks, (size_t)room * sizeof *grown);
    units->chunks = grown ? grown : units->chunks;
    *capacity = grown ? room : *capacity;
    return grown != NULL;
}

/* Reads the chunks of a unit into its places of the list. */
static enum tokmap_status chunks_read(struct sorted_units *units, const struct stage_id *id, uint64_t *capacity,
                                      struct tokmap_error *error)
{
    const struct sorted_unit *unit = &units->list[id->number];
    struct sorted_totals sum = {.chunks = 0};
    struct shuffle_chunk last = {.file = 0};
    struct stage_reader reader;
    const void *record = NULL;
    enum tokmap_status status =
        stage_reader_open(&reader, id, SORTED_CHUNKS, sizeof(struct shuffle_chunk), READ_BYTES, error);
    while (!status) {
        struct shuffle_chunk chunk;
        status = stage_reader_next(&reader, &record, error);
        if (status || !record)
            break;
        memcpy(&chunk, record, sizeof chunk);
        if (sum.chunks == unit->totals.chunks || chunk.set >= units->sets ||
            !chunk_is_good(&chunk, sum.chunks ? &last : NULL)) {
            status = stage_corrupt(id, error);
            break;
        }
        if (!chunks_grow(units, unit->first_chunk + sum.chunks, capacity)) {
            status = error_set_memory(error, lacking, units->chunk_count * sizeof *units->chunks);
            break;
        }
        struct shuffle_chunk *kept = &units->chunks[unit->first_chunk + sum.chunks++];
        *kept = chunk;
        kept->file = (uint32_t)(unit->first_file + chunk.file);
        kept->fd = -1;
        units->digest = hash64_seeded(&chunk, sizeof chunk, units->digest);
        sum.files = chunk.file + 1;
        sum.sets[chunk.set].documents += chunk.keys;
        sum.sets[chunk.set].tokens += chunk.tokens;
        last = chunk;
    }
    stage_reader_free(&reader);
    sum.long_bytes = unit->totals.long_bytes;
    sum.lines = unit->totals.lines;
    return !status && memcmp(&sum, &unit->totals, sizeof sum) != 0 ? stage_corrupt(id, error) : status;
}

/* Puts the chunks in order of sets, and keeps that of units. */
static enum tokmap_status sets_order(struct sorted_units *units, struct tokmap_error *error)
{
    const uint64_t bytes = (units->chunk_count + 1) * sizeof *units->chunks;
    struct shuffle_chunk *ordered = malloc((size_t)bytes);
    uint64_t filled = 0;
    if (!ordered)
        return error_set_memory(error, lacking, bytes);
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++) {
        units->set_begins[set] = filled;
        for (uint64_t i = 0; i < units->chunk_count; i++)
            if (units->chunks[i].set == set)
                ordered[filled++] = units->chunks[i];
    }
    units->set_begins[SPLIT_SETS_MOST] = filled;
    free(units->chunks);
    units->chunks = ordered;
    return TOKMAP_OK;
}

enum tokmap_status sorted_units_read(struct sorted_units *units, const struct work_units *inputs, uint64_t seed,
                                     uint32_t sets, const struct stage_id *record, struct tokmap_error *error)
{
    struct stage_id id = *record;
    enum tokmap_status status = TOKMAP_OK;
    *units = (struct sorted_units){
        .folder = record->folder, .inputs = inputs, .seed = seed, .count = inputs->count, .sets = sets};
    units->list = calloc((size_t)inputs->count + 1, sizeof *units->list);
    if (!units->list)
        return error_set_memory(error, lacking, inputs->count * sizeof *units->list);
    for (uint64_t i = 0, records = 0; i < inputs->count && !status; i++) {
        id.number = i;
        status = totals_read(units, &id, error);
        records = inputs->list[i].begin ? records : 0;
        units->list[i].records_before = records;
        if (!status)
            status = long_check(units, &id, error);
        records += units->list[i].totals.lines;
    }
    for (uint64_t i = 0, capacity = 0; i < inputs->count && !status; i++) {
        id.number = i;
        status = chunks_read(units, &id, &capacity, error);
    }
    return status ? status : sets_order(units, error);
}

void sorted_units_free(struct sorted_units *units)
{
    for (uint64_t i = 0; units->list && i < units->count; i++)
        free(units->list[i].long_path);
    for (size_t i = 0; i < SORTED_OPEN; i++)
        if (units->files[i].open)
            os_close(units->files[i].fd);
    free(units->list);
    free(units->chunks);
    *units = (struct sorted_units){.count = 0};
}

/* ---- files ---- */

uint64_t sorted_units_of(const struct sorted_units *units, uint32_t file)
{
    uint64_t low = 0, high = units->count;
    while (low + 1 < high) { /* the last unit whose first file is not after this one, and that has files */
        const uint64_t middle = low + (high - low) / 2;
        if (units->list[middle].first_file <= file)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static char *file_path(const struct sorted_units *units, uint32_t file)
{
    char name[64];
    const uint64_t unit = sorted_units_of(units, file);
    (void)snprintf(name, sizeof name, ".work/" SHUFFLE_CHUNKS_NAME "-%" PRIu64, file - units->list[unit].first_file);
    return unit_path(units->folder, unit, name);
}

enum tokmap_status sorted_units_open(void *self, uint32_t file, int *fd, struct tokmap_error *error)
{
    struct sorted_units *units = self;
    const size_t slot = file % SORTED_OPEN;
    *fd = units->files[slot].fd;
    if (units->files[slot].open && units->files[slot].file == file)
        return TOKMAP_OK;
    char *path = file_path(units, file);
    if (!path)
        return error_set_memory(error, lacking, 0);
    const int system = os_open(path, OS_READ_NOW, fd);
    if (!system && units->files[slot].open)
        os_close(units->files[slot].fd);
    if (!system) {
        units->files[slot].file = file;
        units->files[slot].fd = *fd;
        units->files[slot].open = true;
    }
    const enum tokmap_status status = system ? lost(path, system, sorted_units_of(units, file), error) : TOKMAP_OK;
    free(path);
    return status;
}

enum tokmap_status sorted_units_damaged(void *self, uint32_t file, uint64_t offset, struct tokmap_error *error)
{
    const struct sorted_units *units = self;
    char *path = file_path(units, file);
    const enum tokmap_status status =
        path ? damaged(path, offset, sorted_units_of(units, file), error) : error_set_memory(error, lacking, 0);
    free(path);
    return status;
}
