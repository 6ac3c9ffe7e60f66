/* SPDX-License-Identifier: MIT */
/* bert_steps.h - the steps of a BertNormalizer that no other normalizer has. */
#ifndef TOKMAP_TOKENIZER_BERT_STEPS_H
#define TOKMAP_TOKENIZER_BERT_STEPS_H

#include "normalizer.h"

/* Performs a step of the kind NORMALIZE_BERT_CLEAN (takes out control characters, and makes white space spaces),
 * NORMALIZE_BERT_CHINESE (puts spaces around Chinese characters) or NORMALIZE_BERT_MARKS (takes out marks). If it
 * changes the text, *text and *count become those of `into`, which was empty. trace: NULL, or the list of changes.
 * Returns false if memory is lacking. */
bool bert_step(enum normalizer_kind kind, struct bytes_buffer *into, struct text_edits *trace, const uint8_t **text,
               size_t *count);

#endif
