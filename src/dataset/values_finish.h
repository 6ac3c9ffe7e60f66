/* SPDX-License-Identifier: MIT */
/* values_finish.h - tokmap_values_finish() with a bound of its memory that tests choose. */
#ifndef TOKMAP_DATASET_VALUES_FINISH_H
#define TOKMAP_DATASET_VALUES_FINISH_H

#include "tokmap/tokmap.h"

/* piece: tokens whose bits are in memory at once, a multiple of 64. *result is also filled after a failure of the files
 * or notes. Statuses: those of tokmap_values_finish(). */
enum tokmap_status values_finish(struct tokmap_values_writer *writer, const struct tokmap_values_options *options,
                                 uint64_t piece, struct tokmap_values_result *result, struct tokmap_error *error);

#endif
