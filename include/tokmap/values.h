/* SPDX-License-Identifier: MIT */
/*
 * values.h - writes values beside tokens: numbers that belong to each token, such as weights or a teacher's
 * probabilities; tokmap.h has the rules for all functions
 */
#ifndef TOKMAP_VALUES_H
#define TOKMAP_VALUES_H

#include "loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A writer of values for all tokens of a dataset on local disks, in any order. Any number of processes may write the
 * same values, and may be killed and started again; one of them finishes when the others have closed their writers.
 * Until then readers see nothing. One thread at a time may use a writer, and a child after fork() must not.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_values_writer *writer = NULL;
 *     if (tokmap_values_open(&writer, dataset, "weights:f32 teacher:f16[2]", NULL, &e))
 *         fatal(&e);
 *     const float weights[] = {0.5f, 1.0f};           // of tokens 100 and 101 of the dataset
 *     const uint16_t teacher[] = {0x3800, 0x3400, 0x3a00, 0x3000};
 *     const void *const arrays[] = {weights, teacher};
 *     if (tokmap_values_put_at(writer, 100, 2, arrays, &e))
 *         fatal(&e);
 *     struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
 *     struct tokmap_values_options o = TOKMAP_VALUES_OPTIONS_INIT;
 *     o.holes = 1;                                    // all other tokens have no values
 *     if (tokmap_values_finish(writer, &o, &result, &e) || tokmap_values_close(writer, &e))
 *         fatal(&e);
 * @endcode
 */
struct tokmap_values_writer;

struct tokmap_values_options {
    size_t size;
    int replace; /* 1: values that exist are replaced when the new ones are finished. 0 (default): ERROR_EXISTS */
    int holes;   /* for finish(). 1: tokens may lack values, which are zeros then. Default: 0 */
    int nan;     /* for finish(). 1: values may be NaN. Default: 0 */
};
#define TOKMAP_VALUES_OPTIONS_INIT TOKMAP_SIZED(struct tokmap_values_options)

/* Begins or continues values.
 *   writer   receives the handle; end it with tokmap_values_close(), before the dataset
 *   arrays   NAME:ELEMENT[SHAPE] of each array, at most 8, such as "teacher_ids:u32[32] teacher:f16[32] weights:f32".
 *            ELEMENT is u8, u16, u32, f16, bf16, or f32; a token has at most 65,536 bytes in an array
 *   options  NULL: the defaults
 * Statuses: OK, ERROR_EXISTS, ERROR_MISMATCH (unfinished values of this name have another type or belong to other
 * tokens), ERROR_BUSY (they are being finished), ERROR_IO, ERROR_LIMIT, ERROR_UNSUPPORTED (the dataset is not of shards
 * on local disks), ERROR_NOT_FOUND (a shard has no index). */
TOKMAP_STATUS tokmap_values_open(struct tokmap_values_writer **writer, const struct tokmap_dataset *dataset,
                                 const char *arrays, const struct tokmap_values_options *options,
                                 struct tokmap_error *error);

/* Writes the values of tokens [token, token + count) of the dataset: values[k] has those of array k, one token after
 * another. What a token already has is replaced. Failures of an earlier write to storage are returned here, too.
 * Statuses: OK, ERROR_RANGE, ERROR_IO, those of tokmap_values_open(). */
TOKMAP_STATUS tokmap_values_put_at(struct tokmap_values_writer *writer, uint64_t token, uint64_t count,
                                   const void *const *values, struct tokmap_error *error);

/* Writes the values of the targets of a batch, wherever its rows are from: values[k] is an array [batch->count]
 * [batch->columns] of array k's values, and element [i][j] belongs to the target of column j, as in batch targets.
 * Values of padding, of targets in another document than their input (in a row of a plan), of tokens that the run
 * excludes, and of rows of other sources are left out.
 *   loader  that delivered the batch, and has not delivered another one since then
 *   source  whose dataset has the writer's content id; NULL: the run's only one
 * Statuses: OK, ERROR_NOT_FOUND (the source), ERROR_MISMATCH (its dataset is another one), ERROR_CORRUPT (the plan),
 * those of tokmap_values_put_at(). */
TOKMAP_STATUS tokmap_values_put(struct tokmap_values_writer *writer, struct tokmap_loader *loader,
                                const struct tokmap_batch *batch, const char *source, const void *const *values,
                                struct tokmap_error *error);

/* Brings what was put to storage: it is not lost when the program is killed or the power fails. A thread does so every
 * 4 s. Statuses: OK, ERROR_IO. After a failure put what came after the last success again, with a new writer. */
TOKMAP_STATUS tokmap_values_sync(struct tokmap_values_writer *writer, struct tokmap_error *error);

struct tokmap_values_result {
    size_t size;
    uint64_t tokens;   /* of the shards, whole, also of a part of them */
    uint64_t missing;  /* those without values */
    uint64_t repeated; /* those put more than once */
    uint64_t files;    /* that were named */
};
#define TOKMAP_VALUES_RESULT_INIT TOKMAP_SIZED(struct tokmap_values_result)

/* Finishes the values of all shards of the dataset: joins what all writers have put, checks and hashes it, and gives
 * each file its name, NAME.WHAT.values. If it is refused, what was put stays, and the writer may continue. If it is
 * killed, call it again.
 *   options  NULL: the defaults
 *   result   NULL: not wanted
 * Statuses: OK, ERROR_BUSY (another writer of these shards is open), ERROR_INPUT (tokens have no values, or a value is
 * NaN; the message says which), ERROR_CORRUPT (notes of writers were damaged), ERROR_MISMATCH, ERROR_IO. */
TOKMAP_STATUS tokmap_values_finish(struct tokmap_values_writer *writer, const struct tokmap_values_options *options,
                                   struct tokmap_values_result *result, struct tokmap_error *error);

/* Brings the rest to storage, and frees the writer with every status. Accepts NULL. Statuses: OK, ERROR_IO. */
TOKMAP_STATUS tokmap_values_close(struct tokmap_values_writer *writer, struct tokmap_error *error);

#ifdef __cplusplus
}
#endif
#endif
