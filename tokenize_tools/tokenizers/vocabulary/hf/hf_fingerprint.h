/* SPDX-License-Identifier: MIT */
/*
 * hf_fingerprint.h - the fingerprint of a tokenizer, from the fingerprint of its model and the parts around the model.
 *
 * Rank files, tekken.json and GPT-2's two files describe their pre-tokenizer in the terms of tokenizer.json, so that
 * the same tokenizer has the same fingerprint in whichever format it is stored.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_FINGERPRINT_H
#define TOKMAP_VOCABULARY_HF_HF_FINGERPRINT_H

#include "engine/pipeline_parts.h"
#include "hf_parts.h"

/* Replaces parts->fingerprint, which is that of the model, by a hash of it and of the normalizer, the pre-tokenizer
 * and the added tokens. rules: those of the engine's scanner, or NULL. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status hf_fingerprint(struct pipeline_parts *parts, const struct hf_splits *splits,
                                  const struct split_rules *rules, struct tokmap_error *error);

#endif
