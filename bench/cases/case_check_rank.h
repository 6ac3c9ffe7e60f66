/* SPDX-License-Identifier: MIT */
/*
 * case_check_rank.h - one of the ranks of the case `check`: a copy of this program with one loader, as a training
 * program has one loader in each of its processes.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_CHECK_RANK_H
#define TOKMAP_BENCH_CASES_CASE_CHECK_RANK_H

#include "harness/harness.h"

#define CHECK_STEPS_MOST 4000 /* steps of an emulated training that a rank can report */

/* What a rank does. All ranks of a measurement begin at the same time on the clock of the machine. */
struct check_task {
    uint64_t rank;
    uint64_t begin_ns;   /* when to begin, on os_clock_ns() */
    uint64_t length_ns;  /* without a step: how long it takes batches, at most */
    uint64_t steps;      /* without a step: the steps of the run that it reads; with one: how many steps it makes */
    uint64_t step_ns;    /* computing time of a step; 0: it takes batches without a pause */
    uint64_t ring_bytes; /* of the loader; 0: the default */
    uint64_t again;      /* 1: without a step, it begins again at step 0 when the steps have been read */
};

/* What it prints. */
struct check_report {
    uint64_t from_ns, to_ns; /* when it began and ended */
    uint64_t tokens;
    uint64_t steps;        /* that it has completed */
    uint64_t cpu_ns;       /* of all its threads, without the time of computing */
    uint64_t storage;      /* bytes that it read from storage; UINT64_MAX if unknown */
    uint64_t first_ns;     /* the time of its first call of next() */
    uint64_t computing_ns; /* of all steps but the first */
    uint64_t all_ns;       /* of these steps */
    uint64_t wait_count;
    uint32_t waits_us[CHECK_STEPS_MOST]; /* the time in next() in each step but the first */
};

/* Writes a task into the text from which the copy reads it (options.child). */
void check_task_print(const struct check_task *task, char text[256]);
/* What the copy does: reads the task from options.child, measures, and prints a report. Returns its exit status. */
int check_rank(struct bench *bench);
#define CHECK_REPORT_BYTES (512 + 11 * CHECK_STEPS_MOST) /* of a printed report, at most */
/* Reads what a copy printed. Returns false if it is not a report. */
bool check_report_read(const char *text, struct check_report *report);

#endif
