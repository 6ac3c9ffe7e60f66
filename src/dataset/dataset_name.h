/* SPDX-License-Identifier: MIT */
/* dataset_name.h - what the end of a dataset's name says: NAME#docs=A..B% and the like name a part of NAME, of which an
 * open dataset is then made. FORMAT.md, "Names", has the grammar. */
#ifndef TOKMAP_DATASET_DATASET_NAME_H
#define TOKMAP_DATASET_DATASET_NAME_H

#include "opened_dataset.h"

enum part_unit {
    PART_WHOLE,     /* the name has no part */
    PART_PERCENT,   /* #docs=A..B%: of the documents */
    PART_DOCUMENTS, /* #docs=A..B */
    PART_TOKENS,    /* #tokens=A..B */
};

/* The part of a dataset that a name asks for: [from, to), from < to. */
struct dataset_part {
    enum part_unit unit;
    uint64_t from, to;
    uint64_t whole; /* with PART_PERCENT, all documents: 100 times a power of ten, so that A and B are integers */
};

/* Separates the part from the name. *base: the name without it, to be freed with free(). Statuses: OK, ERROR_ARGUMENT
 * (the part is not of the form above, is empty, or is not below 100%), ERROR_MEMORY. */
enum tokmap_status dataset_name_split(const char *name, char **base, struct dataset_part *part,
                                      struct tokmap_error *error);

/* Returns floor(documents * at / part->whole), at being part->from or part->to, and documents below 2^63. */
uint64_t dataset_part_document(const struct dataset_part *part, uint64_t documents, uint64_t at);

/* Leaves only the part in the dataset, and derives its content id; a part that is everything changes nothing. The
 * dataset has not been given to anyone yet. Statuses: OK, ERROR_RANGE (the part ends beyond the dataset, or has no
 * tokens), ERROR_UNSUPPORTED (the dataset's documents are unknown), ERROR_CORRUPT. */
enum tokmap_status dataset_cut(struct tokmap_dataset *dataset, const struct dataset_part *part,
                               struct tokmap_error *error);

#endif
