/* SPDX-License-Identifier: MIT */
/*
 * run_about.h - what `tokmap info` says of a run as a whole: its rows and tokens over all phases, how often it reads
 * each source, and its phases. All numbers come from the arithmetic of the run; no row is located.
 */
#ifndef TOKMAP_COMMANDS_REPORT_RUN_ABOUT_H
#define TOKMAP_COMMANDS_REPORT_RUN_ABOUT_H

#include <stdbool.h>

#include "mixture_report.h"

#define RUN_ABOUT_LINES 1000 /* lines of a table, and sources that are described; --json has all */

struct run_about_place {
    uint64_t phase, share; /* phase UINT64_MAX: nowhere */
};

struct run_about {
    const struct tokmap_run *run;
    struct tokmap_run_info info;
    bool ends;                     /* the report below holds values */
    struct mixture_report report;  /* contribution of each source */
    struct run_about_place *first; /* of each source: the first phase that has it, and its number there */
};

/* Describes a run. Free *about with run_about_free(), after a failure too. Statuses: OK, ERROR_MEMORY, ERROR_RANGE. */
enum tokmap_status run_about_make(struct run_about *about, const struct tokmap_run *run, struct tokmap_error *error);
void run_about_free(struct run_about *about);

/* Fills *share with what a source has in the first phase that has it, and *phase with that phase. Returns false if no
 * phase has the source. */
bool run_about_first(const struct run_about *about, uint64_t source, struct tokmap_phase_info *phase,
                     struct tokmap_share_info *share);

/* Returns whether rows of the run have padding, which counts as a document. */
bool run_about_padded(const struct tokmap_run *run, const struct tokmap_run_info *info);
/* Returns the tokens of a source that no row of an epoch of so many windows shows: each window but the last one shows
 * `stride` tokens of its own. */
uint64_t run_about_tail(const struct tokmap_run_info *info, const struct tokmap_source_info *source, uint64_t seq_len,
                        uint64_t windows);

/* The order of the rows of a run: those of its first phase, and those of run_about_report(). */
#define RUN_ABOUT_ROWS "*|phases|stride|tail|last step|pad id|validation|excluded|rows of the run|tokens of the run"
/* Adds facts about the whole run, and about one source of it. */
void run_about_report(const struct run_about *about, struct cli_report *report);
void run_about_source(const struct run_about *about, uint64_t source, struct cli_report *report);
/* Adds the list of the phases; for people, if there are several sources or phases, also a table of the sources. */
void run_about_lists(const struct run_about *about, struct cli_report *report);
/* Adds the datasets that a run holds out. */
void run_about_validations(const struct tokmap_run *run, struct cli_report *report);

#endif
