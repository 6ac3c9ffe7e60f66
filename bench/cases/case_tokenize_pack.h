/* SPDX-License-Identifier: MIT */
/*
 * case_tokenize_pack.h - a part of the case `tokenize`: `tokmap pack` on two threads, as a process, from the documents
 * of the text as JSONL to a shard on storage.
 */
#ifndef TOKMAP_BENCH_CASES_CASE_TOKENIZE_PACK_H
#define TOKMAP_BENCH_CASES_CASE_TOKENIZE_PACK_H

#include "harness/bench_text.h"

struct pack_records {
    char path[BENCH_PATH]; /* the JSONL file */
    uint64_t text_bytes;
    struct series rate, peak; /* MB/s of text, MiB */
};

/* Writes the JSONL file. Returns CLI_DONE, or CLI_FAILED after a message, as do the other functions. */
int pack_records_open(struct bench *bench, struct pack_records *records, const struct bench_text *text);

/* Packs the file once, in a copy of this program that starts `tokmap pack`. The peak memory that the kernel reports for
 * a process is never below what its parent held when it started the process, and this process holds the text and its
 * ids; the copy holds nothing. counts: add the results to the series. */
int pack_records_repeat(struct bench *bench, struct pack_records *records, bool counts);

/* What that copy does: packs the file options.dataset and prints "seconds=S peak=MIB". */
int pack_records_child(struct bench *bench);

#endif
