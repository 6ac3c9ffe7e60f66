/*
 * byte_level.h - a vocabulary whose tokens are written in the 256 characters that stand for bytes, to a bpe_model.
 */
#ifndef TOKMAP_VOCABULARY_BYTE_LEVEL_H
#define TOKMAP_VOCABULARY_BYTE_LEVEL_H

#include "hf_model.h"
#include "tokenizer/pipeline_parts.h"

/* Makes the engine of `parts`, its texts, ids_per_byte_most and fingerprint (of the model alone).
 * parts->added and ->vocabulary are
 * set. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status byte_level_build(struct pipeline_parts *parts, const struct hf_model *model,
                                    const struct split_rules *rules, const char *path, struct tokmap_error *error);

/* The same for the same tokens, ids and merges, however they were written; ids that are added tokens count as such
 * alone. merges: NULL with ranks. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status byte_level_fingerprint(uint8_t fingerprint[16], const struct bpe_model *model,
                                          const struct bpe_merge *merges, uint32_t merge_count, bool whole,
                                          const struct added_tokens *added, struct tokmap_error *error);

#endif
