/* SPDX-License-Identifier: MIT */
/* local_dataset.h - opens a dataset for a command that writes beside its shards, or writes their paths. */
#ifndef TOKMAP_COMMANDS_DATA_LOCAL_DATASET_H
#define TOKMAP_COMMANDS_DATA_LOCAL_DATASET_H

#include "tokmap/tokmap.h"

/* Does what tokmap_dataset_open() does without options. Statuses: also ERROR_UNSUPPORTED (it is in object storage, and
 * this machine has only parts of its shards). */
enum tokmap_status local_dataset_open(struct tokmap_dataset **dataset, const char *name, struct tokmap_error *error);

#endif
