/* hf_model.h - the model of a tokenizer.json: a BPE vocabulary and its merges, as written. */
#ifndef TOKMAP_VOCABULARY_HF_MODEL_H
#define TOKMAP_VOCABULARY_HF_MODEL_H

#include "bpe/bpe_model.h"
#include "common/bytes_buffer.h"
#include "json_file.h"
#include "text_table.h"

#define HF_MERGES_WAITING 32

/* Zeroed at first. */
struct hf_model {
    struct text_table vocabulary;
    struct bpe_merge *merges;
    uint32_t merge_count, merge_room;
    struct text_query waiting[2 * HF_MERGES_WAITING]; /* left and right of merges that are looked up together */
    uint32_t waiting_count;                           /* merges */
    uint64_t waiting_first;                           /* number of the first */
    uint32_t last_whole;                              /* what the last one that is done makes: an id */
    struct bytes_buffer wholes;                       /* texts of wholes that are looked up too */
    bool fuse_unk, byte_fallback, ignore_merges;
    const uint8_t *unk; /* the text of the unknown token; NULL: none */
    size_t unk_bytes;
};
void hf_model_free(struct hf_model *model);

/* Takes the object that "model" is. What would change ids and is not supported is refused by name. */
bool hf_model_take(struct json_file *file, struct hf_model *model);
/* Takes an object of texts and ids; field: its name, for messages. */
bool hf_vocabulary_take(struct json_file *file, struct text_table *vocabulary, const char *field);
/* One merge; false: it, or one before it, is refused. number: from 0, for messages. After the last hf_merges_finish. */
bool hf_merge_add(struct json_file *file, struct hf_model *model, const uint8_t *left, size_t left_bytes,
                  const uint8_t *right, size_t right_bytes, uint64_t number);
bool hf_merges_finish(struct json_file *file, struct hf_model *model);

#endif
