/* SPDX-License-Identifier: MIT */
/*
 * sorted_units.h - the sorted documents of all units: what the first stage of a shuffle by tasks writes, and what the
 * later ones read.
 *
 *     packed-000012                    the record of unit 12, a stage file (stage_file.h): its totals, and a list of
 * its chunks unit-000012.work/chunks-0 ...    the chunks, each with the keys of its documents after it
 * (shuffle_chunks.h) unit-000012.work/long-0          the documents that are too long for a record
 *
 * The file packed-000012 is written last, so a unit that has it is complete. Files of chunks are opened when they are
 * read, and SORTED_OPEN of them stay open, whatever the number of units.
 *
 * Chunks, and so the bytes of these files, depend on when the work was saved; the order of the documents does not. So
 * the digest of all lists says whether two processes mean the same bytes.
 */
#ifndef TOKMAP_SHUFFLE_SORTED_UNITS_H
#define TOKMAP_SHUFFLE_SORTED_UNITS_H

#include "shuffle.h"
#include "work/stage_file.h"
#include "work/work_units.h"

#define SORTED_OPEN 32

/* Sections of the record of a unit; those before them are of the pack. */
enum { SORTED_TOTALS = 2, SORTED_CHUNKS, SORTED_END };

/* Section SORTED_TOTALS. Without a shuffle, all but the lines is zero. */
struct sorted_totals {
    uint64_t chunks, files, long_bytes;
    uint64_t lines; /* of the part of a file that the unit has */
    struct {
        uint64_t documents, tokens;
    } sets[SPLIT_SETS_MOST];
};

/* Writes both sections, the second one of struct shuffle_chunk, beginning in the open one. sorted: zeros without a
 * shuffle. sets: SPLIT_SETS_MOST. lines: of the part of a file that the unit has. Statuses: OK, ERROR_IO. */
enum tokmap_status sorted_unit_add(struct stage_writer *writer, const struct shuffle_sorted *sorted,
                                   const struct shard_set_result *sets, uint64_t lines, struct tokmap_error *error);

struct sorted_unit {
    struct sorted_totals totals;
    uint64_t first_chunk, first_file; /* of the unit, among those of all */
    uint64_t records_before;          /* of its first file, in the units before it */
    char *long_path;
};

/* All units. For one thread at a time. */
struct sorted_units {
    const char *folder;
    const struct work_units *inputs;
    uint64_t seed, count;
    uint32_t sets; /* of the output */
    struct sorted_unit *list;
    /* The chunks of all units: in order of sets, and then of units. `file` is among the files of all units. */
    struct shuffle_chunk *chunks;
    uint64_t chunk_count;
    uint64_t set_begins[SPLIT_SETS_MOST + 1]; /* the chunks of a set */
    struct sorted_totals all;                 /* `files`, and the sets */
    uint64_t digest;                          /* of all lists */
    struct {
        uint64_t file;
        int fd;
        bool open;
    } files[SORTED_OPEN];
};

/* Reads the records of all units. record: which file that of unit 0 is. sorted_units_free() frees the result in any
 * case. The folder and the inputs must stay valid. Statuses: those of stage_section_load(). */
enum tokmap_status sorted_units_read(struct sorted_units *units, const struct work_units *inputs, uint64_t seed,
                                     uint32_t sets, const struct stage_id *record, struct tokmap_error *error);
void sorted_units_free(struct sorted_units *units); /* accepts zeros */

/* For struct shuffle_chunks: gives a file until the next call; and the error of one that is not what was written. self:
 * the units. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY; ERROR_CORRUPT, ERROR_MEMORY. */
enum tokmap_status sorted_units_open(void *self, uint32_t file, int *fd, struct tokmap_error *error);
enum tokmap_status sorted_units_damaged(void *self, uint32_t file, uint64_t offset, struct tokmap_error *error);

/* Returns the unit that has a file. */
uint64_t sorted_units_of(const struct sorted_units *units, uint32_t file);

#endif
