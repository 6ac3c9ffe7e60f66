/* SPDX-License-Identifier: MIT */
/*
 * dedup_stages.h - finds which documents of all inputs are left out, in two stages (work/stage_schedule.h). Whether a
 * document is a duplicate depends on those of all units before, so nothing is compared before all units are scanned:
 *
 *     scan      each unit      its keys and excluded documents    scan-000012         unit_scan.h
 *     compare   each portion   which documents are dropped        drops-000003        drop_resolve.h, drop_resolve.h
 *
 * The files in the folder are the state. A scan, and the comparison of near-duplicates, that a killed task has begun
 * are continued; a portion of exact duplicates is short, and begins again. What follows is the list of all that is
 * dropped (drop_finish.h), or packing, which asks about each document (drop_filter.h).
 */
#ifndef TOKMAP_DEDUP_DEDUP_STAGES_H
#define TOKMAP_DEDUP_DEDUP_STAGES_H

#include "drop_resolve.h"
#include "unit_scan.h"
#include "work/stage_schedule.h"
#include "work/work_units.h"

/* The work. Begins as zero bytes, but for what the caller sets. */
struct dedup_stages {
    /* The caller's: how units are read and compared. Its functions are called with its user. */
    struct unit_scan_options scanning;
    const struct work_units *units;
    /* What the only unit has, so that nothing is left to other tasks (ERROR_BUSY); NULL: units->paths. */
    const struct scan_inputs *whole;
    const char *folder;
    uint64_t key; /* of the files */
    struct task_share share;
    struct task_claim *claim; /* NULL: the process is no task */
    /* Findings, valid once all is complete. */
    struct all_scans scans;
    struct schedule_left left;
    /* Of dedup_stages_run(). */
    struct unit_scan_options watched; /* with functions that report, and find out that the claim is lost */
    struct task_work work;
    uint64_t unit, before; /* the unit that is scanned, and its stored bytes that killed processes have scanned */
    uint64_t scanned;      /* stored bytes of the units that this process has scanned */
};

/* Does the share of a task of both stages. stages->left says what other tasks have not done; then nothing is found.
 * Statuses: those of schedule_run(), unit_scan_run(), all_scans_read(), drop_portion_run(), and near_resolve_run(),
 * ERROR_BUSY. */
enum tokmap_status dedup_stages_run(struct dedup_stages *stages, struct tokmap_error *error);
void dedup_stages_free(struct dedup_stages *stages); /* accepts zeros */

/* Returns the findings about a unit. They are valid as long as the stages, and the names of the folder. */
struct drop_source dedup_stages_source(const struct dedup_stages *stages, uint64_t unit);

/* Returns true if every input can be read twice: the operands and lists name no standard input, pipe, or device. */
bool dedup_can_repeat(const char *const *operands, size_t count, const struct inputs_selection *select);

#endif
