/* SPDX-License-Identifier: MIT */
/*
 * folder_config.h - reads the files of a model's folder that say something about its tokenizer and are not a
 * vocabulary: tokenizer_config.json, special_tokens_map.json, added_tokens.json, config.json, generation_config.json.
 *
 * A file that is not what it should be is no failure: it is not used, and folder_config_file.fault says why.
 */
#ifndef TOKMAP_VOCABULARY_FOLDER_CONFIG_H
#define TOKMAP_VOCABULARY_FOLDER_CONFIG_H

#include "json_file.h"
#include "vocabulary_file.h"

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

/* Settings of tokenizer_config.json that decide ids with some class. */
enum config_setting {
    SETTING_CODE,
    SETTING_MODEL,
    SETTING_SPLIT_SPECIALS,
    SETTING_LEGACY,
    SETTING_PUNCTUATION,
    SETTING_PREFIX_SPACE,
    SETTING_ACCENTS,
    SETTING_LOWER,
    SETTING_CHINESE,
    SETTING_BASIC,
    SETTING_STRIP,
    SETTINGS
};
/* VALUE_NONE: it is absent, null, or an empty object or list. */
enum config_value { VALUE_NONE, VALUE_FALSE, VALUE_TRUE, VALUE_OTHER };

enum config_special { CONFIG_UNK, CONFIG_SEP, CONFIG_PAD, CONFIG_CLS, CONFIG_MASK, CONFIG_SPECIALS };

/* A text of a configuration. NULL: not given. */
struct config_text {
    const uint8_t *text;
    size_t bytes;
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
    uint32_t added;            /* tokens that it lists with an id */
    uint32_t named;            /* tokens that it only names */
    enum tokmap_status status; /* of the fault */
    char fault[224];           /* the reason why it is not used; "": it is */
    char *text;
    struct json_file json;
};

/* Initialize with zeros. Texts belong to the struct. */
struct folder_config {
    struct folder_config_file files[FOLDER_CONFIGS];
    struct special_list added;      /* ascending by id, no id twice; `special` as the file says.
                                       Those that are only named come last, with the id BPE_NONE */
    struct config_text class_name;  /* of the tokenizer in transformers */
    struct config_text model_type;  /* of config.json */
    struct config_text model_class; /* "tokenizer_class" there, which is class_name where no other file has one */
    struct config_text language_codes;
    uint64_t offset; /* "offset" or "extra_ids", if offset_given */
    bool offset_given;
    enum config_value settings[SETTINGS];
    char *path;                                   /* of tokenizer_config.json, after folder_config_beside */
    struct config_text specials[CONFIG_SPECIALS]; /* of tokenizer_config.json, as is the next one */
    struct config_text ordinary;                  /* the first added token that has no mark as a special one */
};

const char *folder_config_name(enum folder_config_kind kind);
/* Returns whether a text is one of these names, which blanks separate. names: may be NULL. */
bool config_is_listed(const char *names, const uint8_t *text, size_t bytes);
/* Returns the length of the name of a class of transformers, without the ending "Fast". */
size_t config_class_bytes(const struct config_text *class_name);
/* Returns whether a class of transformers, without the ending "Fast", is one of these names. */
bool config_class_is(const struct config_text *class_name, const char *names);
const char *config_setting_name(enum config_setting setting);
/* Reads the files in a folder. Call folder_config_free after success and after failure. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status folder_config_read(struct folder_config *config, const char *folder, struct tokmap_error *error);
/* Does the same for the folder of a vocabulary that does not say everything itself. A fault of tokenizer_config.json is
 * an error, whose status it has. */
enum tokmap_status folder_config_beside(struct folder_config *config, const char *vocabulary,
                                        struct tokmap_error *error);
void folder_config_free(struct folder_config *config);

#endif
