/* SPDX-License-Identifier: MIT */
/* bert_steps.h - the steps of a BertNormalizer that no other normalizer has. */
#ifndef TOKMAP_TOKENIZER_BERT_STEPS_H
#define TOKMAP_TOKENIZER_BERT_STEPS_H

#include "common/bytes_buffer.h"
#include "text_edits.h"

enum bert_step {
    BERT_CLEAN,   /* takes out control characters, and makes white space spaces (clean_text) */
    BERT_CHINESE, /* puts spaces around Chinese characters (handle_chinese_chars) */
    BERT_MARKS    /* takes out marks, after NFD (strip_accents) */
};

/* Performs a step. If it changes the text, *text and *count become those of `into`, which was empty. trace: NULL, or
 * the list of changes. Returns false if memory is lacking. */
bool bert_step_run(enum bert_step step, struct bytes_buffer *into, struct text_edits *trace, const uint8_t **text,
                   size_t *count);

#endif
