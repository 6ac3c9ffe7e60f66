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
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "document_bands.h"
#include "platform/os.h"
#include "work/stage_parts.h"

#define PORTION_DOCUMENTS ((uint64_t)1 << 22)
#define WHOLE_DOCUMENTS ((uint64_t)1 << 18)
#define PORTIONS_MOST ((uint64_t)1024)
#define TABLE_LEAST ((uint64_t)512 << 20)
#define READ_BYTES ((uint32_t)16 << 10)
#define AHEAD 8 /* records whose entries of the table are on their way from memory */

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
    if (stage->drop->minhash) /* near_resolve_run() */
        scans->portions = 1;
    return TOKMAP_OK;
}

uint64_t all_scans_portion_bytes(const struct all_scans *scans, const struct drop_stage *stage)
{
    const struct minhash_form *form = stage->drop->minhash;
    const uint64_t each = form ? form->bands * sizeof(struct band_record) : sizeof(struct stage_record);
    return scans->portions ? scans->documents / scans->portions * each : 0;
}

uint64_t all_scans_unit(const struct all_scans *scans, const uint64_t *begins, uint64_t number)
{
    uint64_t low = 0, high = scans->units;
    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;
        if (begins[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
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
    struct stage_record read[AHEAD];
    uint64_t count = 0, done = 0; /* of those read, and of these compared */
    struct stage_merge *merge;
    bool filled[SCAN_PARTITIONS];
    enum tokmap_status status = stage_merge_new(&merge, each, READ_BYTES, error);
    if (!status)
        status = stage_sections_filled(&id, SCAN_FIRST + first, each, filled, error);
    for (uint64_t i = 0; i < each && !status; i++)
        if (filled[i])
            status = stage_merge_add(merge, &id, SCAN_FIRST + first + i, error);
    for (bool more = true; !status && (more || done < count);) {
        if (!more || count - done == AHEAD) {
            status = document_compare(portion, unit, &read[done++ % AHEAD], error);
            continue;
        }
        status = stage_merge_next(merge, &record, error);
        more = !status && record;
        if (more && record->input >= scans->list[unit].places.inputs)
            status = stage_corrupt(&id, error);
        if (!more || status || portion_of(scans, record->second) != portion->number)
            continue;
        read[count++ % AHEAD] = *record;
        key_table_prefetch(&portion->table, (struct hash128){record->first, record->second});
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

/* ---- near-duplicates ---- */

/*
 * Example: the documents 0 to 3, where 0 and 3 have a band in common, and so have 2 and 3. The partition with the band
 * of 0 and 3 says that the first document of this band is 0, so 3 refers to 0. Another partition says 2 and 3: both are
 * followed to the first documents of their clusters, 2 and 0, and the later one refers to the earlier one. Now
 * first[] is 0 1 0 0: the clusters are 0 2 3 and 1, and 2 and 3 are dropped.
 *
 * A document refers only to earlier ones, so the end of each way is the first document of its cluster, whatever the
 * order in which bands are compared. Ways are halved when they are followed, so they stay short.
 *
 * The bands of a partition are compared in passes: 1, or if the table has no room for so many different ones, 2, 4, and
 * so on, each for those bands whose lowest bits are its number. Documents that were joined before stay joined, so a
 * partition can begin again at any time.
 *
 * After a pass, if it is time for it, the joins since the last time become a part of the file (stage_parts.h), whose
 * state says which pass comes next: at most as many joins as documents, 8 bytes each. A process that continues makes
 * the joins of all parts again, in any order, since the first document of a cluster does not depend on that. Then the
 * file is written from its beginning to its end, and kept from time to time, so that another process can continue it
 * after the last document that it lists.
 *
 * Example: pass 5 joins 7 to 2, and 9 to 7, whose first document is 2 then: the joins are (2, 7) and (2, 9). The
 * process is killed in pass 8, when the last part has all until pass 6. The next one joins 7 and 9 to 2 without a look
 * at their bands, and begins with pass 7.
 */

#define JOIN_TABLE_MOST ((uint64_t)256 << 20) /* with more of it, a pass would last longer than what may be lost */
#define JOIN_TABLE_LEAST ((uint64_t)1 << 20)
#define JOIN_READ_BYTES ((uint32_t)64 << 10)
#define PASSES_MOST ((uint64_t)1 << 20) /* 256 bands of each of 2^32 documents need 2^10 */
#define KEEP_DOCUMENTS 1024
#define STOP_STEPS 4096              /* between two questions whether to stop */
#define JOINS_HELD ((size_t)1 << 20) /* bytes of joins, before they are written */

/* The sections of a part. */
enum { PART_JOINS, PART_STATE, PART_SECTIONS };

/* Two documents whose clusters became one. */
struct join {
    uint32_t a, b;
};

/* The next pass; partition SCAN_PARTITIONS: none. */
struct join_state {
    uint64_t partition, passes, pass;
};

struct joining {
    const struct all_scans *scans;
    const struct drop_stage *stage;
    uint64_t *documents; /* of each unit: the documents of the units before; one more has all of them */
    uint32_t *first;
    struct key_table table;
    uint64_t done;
    struct stage_id id;
    struct stage_writer *file;
    struct stage_parts parts;
    struct stage_writer *part; /* the open one; NULL: all of its joins are in the memory */
    struct bytes_buffer joins; /* that are not written yet */
    struct join_state state;
    bool saved;      /* the parts have all joins */
    uint64_t cut_ns; /* when all was on storage the last time */
};

static enum tokmap_status stop_check(struct joining *joining, struct tokmap_error *error)
{
    const struct drop_stage *stage = joining->stage;
    return ++joining->done % STOP_STEPS == 0 && stage->stop && stage->stop(stage->user)
               ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
               : TOKMAP_OK;
}

/* ---- parts ---- */

/* Returns true if it is time to save what was found. */
static bool is_due(const struct joining *joining, uint64_t every)
{
    return every && os_clock_ns() - joining->cut_ns >= every;
}

static enum tokmap_status joins_write(struct joining *joining, struct tokmap_error *error)
{
    enum tokmap_status status = joining->part ? TOKMAP_OK : stage_part_open(&joining->parts, &joining->part, error);
    if (!status)
        status = stage_writer_add(joining->part, joining->joins.bytes, joining->joins.count, error);
    joining->joins.count = 0;
    return status;
}

static enum tokmap_status part_cut(struct joining *joining, struct tokmap_error *error)
{
    enum tokmap_status status = joins_write(joining, error);
    if (status)
        return status;
    struct stage_writer *part = joining->part;
    joining->part = NULL;
    status = stage_part_commit(&joining->parts, part, true, &joining->state, sizeof joining->state,
                               joining->stage->sync, error);
    joining->saved = joining->state.partition == SCAN_PARTITIONS;
    joining->cut_ns = os_clock_ns();
    return status;
}

/* Joins two documents. */
static enum tokmap_status documents_join(struct joining *joining, uint32_t a, uint32_t b, struct tokmap_error *error)
{
    const struct join join = {a, b};
    if (!clusters_join(joining->first, a, b) || !joining->stage->checkpoint_ns)
        return TOKMAP_OK;
    if (!bytes_append(&joining->joins, &join, sizeof join))
        return error_set_memory(error, "the clusters of documents", joining->joins.count);
    return joining->joins.count >= JOINS_HELD ? joins_write(joining, error) : TOKMAP_OK;
}

/* Makes the joins of a part again. */
static enum tokmap_status part_replay(struct joining *joining, uint64_t part, struct tokmap_error *error)
{
    const struct stage_id id = stage_part_id(&joining->parts, part);
    struct stage_reader reader;
    const void *next = NULL;
    enum tokmap_status status =
        stage_reader_open(&reader, &id, PART_JOINS, sizeof(struct join), JOIN_READ_BYTES, error);
    while (!status) {
        struct join join;
        status = stage_reader_next(&reader, &next, error);
        if (status || !next)
            break;
        memcpy(&join, next, sizeof join);
        if (join.a >= joining->scans->documents || join.b >= joining->scans->documents)
            status = stage_corrupt(&id, error);
        if (!status)
            status = stop_check(joining, error);
        if (!status)
            (void)clusters_join(joining->first, join.a, join.b);
    }
    stage_reader_free(&reader);
    return status;
}

/* Takes what killed processes have found. */
static enum tokmap_status parts_take(struct joining *joining, struct tokmap_error *error)
{
    struct join_state *state = &joining->state;
    *state = (struct join_state){.passes = 1};
    enum tokmap_status status =
        stage_parts_find(&joining->parts, &joining->id, PART_SECTIONS, state, sizeof *state, error);
    const bool good = state->partition <= SCAN_PARTITIONS && state->passes && state->passes <= PASSES_MOST &&
                      !(state->passes & (state->passes - 1)) && state->pass < state->passes;
    if (!status && !good) {
        const struct stage_id id = stage_part_id(&joining->parts, joining->parts.count - 1);
        status = stage_corrupt(&id, error);
    }
    for (uint64_t part = 0; part < joining->parts.count && !status; part++)
        status = part_replay(joining, part, error);
    joining->saved = joining->parts.count && state->partition == SCAN_PARTITIONS;
    joining->cut_ns = os_clock_ns();
    return status;
}

/* ---- clusters ---- */

/* Joins a document with those before it that have the same band. *full: the table has no room. */
static enum tokmap_status band_join(struct joining *joining, const struct band_record *band, uint64_t number,
                                    bool *full, struct tokmap_error *error)
{
    const struct document_place place = {.record = number};
    struct document_place found;
    switch (key_table_find(&joining->table, (struct hash128){band->low, band->high}, &place, &found)) {
    case KEY_FOUND:
        return documents_join(joining, (uint32_t)found.record, (uint32_t)number, error);
    case KEY_ADDED:
        break;
    case KEY_NO_ROOM:
        *full = true;
        break;
    case KEY_NO_MEMORY:
        return error_set_memory(error, "the bands of documents", joining->table.bytes);
    }
    return TOKMAP_OK;
}

/* Joins the documents of a unit that have a band of the pass. *full: the table has no room. */
static enum tokmap_status unit_join(struct joining *joining, uint64_t unit, uint32_t partition, uint64_t pass,
                                    uint64_t passes, bool *full, struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    const struct stage_id id = scan_file_id(scans->folder, scans->key, unit);
    struct stage_reader reader;
    struct band_record read[AHEAD];
    uint64_t count = 0, done = 0; /* of those read, and of these joined */
    const void *next = NULL;
    enum tokmap_status status =
        stage_reader_open(&reader, &id, SCAN_FIRST + partition, sizeof(struct band_record), JOIN_READ_BYTES, error);
    for (bool more = true; !status && !*full && (more || done < count);) {
        struct band_record *band = &read[count % AHEAD];
        if (!more || count - done == AHEAD) {
            band = &read[done++ % AHEAD];
            status = band_join(joining, band, joining->documents[unit] + band->document, full, error);
            continue;
        }
        status = stage_reader_next(&reader, &next, error);
        more = !status && next;
        if (!more)
            continue;
        memcpy(band, next, sizeof *band);
        if (band->document >= scans->list[unit].places.documents)
            status = stage_corrupt(&id, error);
        if (!status)
            status = stop_check(joining, error);
        if (status || (band->low & (passes - 1)) != pass)
            continue;
        count++;
        key_table_prefetch(&joining->table, (struct hash128){band->low, band->high});
    }
    stage_reader_free(&reader);
    return status;
}

/* Makes the next pass. *full: the table has no room for it. */
static enum tokmap_status pass_join(struct joining *joining, bool *full, struct tokmap_error *error)
{
    struct join_state *state = &joining->state;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < joining->scans->units && !status && !*full; i++)
        status = unit_join(joining, i, (uint32_t)state->partition, state->pass, state->passes, full, error);
    key_table_free(&joining->table);
    if (!status && !*full)
        state->pass++;
    return status;
}

/* Makes all passes that are left of a partition. A pass of a full table lasts some seconds, too. */
static enum tokmap_status partition_join(struct joining *joining, struct tokmap_error *error)
{
    struct join_state *state = &joining->state;
    enum tokmap_status status = TOKMAP_OK;
    while (state->pass < state->passes && !status) {
        bool full = false;
        status = pass_join(joining, &full, error);
        if (!status && full && state->passes == PASSES_MOST)
            status = error_set(error, TOKMAP_ERROR_CORRUPT, joining->scans->folder, TOKMAP_NO_OFFSET,
                               "the bands of the scans are damaged: too many of partition %" PRIu64
                               " end in the same bits; remove this folder, and run all tasks again; without tasks, "
                               "start over with --no-resume",
                               state->partition);
        if (!status && full)
            *state = (struct join_state){state->partition, 2 * state->passes, 0};
        else if (!status && state->pass == state->passes)
            *state = (struct join_state){state->partition + 1, 1, 0};
        if (!status && is_due(joining, (joining->stage->checkpoint_ns + 3) / 4))
            status = part_cut(joining, error);
        if (!full && !state->pass)
            break;
    }
    return status;
}

/* ---- the file ---- */

/* Writes that a document is dropped, because of the first one of its cluster. */
static enum tokmap_status document_write(const struct joining *joining, const struct scan_place *place, uint32_t kept,
                                         struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    struct scan_place of_kept;
    const uint64_t unit = all_scans_unit(scans, joining->documents, kept);
    const struct stage_id id = scan_file_id(scans->folder, scans->key, unit);
    const enum tokmap_status status =
        stage_record_read(&id, SCAN_PLACES, kept - joining->documents[unit], &of_kept, sizeof of_kept, error);
    const struct stage_record dropped = {.record = place->record,
                                         .input = place->input,
                                         .first = of_kept.record,
                                         .second = scans->inputs[unit] + of_kept.input};
    return status ? status : stage_writer_add(joining->file, &dropped, sizeof dropped, error);
}

/* Makes sure from time to time that another process can continue. */
static enum tokmap_status file_keep(struct joining *joining, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (!is_due(joining, joining->stage->checkpoint_ns))
        return TOKMAP_OK;
    if (!joining->saved)
        status = part_cut(joining, error);
    if (!status)
        status = stage_writer_keep(joining->file, joining->parts.token, joining->stage->sync, error);
    joining->cut_ns = os_clock_ns();
    return status;
}

/* Lists the dropped documents of a unit: those after *last, unless that is NULL. */
static enum tokmap_status unit_write(struct joining *joining, uint64_t unit, const struct stage_record *last,
                                     struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    const struct stage_id id = scan_file_id(scans->folder, scans->key, unit);
    struct stage_reader reader;
    const void *next = NULL;
    uint64_t number = 0;
    enum tokmap_status status =
        stage_reader_open(&reader, &id, SCAN_PLACES, sizeof(struct scan_place), JOIN_READ_BYTES, error);
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
        if (!status && number % KEEP_DOCUMENTS == 0)
            status = file_keep(joining, error);
        if (status)
            break;
        if (last) {
            last = last->record == place.record && last->input == place.input ? NULL : last;
            continue;
        }
        const uint32_t document = (uint32_t)(joining->documents[unit] + number);
        const uint32_t kept = cluster_first(joining->first, document);
        if (kept != document)
            status = document_write(joining, &place, kept, error);
    }
    stage_reader_free(&reader);
    return !status && (last || number != scans->list[unit].places.documents) ? stage_corrupt(&id, error) : status;
}

static enum tokmap_status file_write(struct joining *joining, struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    struct stage_record last;
    uint64_t unit, bytes;
    enum tokmap_status status = stage_writer_resume(joining->file, joining->parts.token, &unit, &bytes, error);
    if (!status && bytes % sizeof last)
        status = stage_corrupt(&joining->id, error);
    if (!status && bytes)
        status = stage_writer_last(joining->file, &last, sizeof last, error);
    for (uint64_t i = unit; i < scans->units && !status; i++) {
        if (i > unit)
            status = stage_writer_next(joining->file, error);
        if (!status)
            status = unit_write(joining, i, i == unit && bytes ? &last : NULL, error);
    }
    if (!status)
        status = stage_writer_commit(joining->file, joining->stage->sync, error);
    if (!status)
        stage_parts_remove(&joining->parts);
    return status;
}

/* Reads the places of a unit, each of which must be after the one before: so a file has as many bytes that somebody has
 * written as it says, and not a hole. */
static enum tokmap_status places_check(struct joining *joining, uint64_t unit, struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    const struct stage_id id = scan_file_id(scans->folder, scans->key, unit);
    struct stage_reader reader;
    struct scan_place last = {0}, place;
    const void *next = NULL;
    uint64_t places = 0;
    enum tokmap_status status =
        stage_reader_open(&reader, &id, SCAN_PLACES, sizeof(struct scan_place), JOIN_READ_BYTES, error);
    for (; !status; places++, last = place) {
        status = stage_reader_next(&reader, &next, error);
        if (status || !next)
            break;
        memcpy(&place, next, sizeof place);
        const bool after = place.input > last.input || (place.input == last.input && place.record > last.record);
        if (places && !after)
            status = stage_corrupt(&id, error);
        if (!status)
            status = stop_check(joining, error);
    }
    stage_reader_free(&reader);
    return !status && places != scans->list[unit].places.documents ? stage_corrupt(&id, error) : status;
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
        const enum tokmap_status status = places_check(joining, i, error);
        if (status)
            return status;
        joining->documents[i + 1] = joining->documents[i] + scans->list[i].places.documents;
    }
    return TOKMAP_OK;
}

/* Joins all documents that have a band in common. */
static enum tokmap_status all_join(struct joining *joining, struct tokmap_error *error)
{
    const struct all_scans *scans = joining->scans;
    enum tokmap_status status = parts_take(joining, error);
    key_table_init(&joining->table, max64(min64(joining->stage->drop->memory, JOIN_TABLE_MOST), JOIN_TABLE_LEAST));
    while (joining->state.partition < SCAN_PARTITIONS && !status) {
        status = partition_join(joining, error);
        if (!status && scans->progress)
            scans->progress(scans->user, joining->state.partition, SCAN_PARTITIONS);
    }
    key_table_free(&joining->table);
    return status;
}

enum tokmap_status near_resolve_run(const struct all_scans *scans, const struct drop_stage *stage,
                                    struct tokmap_error *error)
{
    struct joining joining = {
        .scans = scans, .stage = stage, .id = drops_file_id(scans->folder, scans->key, 0, scans->units)};
    if (scans->documents >= UINT32_MAX - 1)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "there are more than 2^32 documents; search fewer for near-duplicates at once");
    enum tokmap_status status = documents_count(&joining, error);
    if (!status)
        status = stage_writer_reopen(&joining.file, &joining.id, error);
    if (!status)
        joining.first = malloc((size_t)max64(scans->documents, 1) * sizeof *joining.first);
    if (!status && !joining.first)
        status = error_set_memory(error, "the clusters of documents", scans->documents * sizeof *joining.first);
    for (uint32_t i = 0; i < scans->documents && !status; i++)
        joining.first[i] = i;
    if (!status)
        status = all_join(&joining, error);
    if (!status)
        status = file_write(&joining, error);
    stage_writer_free(joining.part);
    stage_writer_free(joining.file);
    bytes_free(&joining.joins);
    free(joining.documents);
    free(joining.first);
    return status;
}
