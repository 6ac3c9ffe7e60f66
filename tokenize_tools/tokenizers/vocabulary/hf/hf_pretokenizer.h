/* SPDX-License-Identifier: MIT */
/* hf_pretokenizer.h - turns the pre-tokenizer of a tokenizer.json into scanner rules and pretokenizer steps. */
#ifndef TOKMAP_VOCABULARY_HF_HF_PRETOKENIZER_H
#define TOKMAP_VOCABULARY_HF_HF_PRETOKENIZER_H

#include "engine/pipeline_parts.h"
#include "hf_parts.h"

/* For a pre-tokenizer with a ByteLevel step. Adds the steps that no scanner performs to parts->pretokenizer, stores
 * the rules of the scanner that performs the others in *rules, and sets parts->engine_cuts and parts->scanner. rules:
 * NULL if the engine has no scanner, so that every step is added.
 * Returns false if a step is refused; json_file_status(file) is then the reason. */
bool hf_pretokenizer_build(struct json_file *file, const struct hf_splits *splits, struct pipeline_parts *parts,
                           struct split_rules *rules);
/* For a pre-tokenizer without a ByteLevel step: adds every step to parts->pretokenizer. Returns false as above. */
bool hf_pretokenizer_steps(struct json_file *file, const struct hf_splits *splits, struct pipeline_parts *parts);
/* Writes the name of the scanner's rules and the CPU variant that runs them, for people: "cl100k_base, AVX2".
 * Returns the length that was written. */
size_t scanner_describe(char *into, size_t room, const char *rules);

#endif
