/*
 * unit_scan.h - the first stage of packing in units with documents left out: reads a unit, and writes what must be
 * known of its documents before those of any unit are packed, to NAME.work/scan-000012 (stage_file.h).
 *
 *     section 0     struct unit_scan
 *     section 1     of each input with documents, its path: u32 bytes, the bytes
 *     section 2     struct stage_record of each document with an excluded n-gram
 *     section 3     --dedup minhash: struct scan_place of each document
 *     section 4 on  SCAN_PARTITIONS of them, by the first bits of a hash. --dedup exact: struct stage_record with the
 *                   key of each document that is not excluded; --dedup minhash: struct band_record
 *
 * All are in the order of the input. A scan that takes long has parts (stage_parts.h), which have the sections from the
 * second one on.
 */
#ifndef TOKMAP_PACK_UNIT_SCAN_H
#define TOKMAP_PACK_UNIT_SCAN_H

#include "document_key.h"
#include "pack_units.h"
#include "packing_options.h"
#include "stage_merge.h"

/* Where a document is: its record, and its input among those of the unit that have documents. */
struct scan_place {
    uint64_t record;
    uint32_t input, zero;
};

/* What the scan of a unit has found. */
struct unit_scan {
    struct place_counter places; /* of its documents; `input` is 0 */
    uint64_t lines;              /* of the part of a file that the unit has */
};

/* What is read. */
struct scan_inputs {
    const char *const *operands; /* of inputs.h */
    size_t count;                /* 0: nothing */
    /* Excludes from the corpus what is no input. May be NULL. */
    enum tokmap_status (*prepare)(void *self, struct corpus *corpus, struct tokmap_error *error);
    void *self;
};

/* Scans a unit, or continues the scan of a killed process. options->corpus has the range of the unit, and how its
 * inputs are read. options->other_output, stop, user, threads, compared, and checkpoint_ns are used: every so often a
 * part is committed, so that no more is lost; 0: only when the memory needs it. *before is set first: how many stored
 * bytes killed processes have scanned. Statuses: those of ordered_workers_run(), inputs->prepare(), corpus_resume(),
 * and stage_writer_commit(), ERROR_BUSY. */
enum tokmap_status unit_scan_run(const struct pack_options *options, const struct scan_inputs *inputs,
                                 const struct stage_id *id, uint64_t *before, struct tokmap_error *error);

/* Reads what the scan of a unit has found. Statuses: those of stage_section_load(). */
enum tokmap_status unit_scan_read(struct unit_scan *scan, const struct stage_id *id, struct tokmap_error *error);

#endif
