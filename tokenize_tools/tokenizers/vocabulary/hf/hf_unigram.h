/* SPDX-License-Identifier: MIT */
/* hf_unigram.h - a tokenizer.json whose model is Unigram: texts with scores. */
#ifndef TOKMAP_VOCABULARY_HF_HF_UNIGRAM_H
#define TOKMAP_VOCABULARY_HF_HF_UNIGRAM_H

#include "engine/pipeline_parts.h"
#include "hf_model.h"
#include "hf_parts.h"

/* What such a model has besides the vocabulary. A zeroed struct is empty. */
struct hf_unigram {
    double *scores; /* by id */
    uint32_t room;
    uint64_t unk; /* "unk_id"; UINT64_MAX: null */
};
void hf_unigram_free(struct hf_unigram *unigram);

/* Both return false if they refuse the file; json_file_status(file) is then the reason. */

/* Parses the value of "model": the vocabulary and byte_fallback go to `model`. */
bool hf_unigram_parse(struct json_file *file, struct hf_model *model, struct hf_unigram *unigram);
/* Makes parts->engine, as hf_characters_join() does for BPE. */
bool hf_unigram_join(struct json_file *file, struct hf_model *model, const struct hf_unigram *unigram,
                     const struct hf_splits *splits, struct pipeline_parts *parts);

#endif
