/*
 * near_resolve.c - see near_resolve.h; near_duplicates.c has an example of clusters.
 *
 * The bands of a partition are compared in passes: 1, or if the table has no room for so many different ones, 2, 4, and
 * so on, each for those bands whose lowest bits are its number. Documents that were joined before stay joined, so a
 * partition can begin again at any time.
 */
#include "near_resolve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "document_bands.h"

#define TABLE_LEAST ((uint64_t)256 << 20)
#define READ_BYTES ((uint32_t)64 << 10)
#define PASSES_MOST ((uint64_t)1 << 20) /* 256 bands of each of 2^32 documents need 2^10 */

struct joining {
    const struct all_scans *scans;
    const struct pack_options *options;
    uint64_t *documents; /* of each unit: the documents of the units before; one more has all of them */
    uint32_t *first;
    struct key_table table;
    uint64_t done;
};

static enum tokmap_status stop_check(struct joining *joining, struct tokmap_error *error)
{
    const struct pack_options *options = joining->options;
    return ++joining->done % 65536 == 0 && options->stop && options->stop(options->user)
               ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
               : TOKMAP_OK;
}

/* ---- clusters ---- */

/* Joins the documents of a unit that have a band of the pass. *full: the table has no room. */
static enum tokmap_status unit_join(struct joining *joining, uint64_t unit, uint32_t partition, uint64_t pass,
                                    uint64_t passes, bool *full, struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    const struct stage_id id = stage_scan_id(scans->folder, scans->key, unit);
    struct stage_reader reader;
    struct document_place found;
    const void *next = NULL;
    enum tokmap_status status =
        stage_reader_open(&reader, &id, SCAN_FIRST + partition, sizeof(struct band_record), READ_BYTES, error);
    while (!status && !*full) {
        struct band_record band;
        status = stage_reader_next(&reader, &next, error);
        if (status || !next)
            break;
        memcpy(&band, next, sizeof band);
        if (band.document >= scans->list[unit].places.documents)
            status = stage_corrupt(&id, error);
        if (!status)
            status = stop_check(joining, error);
        if (status || (band.low & (passes - 1)) != pass)
            continue;
        const struct hash128 key = {band.low, band.high};
        const struct document_place place = {.record = joining->documents[unit] + band.document};
        switch (key_table_find(&joining->table, key, &place, &found)) {
        case KEY_FOUND:
            clusters_join(joining->first, (uint32_t)found.record, (uint32_t)place.record);
            break;
        case KEY_ADDED:
            break;
        case KEY_NO_ROOM:
            *full = true;
            break;
        case KEY_NO_MEMORY:
            status = error_set_memory(error, "the bands of documents", joining->table.bytes);
        }
    }
    stage_reader_free(&reader);
    return status;
}

static enum tokmap_status partition_join(struct joining *joining, uint32_t partition, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    bool full = false;
    for (uint64_t passes = 1; !status && passes; passes = full ? passes * 2 : 0) {
        full = false;
        for (uint64_t pass = 0; pass < passes && !status && !full; pass++) {
            for (uint64_t i = 0; i < joining->scans->units && !status && !full; i++)
                status = unit_join(joining, i, partition, pass, passes, &full, error);
            key_table_free(&joining->table);
        }
        if (!status && full && passes == PASSES_MOST)
            status = error_set(error, TOKMAP_ERROR_CORRUPT, joining->scans->folder, TOKMAP_NO_OFFSET,
                               "the bands of the scans are damaged: too many of partition %" PRIu32
                               " end in the same bits; remove this folder, and run all tasks again",
                               partition);
    }
    return status;
}

/* ---- the file ---- */

/* Writes that a document is dropped, because of the first one of its cluster. */
static enum tokmap_status document_write(const struct joining *joining, struct stage_writer *writer,
                                         const struct scan_place *place, uint32_t kept, struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    struct scan_place of_kept;
    uint64_t low = 0, high = scans->units;
    while (high - low > 1) { /* the last unit that begins with this document or before it, and so has it */
        const uint64_t middle = (low + high) / 2;
        if (joining->documents[middle] <= kept)
            low = middle;
        else
            high = middle;
    }
    const struct stage_id id = stage_scan_id(scans->folder, scans->key, low);
    const enum tokmap_status status =
        stage_record_read(&id, SCAN_PLACES, kept - joining->documents[low], &of_kept, sizeof of_kept, error);
    const struct stage_record dropped = {.record = place->record,
                                         .input = place->input,
                                         .first = of_kept.record,
                                         .second = scans->inputs[low] + of_kept.input};
    return status ? status : stage_writer_add(writer, &dropped, sizeof dropped, error);
}

static enum tokmap_status unit_write(struct joining *joining, struct stage_writer *writer, uint64_t unit,
                                     struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    const struct stage_id id = stage_scan_id(scans->folder, scans->key, unit);
    struct stage_reader reader;
    const void *next = NULL;
    uint64_t number = 0;
    enum tokmap_status status =
        stage_reader_open(&reader, &id, SCAN_PLACES, sizeof(struct scan_place), READ_BYTES, error);
    for (; !status; number++) {
        struct scan_place place;
        status = stage_reader_next(&reader, &next, error);
        if (status || !next)
            break;
        memcpy(&place, next, sizeof place);
        if (number >= scans->list[unit].places.documents || place.input >= scans->list[unit].places.inputs)
            status = stage_corrupt(&id, error);
        if (!status)
            status = stop_check(joining, error);
        if (status)
            break;
        const uint32_t document = (uint32_t)(joining->documents[unit] + number);
        const uint32_t kept = cluster_first(joining->first, document);
        if (kept != document)
            status = document_write(joining, writer, &place, kept, error);
    }
    stage_reader_free(&reader);
    return !status && number != scans->list[unit].places.documents ? stage_corrupt(&id, error) : status;
}

static enum tokmap_status file_write(struct joining *joining, struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    const struct stage_id id = stage_drops_id(scans->folder, scans->key, 0, scans->units);
    struct stage_writer *writer;
    enum tokmap_status status = stage_writer_open(&writer, &id, error);
    for (uint64_t i = 0; i < scans->units && !status; i++) {
        if (i)
            status = stage_writer_next(writer, error);
        if (!status)
            status = unit_write(joining, writer, i, error);
    }
    if (!status)
        status = stage_writer_commit(writer, joining->options->sync, error);
    stage_writer_free(writer);
    return status;
}

/* Numbers the documents of all units. Each has a place in its scan, so that the memory for them is less than the files
 * that say how many there are. */
static enum tokmap_status documents_count(struct joining *joining, struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    joining->documents = calloc((size_t)scans->units + 1, sizeof *joining->documents);
    if (!joining->documents)
        return error_set_memory(error, "the documents of units", scans->units * sizeof *joining->documents);
    for (uint64_t i = 0; i < scans->units; i++) {
        const struct stage_id id = stage_scan_id(scans->folder, scans->key, i);
        uint64_t places;
        const enum tokmap_status status =
            stage_section_count(&id, SCAN_PLACES, sizeof(struct scan_place), &places, error);
        if (status)
            return status;
        if (places != scans->list[i].places.documents)
            return stage_corrupt(&id, error);
        joining->documents[i + 1] = joining->documents[i] + places;
    }
    return TOKMAP_OK;
}

enum tokmap_status near_resolve_run(const struct all_scans *scans, const struct pack_options *options,
                                    struct tokmap_error *error)
{
    struct joining joining = {.scans = scans, .options = options};
    if (scans->documents >= UINT32_MAX - 1)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "there are more than 2^32 documents; search fewer for near-duplicates at once");
    enum tokmap_status status = documents_count(&joining, error);
    if (!status)
        joining.first = malloc((size_t)max64(scans->documents, 1) * sizeof *joining.first);
    if (!status && !joining.first)
        status = error_set_memory(error, "the clusters of documents", scans->documents * sizeof *joining.first);
    for (uint32_t i = 0; i < scans->documents && !status; i++)
        joining.first[i] = i;
    key_table_init(&joining.table, max64(options->drop->memory, TABLE_LEAST));
    for (uint32_t i = 0; i < SCAN_PARTITIONS && !status; i++) {
        status = partition_join(&joining, i, error);
        if (!status && scans->progress)
            scans->progress(scans->user, i + 1, SCAN_PARTITIONS);
    }
    if (!status)
        status = file_write(&joining, error);
    key_table_free(&joining.table);
    free(joining.documents);
    free(joining.first);
    return status;
}
