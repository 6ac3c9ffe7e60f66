/* SPDX-License-Identifier: MIT */
/*
 * unit_scan.h - the first stage of packing in units with documents left out: reads a unit, and writes what must be
 * known of its documents before those of any unit are packed, to NAME.work/scan-000012 (drop_list.h).
 */
#ifndef TOKMAP_DEDUP_UNIT_SCAN_H
#define TOKMAP_DEDUP_UNIT_SCAN_H

#include "corpus/corpus.h"
#include "drop_list.h"
#include "listed_documents.h"
#include "ngram_table.h"

/* Inputs of the scan. */
struct scan_inputs {
    const char *const *operands; /* of inputs.h */
    size_t count;                /* 0: nothing */
    /* Excludes from the corpus what is no input. May be NULL. */
    enum tokmap_status (*prepare)(void *self, struct corpus *corpus, struct tokmap_error *error);
    void *self;
};

struct unit_scan_options {
    struct drop_stage stage;      /* with checkpoint_ns 0, parts are committed only when the memory needs it */
    struct corpus_options corpus; /* the range of the unit, and how its inputs are read */
    const char *other_output;     /* a file that the caller writes at the same time and that is not an input, or NULL */
    const struct listed_documents *listed; /* are no documents; or NULL */
    uint32_t threads;
    /* Called with stage.user: the stored bytes of the inputs that are scanned so far. May be NULL. */
    void (*compared)(void *user, uint64_t stored_bytes);
};

/* Scans a unit, or continues the scan of a killed process. *before is set first: how many stored bytes killed processes
 * have scanned. Statuses: those of ordered_workers_run(), inputs->prepare(), corpus_resume(), and
 * stage_writer_commit(), ERROR_BUSY. */
enum tokmap_status unit_scan_run(const struct unit_scan_options *options, const struct scan_inputs *inputs,
                                 const struct stage_id *id, uint64_t *before, struct tokmap_error *error);

#endif
