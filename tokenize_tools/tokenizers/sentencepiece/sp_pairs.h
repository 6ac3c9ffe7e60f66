/* SPDX-License-Identifier: MIT */
/*
 * sp_pairs.h - the second step of building a sp_model: the pairs that merge.
 */
#ifndef TOKMAP_SENTENCEPIECE_SP_PAIRS_H
#define TOKMAP_SENTENCEPIECE_SP_PAIRS_H

#include "sp_texts.h"

/* Fills the table of pairs, results, priorities, and model->ids, and notes the borders that merges cross. The texts
 * and atoms have been read. Statuses: OK, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status sp_pairs_build(struct sp_builder *builder);

#endif
