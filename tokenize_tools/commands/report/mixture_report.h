/* SPDX-License-Identifier: MIT */
/*
 * mixture_report.h - what each source of a run contributes: by phase, compared with its weight, and in all, with the
 * epochs that are shown and what repeats. All numbers are exact and come from the arithmetic of the run
 * (tokmap_run_phase, tokmap_run_share, tokmap_run_drawn), whatever the number of draws; no row is located.
 */
#ifndef TOKMAP_COMMANDS_REPORT_MIXTURE_REPORT_H
#define TOKMAP_COMMANDS_REPORT_MIXTURE_REPORT_H

#include <stdbool.h>

#include "cli/cli.h"

#define MIXTURE_FAULT 320    /* bytes of a fault's text, its zero included */
#define MIXTURE_CUTS_KEPT 64 /* epochs cut short by a change of seq_len that are kept */

/* One source, over all steps that are audited, skipped steps included. */
struct mixture_source {
    const char *name;
    uint64_t draws, tokens; /* tokens: draws * seq_len, at most UINT64_MAX */
    uint64_t skipped;       /* of the draws, those of skipped steps */
    uint64_t later_tokens;  /* of the tokens, those after epoch 0: shown before, except in epochs that were cut short */
    double epochs;          /* whole epochs and the shares of unfinished ones */
    uint64_t epochs_begun;
    uint64_t windows_first, windows; /* of an epoch, in the first and in the last phase that has the source */
    uint64_t epochs_most;            /* of `epochs<=N`; 0: no limit */
    uint64_t cuts;                   /* epochs that a change of seq_len cut short */
    /* Place of its next draw; used while the phases are visited. */
    uint64_t next_epoch, next_draw, seq_len, lengths;
    bool seen;
};

/* A change of seq_len starts a source at draw 0 of its next epoch. Of the epoch before, `shown` windows had been drawn,
 * and these are the ones that repeat before the others are shown at all. */
struct mixture_cut {
    uint64_t source, step, epoch, shown, windows, seq_len;
};

struct mixture_report {
    const struct tokmap_run *run;
    uint64_t steps; /* that are audited */
    struct tokmap_run_info info;
    struct mixture_source *sources; /* info.sources of them */
    struct mixture_cut cuts[MIXTURE_CUTS_KEPT];
    uint64_t cut_count;
    uint64_t rows, tokens; /* of all steps, skipped steps and padding included; tokens: at most UINT64_MAX */
    double worst;          /* the largest distance of a source's draws in a phase from its exact share, in draws */
    uint64_t levels;       /* the most that the definition allows for it */
    bool skipped_counted;  /* `skipped` of the sources is known */
};

/* Computes the report of steps [0, steps), at most the run's. Writes the first fault, or "", to `fault`: a source
 * that is not within the bound of its share, draws that do not add up, an epoch that does not continue, a limit that is
 * exceeded. Free *report with mixture_report_free(), after a failure too. Statuses: OK, ERROR_MEMORY, ERROR_RANGE. */
enum tokmap_status mixture_report_make(struct mixture_report *report, const struct tokmap_run *run, uint64_t steps,
                                       char fault[MIXTURE_FAULT], struct tokmap_error *error);
void mixture_report_free(struct mixture_report *report);

/* Gets a phase. Returns false from the first one on that begins after the steps that are audited. */
bool mixture_phase(const struct mixture_report *report, uint64_t number, struct tokmap_phase_info *phase);

/* Adds the draws of the skipped steps [first, end) to the sources. */
void mixture_report_skip(struct mixture_report *report, uint64_t first, uint64_t end);

/* Adds the lists of the sources, of the phases, and of cut epochs, of which at most MIXTURE_CUTS_KEPT are listed. For
 * people each comes after an empty line, and long ones are shortened. */
void mixture_report_add(const struct mixture_report *mixture, struct cli_report *report);

/* ---- the run as a whole ---- */

/* What `tokmap info` says of a run: its rows and tokens over all phases, how often it reads each source, its phases. */

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
