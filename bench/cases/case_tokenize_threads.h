/* SPDX-License-Identifier: MIT */
/*
 * case_tokenize_threads.h - the parts of the case `tokenize` that use two threads.
 *
 * What a second thread adds on this machine, for two loops that share nothing: one that works in registers, and one
 * that reads at random addresses of a table of its own. No program that encodes can expect more from a second thread
 * than these loops get.
 *
 * The second loop is there because two virtual processors usually share a level of cache, and often also with other
 * machines: a table that fits in that level alone may not fit beside another one.
 *
 * Thread rule: call these functions from one thread, while nothing else of the program runs.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_TOKENIZE_THREADS_H
#define TOKMAP_BENCH_CASES_CASE_TOKENIZE_THREADS_H

#include <stdint.h>

#include "harness/bench_text.h"

/* Sets *ratio to the work of two threads divided by the work of one in the same time: 2 if the second thread adds all
 * of a processor. It is below 2 if other programs run, or if both threads share a core. Takes about 0.1 s. Returns 0,
 * or an errno of starting a thread. */
int two_threads_compute(double *ratio);

/* Does the same with random reads of 8 bytes from a table of table_bytes, a power of two of at least 4096, in memory
 * of huge pages where the kernel has them. Each thread has its own table, and begins when both tables are filled. Takes
 * about 0.2 s. Returns 0, ENOMEM, or an errno of starting a thread. */
int two_threads_look_up(uint64_t table_bytes, double *ratio);

/* ==== tokmap pack on two threads ==== */

/*
 * A part of the case `tokenize`: `tokmap pack` on two threads, as a process, from the documents of the text as JSONL to
 * a shard on storage.
 */

struct pack_records {
    char path[BENCH_PATH]; /* the JSONL file */
    uint64_t text_bytes;
    struct series rate, peak; /* MB/s of text, MiB */
};

/* Writes the JSONL file. */
void pack_records_open(struct bench *bench, struct pack_records *records, const struct bench_text *text);

/* Packs the file once, in a copy of this program that starts `tokmap pack`. The peak memory that the kernel reports for
 * a process is never below what its parent held when it started the process, and this process holds the text and its
 * ids; the copy holds nothing. counts: add the results to the series. */
void pack_records_repeat(struct bench *bench, struct pack_records *records, bool counts);

/* Does the work of that copy: packs the file options.dataset and prints "seconds=S peak=MIB". */
void pack_records_child(struct bench *bench);

#endif
