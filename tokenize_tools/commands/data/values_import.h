/* SPDX-License-Identifier: MIT */
/* values_import.h - values beside the shards of a dataset, from a .npy file or a file of nothing but values. */
#ifndef TOKMAP_COMMANDS_DATA_VALUES_IMPORT_H
#define TOKMAP_COMMANDS_DATA_VALUES_IMPORT_H

#include <stdbool.h>

#include "format/values_file.h"
#include "tokmap/tokmap.h"

/* Writes and finishes values. The first dimension of the file is the tokens of the dataset.
 *   given    "WHAT=FILE.npy", or "WHAT:f16[32]=FILE" for a raw file, or a .npy file of bf16 that NumPy calls u2 or V2
 *   replace  values that exist are replaced
 *   array    receives what was made
 * Statuses: OK, ERROR_ARGUMENT, ERROR_TRUNCATED (the file has another length than the tokens need), ERROR_UNSUPPORTED
 * (another type, big-endian, or columns first), those of npy_header_read(), tokmap_values_open(), and
 * tokmap_values_finish(). */
enum tokmap_status values_import(const struct tokmap_dataset *dataset, const char *given, bool replace,
                                 struct values_array *array, struct tokmap_values_result *result,
                                 struct tokmap_error *error);

#endif
