/* SPDX-License-Identifier: MIT */
/* hf_bert.h - the BertNormalizer of a tokenizer.json. */
#ifndef TOKMAP_VOCABULARY_HF_BERT_H
#define TOKMAP_VOCABULARY_HF_BERT_H

#include "json_file.h"
#include "tokenizer/normalizer.h"

/* Parses a normalizer of the type BertNormalizer, and appends its steps. Returns false if it refuses the file;
 * json_file_status(file) is then the reason. */
bool hf_bert_normalizer_parse(struct json_file *file, struct normalizer *normalizer);

#endif
