/*
 * unit_scan.h - the first stage of packing in units with documents left out: reads a unit, and writes what must be
 * known of its documents before those of any unit are packed, to NAME.work/scan-000012 (scan_file.h).
 */
#ifndef TOKMAP_PACK_UNIT_SCAN_H
#define TOKMAP_PACK_UNIT_SCAN_H

#include "dedup/scan_file.h"
#include "pack_units.h"
#include "packing_options.h"

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

#endif
