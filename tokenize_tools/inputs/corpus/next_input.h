/* SPDX-License-Identifier: MIT */
/*
 * next_input.h - the input after the open one. While a Parquet file of a URL is read, a thread opens the next one, so
 * the reader does not wait for its footer, and its first pages are fetched after the last ones of the open file.
 *
 * Thread rule: one thread at a time.
 */
#ifndef TOKMAP_CORPUS_NEXT_INPUT_H
#define TOKMAP_CORPUS_NEXT_INPUT_H

#include "inputs.h"
#include "parquet_open.h"

/* Begins as zeros. */
struct next_input {
    bool asked; /* the input after the open one has been named */
    enum tokmap_status found, opened;
    struct tokmap_error found_why, opened_why;
    struct inputs_counts counts; /* when it had been named */
    char *path;                  /* or NULL, with an error or at the end */
    struct os_thread *thread;    /* that opens it, or NULL */
    struct parquet_source *source;
    const struct corpus_options *options; /* of the thread */
    struct parquet_shared *shared;
};

/* Names the next input, and begins to open it if its name is that of a Parquet file. What the pointers point to must
 * stay valid. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status next_input_ask(struct next_input *next, struct inputs *inputs, const struct corpus_options *options,
                                  struct parquet_shared *shared, struct tokmap_error *error);

/* Does what inputs_next() does, for the input that was asked for, if one was. *counts: inputs_counts() after it. The
 * path is valid until the next call. */
enum tokmap_status next_input_take(struct next_input *next, struct inputs *inputs, const char **path,
                                   struct inputs_counts *counts, struct tokmap_error *error);

/* If this file was opened ahead, and its reading was begun, sets *source and *status to the result, and returns true.
 * The source is the caller's.
 */
bool next_input_opened(struct next_input *next, const char *path, struct parquet_source **source,
                       enum tokmap_status *status, struct tokmap_error *error);

void next_input_free(struct next_input *next);

#endif
