/* SPDX-License-Identifier: MIT */
/* values.h - writes values beside tokens, such as weights or a teacher's probabilities; tokmap.h has the rules */
#ifndef TOKMAP_VALUES_H
#define TOKMAP_VALUES_H

#include "loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A writer of values of a dataset on local disks, in any order. Any number of processes may write the same values, and
 * be killed and started again; one of them finishes when the others have closed theirs. Until then readers see nothing.
 * One thread at a time may use a writer, and a child after fork() must not.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_values_writer *writer = NULL;
 *     const uint8_t scores[] = {3, 9};                // of tokens 100 and 101 of the dataset
 *     const void *const arrays[] = {scores};
 *     struct tokmap_values_options o = TOKMAP_VALUES_OPTIONS_INIT;
 *     o.holes = 1;                                    // all other tokens have no values
 *     if (tokmap_values_open(&writer, dataset, "scores:u8", NULL, &e) ||
 *         tokmap_values_put_at(writer, 100, 2, arrays, &e) || tokmap_values_finish(writer, &o, NULL, &e) ||
 *         tokmap_values_close(writer, &e))
 *         fatal(&e);
 * @endcode
 */
struct tokmap_values_writer;

struct tokmap_values_options {
    size_t size;
    int replace; /* of open(). 1: finish() replaces values that exist; a killed one is continued with 0. Default: 0 */
    int holes;   /* of finish(). 1: tokens may lack values, which are zeros then. Default: 0 */
    int nan;     /* of finish(). 1: values may be NaN. Default: 0 */
};
#define TOKMAP_VALUES_OPTIONS_INIT TOKMAP_SIZED(struct tokmap_values_options)

/* Begins values, or continues those of the same arrays in the same order. Close the writer before the dataset.
 *   arrays   NAME:ELEMENT[SHAPE] of each array, at most 8, such as "teacher_ids:u32[32] teacher:f16[32] weights:f32".
 *            ELEMENT is u8, u16, u32, f16, bf16, or f32; a token has at most 65,536 bytes in an array
 *   options  NULL: the defaults
 * Statuses: OK, ERROR_EXISTS, ERROR_MISMATCH (unfinished values have other arrays, types, or tokens), ERROR_BUSY,
 * ERROR_IO, ERROR_LIMIT, ERROR_UNSUPPORTED (not of shards on local disks), ERROR_NOT_FOUND (no index). */
TOKMAP_STATUS tokmap_values_open(struct tokmap_values_writer **writer, const struct tokmap_dataset *dataset,
                                 const char *arrays, const struct tokmap_values_options *options,
                                 struct tokmap_error *error);

/* Writes the values of tokens [token, token + count) of the dataset: values[k] has those of array k, one token after
 * another. Statuses: OK, ERROR_RANGE, ERROR_IO (also of an earlier write to storage), those of open(). */
TOKMAP_STATUS tokmap_values_put_at(struct tokmap_values_writer *writer, uint64_t token, uint64_t count,
                                   const void *const *values, struct tokmap_error *error);

/* Writes the values of the targets of a batch: values[k] is an array [batch->count][batch->columns] of array k's, and
 * [i][j] belongs to the target of column j. Left out are padding, targets in another document than their input (in a
 * row of a plan), tokens that the run excludes, and rows of other sources.
 *   loader  that delivered the batch, and none since then
 *   source  whose dataset is the writer's, or a part of it; NULL: the run's only one
 * Statuses: OK, ERROR_ARGUMENT (the source), ERROR_MISMATCH (its dataset), ERROR_CORRUPT (the plan), as put_at(). */
TOKMAP_STATUS tokmap_values_put(struct tokmap_values_writer *writer, struct tokmap_loader *loader,
                                const struct tokmap_batch *batch, const char *source, const void *const *values,
                                struct tokmap_error *error);

/* Brings what was put to storage, as a thread does every 4 s. Statuses: OK, ERROR_IO, after which what came after the
 * last success is to be put again, by a new writer. */
TOKMAP_STATUS tokmap_values_sync(struct tokmap_values_writer *writer, struct tokmap_error *error);

struct tokmap_values_result {
    size_t size; /* then tokens of whole shards, those without values, those put more than once, and files named */
    uint64_t tokens, missing, repeated, files;
};
#define TOKMAP_VALUES_RESULT_INIT TOKMAP_SIZED(struct tokmap_values_result)

/* Joins what all writers have put to all shards of the dataset, checks and hashes it, and names it NAME.WHAT.values. If
 * it is refused, what was put stays, and the writer may continue; if it is killed, call it again.
 *   result  NULL: not wanted
 * Statuses: OK, ERROR_BUSY (another writer of these shards is open), ERROR_INPUT (a token has no values, or a value is
 * NaN), ERROR_CORRUPT (notes of writers are damaged), ERROR_MISMATCH, ERROR_IO. */
TOKMAP_STATUS tokmap_values_finish(struct tokmap_values_writer *writer, const struct tokmap_values_options *options,
                                   struct tokmap_values_result *result, struct tokmap_error *error);

/* Brings the rest to storage, and frees the writer with every status. Accepts NULL. Statuses: OK, ERROR_IO. */
TOKMAP_STATUS tokmap_values_close(struct tokmap_values_writer *writer, struct tokmap_error *error);

#ifdef __cplusplus
}
#endif
#endif
