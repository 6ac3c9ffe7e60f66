/* result_files.h - what --save and --plot leave in folders. */
#ifndef TOKMAP_BENCH_HARNESS_RESULT_FILES_H
#define TOKMAP_BENCH_HARNESS_RESULT_FILES_H

#include "harness.h"

/* Before the case: creates the folders, and finds out whether gnuplot is there. */
int results_prepare(struct bench *bench);
/* After it: writes FOLDER/CASE.jsonl, which replaces an earlier one in one step, and the pictures. case_name: with the
 * table of `compare` it becomes CASE-TABLE. Frees the lines. */
int results_keep(struct bench *bench, const char *case_name);

#endif
