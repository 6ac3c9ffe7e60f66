/* SPDX-License-Identifier: MIT */
/*
 * drop_finish.c - see drop_finish.h.
 *
 * The scans count inputs with documents, unit by unit; the list counts a file that several units share once, and its
 * records from its beginning. Example: units 0, 1, and 2 are three parts of the file a, of 700, 300, and 500 lines, and
 * unit 3 has the files b and c. The scans have the inputs 0 | 1 | 2 | 3 4, which are 0 0 0 1 2 in the list, and to the
 * records of the inputs 0 to 4 of the scans are added 0, 700, 1000, 0, and 0.
 */
#include "drop_finish.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "drop_list.h"

#define PATH_SPARE 64

/* Numbers of a unit's inputs in the list. */
struct unit_place {
    uint64_t first;   /* number of its first input */
    uint64_t records; /* in the units before, of the file that it is a part of */
    bool continues;   /* its first input is the last one of the units before */
};

struct finish {
    const struct drop_stage *stage;
    const struct work_units *units;
    const struct all_scans *scans;
    struct dropped_writer *list;
    struct unit_place *places;
    uint64_t *listed; /* of each n-gram: 1 + its number in the list, or 0 */
    uint64_t ngrams, ngrams_listed;
    struct bytes_buffer paths; /* of the open unit */
    size_t path_at;
    uint64_t inputs_listed; /* of the open unit */
};

/* Finds where the inputs of each unit are. */
static enum tokmap_status places_make(struct finish *finish, struct tokmap_error *error)
{
    const struct all_scans *scans = finish->scans;
    uint64_t inputs = 0, records = 0;
    bool open = false; /* the file has documents in the units before */
    finish->places = calloc((size_t)scans->units, sizeof *finish->places);
    if (!finish->places)
        return error_set_memory(error, "the list of dropped documents", scans->units * sizeof *finish->places);
    for (uint64_t i = 0; i < scans->units; i++) {
        const struct unit_scan *scan = &scans->list[i];
        const bool inside = finish->units->list[i].begin != 0;
        records = inside ? records : 0;
        open = inside && open;
        finish->places[i] = (struct unit_place){inputs - open, records, open};
        inputs += scan->places.inputs - (open && scan->places.inputs);
        records += scan->lines;
        open |= scan->places.inputs != 0;
    }
    return TOKMAP_OK;
}

/* Lists the inputs of a unit up to number `input`. */
static enum tokmap_status inputs_list(struct finish *finish, uint64_t unit, uint64_t end, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (; finish->inputs_listed < end && !status; finish->inputs_listed++) {
        uint32_t bytes = 0;
        char *path = NULL;
        const struct bytes_buffer *paths = &finish->paths;
        if (paths->count - finish->path_at >= sizeof bytes) {
            memcpy(&bytes, paths->bytes + finish->path_at, sizeof bytes);
            finish->path_at += sizeof bytes;
        }
        if (!bytes || bytes > paths->count - finish->path_at || memchr(paths->bytes + finish->path_at, '\0', bytes)) {
            const struct stage_id id = scan_file_id(finish->scans->folder, finish->scans->key, unit);
            return stage_corrupt(&id, error);
        }
        path = strndup((const char *)paths->bytes + finish->path_at, bytes);
        finish->path_at += bytes;
        if (!path)
            return error_set_memory(error, "a path", bytes);
        if (finish->inputs_listed || !finish->places[unit].continues)
            status = dropped_writer_input(finish->list, path, error);
        free(path);
    }
    return status;
}

static enum tokmap_status excluded_list(struct finish *finish, const struct unit_place *place,
                                        const struct stage_record *record, struct tokmap_error *error)
{
    struct ngram_origin origin;
    enum tokmap_status status = TOKMAP_OK;
    if (!finish->listed[record->first]) {
        ngram_table_origin(finish->stage->drop->ngrams, record->first, &origin);
        status = dropped_writer_ngram(finish->list, origin.text, origin.bytes, origin.path, origin.record, error);
        finish->listed[record->first] = ++finish->ngrams_listed;
    }
    return status ? status
                  : dropped_writer_excluded(finish->list, (uint32_t)(place->first + record->input),
                                            record->record + place->records, finish->listed[record->first] - 1, error);
}

static enum tokmap_status document_list(struct finish *finish, uint64_t unit, const struct stage_record *record,
                                        struct tokmap_error *error)
{
    const struct all_scans *scans = finish->scans;
    const struct unit_place *place = &finish->places[unit];
    const bool excluded = record->second == STAGE_EXCLUDED;
    const uint64_t own = scans->inputs[unit] + record->input;
    const bool good = record->input < scans->list[unit].places.inputs &&
                      (excluded ? record->first < finish->ngrams
                                : record->second < own || (record->second == own && record->first < record->record));
    if (!good)
        return error_set(
            error, TOKMAP_ERROR_CORRUPT, scans->folder, TOKMAP_NO_OFFSET,
            "the dropped documents of unit %" PRIu64 " are damaged; remove this folder, and run all tasks again", unit);
    if (excluded)
        return excluded_list(finish, place, record, error);
    const uint64_t kept = all_scans_unit(scans, scans->inputs, record->second);
    return dropped_writer_duplicate(finish->list, finish->stage->drop->minhash != NULL,
                                    (uint32_t)(place->first + record->input), record->record + place->records,
                                    (uint32_t)(finish->places[kept].first + record->second - scans->inputs[kept]),
                                    record->first + finish->places[kept].records, error);
}

/* Returns how many bytes the paths of a unit can have in its scan, where they are as messages show them. */
static uint64_t paths_most(const struct finish *finish, uint64_t unit)
{
    const struct unit *files = &finish->units->list[unit];
    uint64_t most = 0;
    for (uint64_t i = 0; i < files->count; i++)
        most += sizeof(uint32_t) + 2 * strlen(finish->units->paths[files->first + i]) + PATH_SPARE;
    return most;
}

static enum tokmap_status unit_list(struct finish *finish, uint64_t unit, struct tokmap_error *error)
{
    const struct drop_stage *stage = finish->stage;
    const struct all_scans *scans = finish->scans;
    const struct stage_id id = scan_file_id(scans->folder, scans->key, unit);
    const struct drop_source source = {
        .folder = scans->folder, .key = scans->key, .unit = unit, .units = scans->units, .portions = scans->portions};
    const struct stage_record *record = NULL;
    const uint64_t inputs = scans->list[unit].places.inputs;
    struct drop_list *drops = NULL;
    finish->path_at = 0;
    finish->inputs_listed = 0;
    enum tokmap_status status = stage_section_load(&finish->paths, &id, SCAN_PATHS, paths_most(finish, unit), error);
    if (!status)
        status = drop_list_open(&drops, &source, error);
    for (uint64_t i = 0; !status; i++) {
        status = drop_list_next(drops, &record, error);
        if (status || !record)
            break;
        if (i % 65536 == 0 && stage->stop && stage->stop(stage->user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        if (!status)
            status = inputs_list(finish, unit, min64((uint64_t)record->input + 1, inputs), error);
        if (!status)
            status = document_list(finish, unit, record, error);
    }
    if (!status)
        status = inputs_list(finish, unit, inputs, error);
    if (!status && finish->path_at != finish->paths.count)
        status = stage_corrupt(&id, error);
    drop_list_free(drops);
    return status;
}

enum tokmap_status drop_finish(struct dropped_writer **list, const char *name, const char *reading,
                               const struct drop_stage *stage, const struct work_units *units,
                               const struct all_scans *scans, struct tokmap_error *error)
{
    struct finish finish = {.stage = stage, .units = units, .scans = scans};
    struct ngram_counts counts = {0};
    if (stage->drop->ngrams)
        ngram_table_counts(stage->drop->ngrams, &counts);
    finish.ngrams = counts.listed;
    finish.listed = calloc((size_t)max64(counts.listed, 1), sizeof *finish.listed);
    enum tokmap_status status = dropped_writer_open(list, name, error);
    finish.list = *list;
    if (!status && reading)
        status = dropped_writer_reading(*list, reading, error);
    if (!status && !finish.listed)
        status = error_set_memory(error, "the excluded n-grams", counts.listed * sizeof *finish.listed);
    if (!status)
        status = places_make(&finish, error);
    for (uint64_t i = 0; i < scans->units && !status; i++)
        status = unit_list(&finish, i, error);
    if (!status)
        status = dropped_writer_finish(finish.list, scans->documents, stage->sync, error);
    free(finish.listed);
    free(finish.places);
    bytes_free(&finish.paths);
    return status;
}
