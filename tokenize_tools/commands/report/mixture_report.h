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
#include "tokmap/tokmap.h"

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

#endif
