/* SPDX-License-Identifier: MIT */
/*
 * made_parquet.h - writes documents as a Parquet file, for cases that measure how fast such files are read.
 *
 * The file has one required column of strings, `text`, PLAIN, in pages of version 1: the shape that most writers give
 * to text. It shares no code with the reader.
 */
#ifndef TOKMAP_BENCH_HARNESS_MADE_PARQUET_H
#define TOKMAP_BENCH_HARNESS_MADE_PARQUET_H

#include "harness.h"
#include "tokenizer/tokenizer.h"

/* What follows the header of a page. */
struct made_page {
    uint64_t offset;        /* in the file */
    uint32_t stored, bytes; /* as it is stored, and decompressed */
};

struct made_parquet {
    struct made_page *pages;
    uint64_t page_count;
    uint64_t text_bytes; /* of all documents */
};

/* Creates the file. compressed: with zstd, else the pages are stored as they are. Returns CLI_DONE, or CLI_FAILED after
 * a message. *made must be all zeros before; free it in either case. */
int made_parquet_write(struct bench *bench, const char *path, const struct tokmap_text *documents, uint64_t count,
                       bool compressed, struct made_parquet *made);
void made_parquet_free(struct made_parquet *made);

#endif
