/* SPDX-License-Identifier: MIT */
/* train_characters.h - the characters that a model has pieces for, chosen from the counted words of a text. */
#ifndef TOKMAP_TRAIN_TRAIN_CHARACTERS_H
#define TOKMAP_TRAIN_TRAIN_CHARACTERS_H

#include "train_memory.h"

/* Characters have numbers from 1, the required ones first, then the most frequent ones. */
struct train_characters {
    uint32_t *number_of; /* by code point; 0: it has none, so it is not covered */
    uint32_t *codes;     /* code points by number; element 0 is unused */
    uint64_t *times;     /* of each in the text, by number */
    uint32_t count;
    uint64_t room;                       /* elements of `codes` and `times` */
    uint64_t uncovered, uncovered_bytes; /* characters of the text, with repetitions, and the bytes of their UTF-8 */
    uint64_t all;                        /* characters of the text, with repetitions */
};

/* Chooses the required characters, then the most frequent ones until they are this share of the text. A space in the
 * words counts as U+2581. U+0000 is never covered. All counters of the words must be finished. Statuses: OK,
 * ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status train_characters_choose(struct train_characters *characters, const struct train_pieces *pieces,
                                           double coverage, const uint32_t *required, uint32_t required_count,
                                           struct train_budget *budget, struct tokmap_error *error);
void train_characters_free(struct train_characters *characters, struct train_budget *budget);

#endif
