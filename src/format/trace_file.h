/* SPDX-License-Identifier: MIT */
/*
 * trace_file.h - trace files: what a loader delivered, as one sum of hashes for each step. FORMAT.md describes them.
 *
 * A trace is a sequence of sections, each a header followed by records. A loader begins a section when it is opened and
 * when its place in the run changes. A writer holds a lock on its file. Reading is two steps: trace_file_scan() finds
 * the sections and checks them, and trace_file_read() reads records of one.
 */
#ifndef TOKMAP_FORMAT_TRACE_FILE_H
#define TOKMAP_FORMAT_TRACE_FILE_H

#include <stdint.h>

#include "tokmap/tokmap.h"

#define TRACE_MAGIC "\x89TMR\r\n\x1a\x8a" /* as a number above 2^63, which no step is */
#define TRACE_VERSION 1
#define TRACE_VERSION_SLICES 2   /* of a section whose rank delivered slices of rows */
#define TRACE_VERSION_BALANCED 3 /* of a section whose rank delivered balanced rows, which may be slices */
#define TRACE_VERSION_NODES 4    /* of a section whose rank has rows by block, which may be slices */
#define TRACE_HEADER_BYTES 64
#define TRACE_HEADER_BYTES_MOST 96 /* with `balance` or `nodes` */
#define TRACE_RECORD_BYTES 16

struct trace_header {
    uint32_t width;                       /* bytes of a token in the rows that were hashed: 2 or 4 */
    uint64_t rank, world;                 /* below 2^32 from version 2 on */
    uint64_t context_rank, context_world; /* below 2^32; of a slice of each row, 0 of 1: of whole rows */
    uint32_t context_layout;              /* enum tokmap_context_layout */
    uint64_t first_step;                  /* records begin at this step or a later one */
    uint64_t past[2];                     /* of the run's cursor at that step */
    uint64_t balance;                     /* rows are assigned by their costs: assignment_rule.scale; 0: they are not */
    uint64_t rows;                        /* with balance: the most of a call; 0: a rank's whole part of a step */
    uint64_t nodes;                       /* rows are assigned by block: assignment_rule.nodes; 0: they are not */
};

/* One step that a rank has delivered completely. */
struct trace_record {
    uint64_t step;
    uint64_t sum; /* of trace_hash() of all rows of the rank, or of all chunks of them, modulo 2^64 */
};

/* Returns the hash of one row: its bytes as they are in a slot, and its number in the global batch. */
uint64_t trace_hash(const void *row, uint64_t bytes, uint64_t number);

/* Returns the number of a chunk of a row, which takes the row's in the hash of a chunk: that of its first column, over
 * all rows of the global batch. What is hashed are the chunk's tokens, and the one after them if the run has a
 * lookahead. */
static inline uint64_t trace_chunk_number(uint64_t row, uint64_t seq_len, uint64_t first)
{
    return row * seq_len + first;
}

/* ---- writing; one thread at a time ---- */

struct trace_writer;

/* Opens the file for a writer. A file that exists must be a trace; it is continued, without what a writer that was
 * killed has left of an incomplete header or record. path must be valid while the writer is open.
 * Statuses: OK, ERROR_IO, ERROR_NOT_FOUND (the folder), ERROR_FORMAT (the file is not a trace), ERROR_BUSY (another
 * writer has it open), ERROR_MEMORY. */
enum tokmap_status trace_writer_open(struct trace_writer **writer, const char *path, struct tokmap_error *error);
void trace_writer_close(struct trace_writer *writer); /* accepts NULL */

/* Begin a section, and append records to it. After a failure the file is as before. Statuses: OK, ERROR_IO. */
enum tokmap_status trace_writer_begin(struct trace_writer *writer, const struct trace_header *header,
                                      struct tokmap_error *error);
enum tokmap_status trace_writer_add(struct trace_writer *writer, const struct trace_record *records, uint64_t count,
                                    struct tokmap_error *error);

/* ---- reading ---- */

struct trace_section {
    struct trace_header header;
    uint64_t offset; /* of its first record in the file */
    uint64_t records;
    uint64_t end_step; /* the step after its last record; first_step without records */
};

/* Reads a whole trace and calls found() for each section, in the order of the file. Steps of a section increase, and
 * are not below its first step. found() returns 0 to continue; any other value ends the scan with ERROR_INTERRUPTED.
 *   torn   receives the bytes at the end of the file that are not a complete header or record, or that are zero: a
 *          writer was killed, or its machine stopped. They are ignored
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_INTERRUPTED. */
enum tokmap_status trace_file_scan(const char *path, int (*found)(void *user, const struct trace_section *section),
                                   void *user, uint64_t *torn, struct tokmap_error *error);

/* Reads `count` records at a byte offset. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status trace_file_read(const char *path, uint64_t offset, uint64_t count, struct trace_record *records,
                                   struct tokmap_error *error);

#endif
