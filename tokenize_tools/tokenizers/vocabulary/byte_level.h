/* SPDX-License-Identifier: MIT */
/*
 * byte_level.h - makes the engine for a byte-level BPE vocabulary.
 *
 * The files of such vocabularies write every byte as a printable character (unicode/byte_alphabet.h): "\u0120the" is
 * the token " the". This unit turns these texts back into bytes and builds a bpe_model from them.
 */
#ifndef TOKMAP_VOCABULARY_BYTE_LEVEL_H
#define TOKMAP_VOCABULARY_BYTE_LEVEL_H

#include "bpe/bpe_build.h"
#include "engine/pipeline_parts.h"
#include "vocabulary/hf/hf_model.h"

/* Makes the engine of `parts` from a model, and sets parts->texts, parts->ids_per_byte_most and parts->fingerprint
 * (of the model alone). The caller has set parts->added and parts->vocabulary. rules: how the engine's scanner
 * splits text; path: the file, for messages. The model's tables are freed as soon as the engine has what they hold, so
 * that a large file needs less memory. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED, ERROR_LIMIT,
 * ERROR_MEMORY. */
enum tokmap_status byte_level_build(struct pipeline_parts *parts, struct hf_model *model,
                                    const struct split_rules *rules, const char *path, struct tokmap_error *error);

/* Makes the texts of all ids as the bytes that they stand for, in the order of ids, with room for 16 bytes after the
 * last, and *offsets, where each begins (parts->vocabulary + 1). Those that do not stand for bytes are empty, and
 * become parts->texts. The caller frees both, on failure too. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status byte_level_texts(struct pipeline_parts *parts, struct hf_model *model, const char *path,
                                    uint8_t **bytes, uint32_t **offsets, struct tokmap_error *error);

/* The message about a byte without a token, where the reference would do what the engines cannot. */
#define BYTE_LEVEL_FALLBACK                                                                                            \
    "the vocabulary has no token for the byte 0x%02x; tokmap cannot read such a vocabulary if it uses "                \
    "model.byte_fallback"

/* Makes the engine of `parts`, whose added tokens are set, from a model that it builds, and sets parts->fingerprint as
 * above. Statuses: those of bpe_model_build(). */
enum tokmap_status byte_level_engine(struct pipeline_parts *parts, const struct bpe_source *source,
                                     struct tokmap_error *error);

#endif
