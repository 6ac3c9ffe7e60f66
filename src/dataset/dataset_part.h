/* SPDX-License-Identifier: MIT */
/* dataset_part.h - makes an open dataset a part of itself. */
#ifndef TOKMAP_DATASET_DATASET_PART_H
#define TOKMAP_DATASET_DATASET_PART_H

#include "dataset_name.h"
#include "opened_dataset.h"

/* Leaves only the part in the dataset, and derives its content id; a part that is everything changes nothing. The
 * dataset has not been given to anyone yet. Statuses: OK, ERROR_RANGE (the part ends beyond the dataset, or has no
 * tokens), ERROR_UNSUPPORTED (the dataset's documents are unknown), ERROR_CORRUPT. */
enum tokmap_status dataset_cut(struct tokmap_dataset *dataset, const struct dataset_part *part,
                               struct tokmap_error *error);

#endif
