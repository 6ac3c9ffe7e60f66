/* SPDX-License-Identifier: MIT */
/*
 * bpe_kinds.h - the tokenizers that come as a vocabulary and a list of merges without a word about the rest: how text
 * is normalized, how it is split, and which tokens are special.
 */
#ifndef TOKMAP_VOCABULARY_BPE_KINDS_H
#define TOKMAP_VOCABULARY_BPE_KINDS_H

#include "engine/pipeline_parts.h"
#include "folder_config.h"
#include "vocabulary/hf/hf_model.h"
#include "vocabulary/hf/hf_parts.h"

#define BPE_KIND_SPECIALS 5

struct bpe_kind {
    const char *class_name; /* as in config_class_is() */
    const char *suffix, *unk;
    const char *specials[BPE_KIND_SPECIALS]; /* those that the vocabulary may have; NULL: no more */
    const char *eod, *bos;                   /* or NULL */
    bool mapped;                             /* tokens have characters that stand for bytes */
    const char *parts; /* the fields normalizer, pre_tokenizer, and decoder, as a tokenizer.json has them */
    const char *note;  /* for users, where the kind was guessed */
};

extern const struct bpe_kind bpe_kind_clip;

/* Returns the kind of a class of transformers, or NULL for any other class. */
const struct bpe_kind *bpe_kind_of_class(const struct config_text *name);
/* Returns the kind of a vocabulary, by its tokens, or NULL if it does not mark the ends of words. */
const struct bpe_kind *bpe_kind_of_vocabulary(const struct text_table *vocabulary);

/* Adds the special tokens of a kind that the vocabulary has, and says which of them end and begin documents. Returns
 * false after a failure, as the next function does. */
bool bpe_kind_specials(struct json_file *file, const struct bpe_kind *kind, const struct hf_model *model,
                       struct pipeline_parts *parts);
/* Makes the engine of a model of this kind, and all else that `parts` needs. file: of the merges, which have been
 * parsed. Returns false if the files are refused; json_file_status(file) is then the reason. */
bool bpe_kind_join(struct json_file *file, const struct bpe_kind *kind, struct hf_model *model,
                   struct pipeline_parts *parts);

#endif
