/* SPDX-License-Identifier: MIT */
/*
 * folder_config.h - reads the files of a model's folder that say something about its tokenizer and are not a
 * vocabulary: tokenizer_config.json, special_tokens_map.json, added_tokens.json, config.json, generation_config.json.
 *
 * A file that is not what it should be is no failure: it is not used, and folder_config_file.fault says why.
 */
#ifndef TOKMAP_VOCABULARY_FOLDER_CONFIG_H
#define TOKMAP_VOCABULARY_FOLDER_CONFIG_H

#include "tokenizer/added_tokens.h"
#include "tokenizer_config.h"

#define FOLDER_CONFIG_MOST ((uint64_t)8 << 20) /* bytes of a file */
#define FOLDER_ADDED_MOST (1u << 16)           /* added tokens of all files */

enum folder_config_kind {
    FOLDER_TOKENIZER_CONFIG, /* in the order in which they count */
    FOLDER_SPECIAL_TOKENS_MAP,
    FOLDER_ADDED_TOKENS,
    FOLDER_MODEL_CONFIG,
    FOLDER_GENERATION_CONFIG,
    FOLDER_CONFIGS
};

/* A token that ends or begins texts, as one file names it. */
struct folder_token {
    bool given;          /* the file names one, by its text or by its id */
    const uint8_t *text; /* or NULL */
    uint32_t bytes;
    uint64_t id; /* if `text` is NULL */
};

struct folder_config_file {
    bool there;
    struct folder_token eos, bos;
    uint32_t added;  /* tokens that it lists */
    char fault[224]; /* the reason why it is not used; "": it is */
    char *text;
    struct json_file json;
};

/* Initialize with zeros. Texts belong to the struct. */
struct folder_config {
    struct folder_config_file files[FOLDER_CONFIGS];
    struct added_token *added; /* ascending by id, no id twice; `special` as the file says */
    uint32_t added_count, added_room;
    struct config_text class_name; /* of the tokenizer in transformers */
    struct config_text model_type; /* of config.json */
    struct config_text language_codes;
    uint64_t offset; /* of ids, if offset_given */
    bool offset_given;
};

const char *folder_config_name(enum folder_config_kind kind);
/* Reads the files in a folder. Call folder_config_free after success and after failure. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status folder_config_read(struct folder_config *config, const char *folder, struct tokmap_error *error);
void folder_config_free(struct folder_config *config);

#endif
