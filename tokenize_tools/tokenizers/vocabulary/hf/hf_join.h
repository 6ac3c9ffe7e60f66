/* SPDX-License-Identifier: MIT */
/*
 * hf_join.h - what the kinds of models share when the parts of a tokenizer.json are joined: scanner rules and
 * pretokenizer steps, and the fingerprint.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_JOIN_H
#define TOKMAP_VOCABULARY_HF_HF_JOIN_H

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

/* The split pattern of a rank file or a tekken.json. */
struct hf_pattern {
    const char *text;
    size_t bytes;
    const char *path, *field; /* for messages */
};
/* Splits text by a pattern: by the scanner if that knows it, whose rules *rules then are, else with PCRE2. As in
 * tiktoken, text that no match covers becomes no token. Sets parts->engine_cuts. *splits, which is empty, becomes what
 * hf_fingerprint() needs. Statuses: those of regex_new(). */
enum tokmap_status hf_pattern_choose(struct pipeline_parts *parts, struct hf_splits *splits, struct split_rules *rules,
                                     const struct hf_pattern *pattern, struct tokmap_error *error);

/* Replaces parts->fingerprint, which is that of the model, by a hash of it and of the normalizer, the pre-tokenizer
 * and the added tokens. Rank files, tekken.json and GPT-2's two files describe their pre-tokenizer in the same terms,
 * so that the same tokenizer has the same fingerprint in whichever format it is stored. rules: those of the engine's
 * scanner, or NULL. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status hf_fingerprint(struct pipeline_parts *parts, const struct hf_splits *splits,
                                  const struct split_rules *rules, struct tokmap_error *error);

#endif
