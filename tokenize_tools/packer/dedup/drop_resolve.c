/* SPDX-License-Identifier: MIT */
/*
 * drop_resolve.c - see drop_resolve.h.
 *
 * Example: unit 0 has the documents a b, and unit 1 has c a. There is one portion. The keys of unit 0 are taken in the
 * order of its documents, and none is in the table, so its section is empty. Of unit 1, c is new and a is found: its
 * document 1 is dropped, because of document 0 of unit 0.
 *
 * The table has one entry for each different key. A portion of several units has about PORTION_DOCUMENTS documents, so
 * that this is 176 MB at most, as long as there are fewer than 2^32 documents. One of work without units, which no
 * other task waits for, has about WHOLE_DOCUMENTS, and this is 11 MB, as long as there are fewer than 2^28 of them: the
 * processor's caches have most of it. Copies of one text, however many, take one entry.
 */
#include "drop_resolve.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "document_bands.h"

#define PORTION_DOCUMENTS ((uint64_t)1 << 22)
#define WHOLE_DOCUMENTS ((uint64_t)1 << 18)
#define PORTIONS_MOST ((uint64_t)1024)
#define TABLE_LEAST ((uint64_t)512 << 20)
#define READ_BYTES ((uint32_t)16 << 10)

struct portion {
    const struct all_scans *scans;
    const struct drop_stage *stage;
    uint64_t number;
    struct key_table table;
    struct stage_writer *writer;
    uint64_t done;
};

enum tokmap_status all_scans_read(struct all_scans *scans, const struct drop_stage *stage, const char *folder,
                                  uint64_t key, uint64_t units, struct tokmap_error *error)
{
    *scans = (struct all_scans){.folder = folder, .key = key, .units = units};
    scans->list = calloc((size_t)units, sizeof *scans->list);
    scans->inputs = calloc((size_t)units + 1, sizeof *scans->inputs);
    if (!scans->list || !scans->inputs)
        return error_set_memory(error, "the scans of all units", units * sizeof *scans->list);
    for (uint64_t i = 0; i < units; i++) {
        const struct stage_id id = scan_file_id(folder, key, i);
        const enum tokmap_status status = scan_file_read(&scans->list[i], &id, error);
        if (status)
            return status;
        const struct place_counter *places = &scans->list[i].places;
        if (places->inputs >= UINT32_MAX || places->documents > UINT64_MAX - scans->documents)
            return stage_corrupt(&id, error);
        scans->inputs[i + 1] = scans->inputs[i] + places->inputs;
        scans->documents += places->documents;
    }
    if (scans->inputs[units] >= UINT32_MAX)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "there are more than 2^32 inputs; pack fewer at once");
    const uint64_t most = stage->in_units ? PORTION_DOCUMENTS : WHOLE_DOCUMENTS;
    if (stage->drop->duplicates)
        for (scans->portions = 1; scans->portions < PORTIONS_MOST && scans->documents / scans->portions >= most;)
            scans->portions *= 2;
    if (stage->drop->minhash) /* near_resolve.h */
        scans->portions = 1;
    return TOKMAP_OK;
}

uint64_t all_scans_portion_bytes(const struct all_scans *scans, const struct drop_stage *stage)
{
    const struct minhash_form *form = stage->drop->minhash;
    const uint64_t each = form ? form->bands * sizeof(struct band_record) : sizeof(struct stage_record);
    return scans->portions ? scans->documents / scans->portions * each : 0;
}

void all_scans_free(struct all_scans *scans)
{
    free(scans->list);
    free(scans->inputs);
    *scans = (struct all_scans){.units = 0};
}

/* Returns the portion of a key. */
static uint64_t portion_of(const struct all_scans *scans, uint64_t high)
{
    return (uint64_t)((unsigned __int128)high * scans->portions >> 64);
}

/* Compares one document with those before it. */
static enum tokmap_status document_compare(struct portion *portion, uint64_t unit, const struct stage_record *record,
                                           struct tokmap_error *error)
{
    const struct all_scans *scans = portion->scans;
    const struct drop_stage *stage = portion->stage;
    const struct hash128 key = {record->first, record->second};
    const struct document_place place = {.record = record->record,
                                         .input = (uint32_t)(scans->inputs[unit] + record->input)};
    struct document_place kept;
    if (++portion->done % 65536 == 0 && stage->stop && stage->stop(stage->user))
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    switch (key_table_find(&portion->table, key, &place, &kept)) {
    case KEY_FOUND:
        break;
    case KEY_ADDED:
        return TOKMAP_OK;
    case KEY_NO_ROOM:
        return error_set(error, TOKMAP_ERROR_LIMIT, scans->folder, TOKMAP_NO_OFFSET,
                         "the keys of a portion of all documents need more than %" PRIu64
                         " bytes of memory; allow more with --dedup-memory",
                         portion->table.bytes_most);
    case KEY_NO_MEMORY:
        return error_set_memory(error, "the keys of documents", portion->table.bytes);
    }
    const struct stage_record dropped = {
        .record = record->record, .input = record->input, .first = kept.record, .second = kept.input};
    return stage_writer_add(portion->writer, &dropped, sizeof dropped, error);
}

static enum tokmap_status unit_compare(struct portion *portion, uint64_t unit, struct tokmap_error *error)
{
    const struct all_scans *scans = portion->scans;
    const struct stage_id id = scan_file_id(scans->folder, scans->key, unit);
    const uint64_t each = max64(SCAN_PARTITIONS / scans->portions, 1); /* partitions of a portion */
    const uint64_t first = portion->number * SCAN_PARTITIONS / scans->portions;
    const struct stage_record *record = NULL;
    struct stage_merge *merge;
    bool filled[SCAN_PARTITIONS];
    enum tokmap_status status = stage_merge_new(&merge, each, READ_BYTES, error);
    if (!status)
        status = stage_sections_filled(&id, SCAN_FIRST + first, each, filled, error);
    for (uint64_t i = 0; i < each && !status; i++)
        if (filled[i])
            status = stage_merge_add(merge, &id, SCAN_FIRST + first + i, error);
    while (!status) {
        status = stage_merge_next(merge, &record, error);
        if (status || !record)
            break;
        if (record->input >= scans->list[unit].places.inputs)
            status = stage_corrupt(&id, error);
        else if (portion_of(scans, record->second) == portion->number)
            status = document_compare(portion, unit, record, error);
    }
    stage_merge_free(merge);
    return status;
}

enum tokmap_status drop_portion_run(const struct all_scans *scans, const struct drop_stage *stage, uint64_t portion,
                                    struct tokmap_error *error)
{
    const struct stage_id id = drops_file_id(scans->folder, scans->key, portion, scans->units);
    struct portion work = {.scans = scans, .stage = stage, .number = portion};
    assert(portion < scans->portions);
    key_table_init(&work.table, max64(stage->drop->memory, TABLE_LEAST));
    enum tokmap_status status = stage_writer_open(&work.writer, &id, error);
    for (uint64_t i = 0; i < scans->units && !status; i++) {
        if (i)
            status = stage_writer_next(work.writer, error);
        if (!status)
            status = unit_compare(&work, i, error);
        if (!status && scans->progress)
            scans->progress(scans->user, i + 1, scans->units);
    }
    if (!status)
        status = stage_writer_commit(work.writer, stage->sync, error);
    stage_writer_free(work.writer);
    key_table_free(&work.table);
    return status;
}
