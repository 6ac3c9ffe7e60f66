/* SPDX-License-Identifier: MIT */
/*
 * hf_model.h - the "model" of a tokenizer.json: its kind, and a BPE vocabulary with its merges, exactly as the file
 * lists them.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_MODEL_H
#define TOKMAP_VOCABULARY_HF_HF_MODEL_H

#include "bpe/bpe_words.h"
#include "common/bytes_buffer.h"
#include "vocabulary/json_file.h"
#include "vocabulary/text_table.h"

#define HF_MERGES_WAITING 32

enum hf_model_kind { HF_BPE, HF_UNIGRAM, HF_WORDPIECE, HF_WORD_LEVEL };

/* A zeroed struct is an empty model. Its texts point into the json_file that it was read from. */
struct hf_model {
    struct text_table vocabulary;
    struct bpe_merge *merges; /* in the order of the file; each names the ids of both parts and of the result */
    uint32_t merge_count, merge_room;
    const char *merges_begin; /* place of the list of merges in the file, by which its length is estimated */
    bool fuse_unk, byte_fallback, ignore_merges; /* the fields of that name; false where the file lacks them */
    const uint8_t *unk;                          /* text of "unk_token"; NULL: the model has none */
    size_t unk_bytes;
    struct bpe_affix prefix, suffix; /* "continuing_subword_prefix" and "end_of_word_suffix"; empty: none */
    /* Private: merges whose tokens have not been looked up yet. They are looked up HF_MERGES_WAITING at a time. */
    struct text_query waiting[2 * HF_MERGES_WAITING]; /* left and right part of each merge */
    uint32_t waiting_count;                           /* merges */
    uint64_t waiting_first;                           /* number of the first one */
    uint32_t last_result;                             /* id that the last merge before them makes */
    struct bytes_buffer results;                      /* scratch: texts of the tokens that they make */
};
/* Frees the memory of the model and zeroes it. */
void hf_model_free(struct hf_model *model);
/* Frees the vocabulary and the merges, which are most of the memory; the other fields stay. */
void hf_model_shed(struct hf_model *model);

/* The functions below return false if they refuse the file; json_file_status(file) is then the reason. */

/* Parses the value of "model" of the kind HF_BPE. A field that would change ids in a way that tokmap does not reproduce
 * is refused by name. */
bool hf_model_parse(struct json_file *file, struct hf_model *model);
/* Finds the kind of the model whose object begins at the current position, and returns to this position. */
bool hf_model_kind_find(struct json_file *file, enum hf_model_kind *kind);
/* Parses a JSON object that maps texts to ids, and indexes the table. field: what messages call the object. */
bool hf_vocabulary_parse(struct json_file *file, struct text_table *vocabulary, const char *field);
/* Says why a token was not added. The scan is where it was read. */
bool hf_token_refuse(struct json_file *file, const struct text_table *vocabulary, const struct text_entry *token,
                     const char *field, enum text_added added);
/* Finds the space in the line of a merge, which has two tokens. Returns NULL if it refuses the file. */
const char *hf_merge_space(struct json_file *file, const char *line, const char *end, uint64_t number);
/* Adds one merge to a model whose vocabulary is complete. number: of the merge, counted from 0, for messages. The
 * texts must live until hf_merges_finish. A refusal may concern an earlier merge. */
bool hf_merge_add(struct json_file *file, struct hf_model *model, const uint8_t *left, size_t left_bytes,
                  const uint8_t *right, size_t right_bytes, uint64_t number);
/* Looks up the merges that wait; call it after the last hf_merge_add, also if parsing has ended with a fault: what is
 * wrong with a merge that waits comes before that in the file, and is the one that is reported. Returns false if
 * anything is wrong. */
bool hf_merges_finish(struct json_file *file, struct hf_model *model);

#endif
