/* SPDX-License-Identifier: MIT */
/*
 * tokenizer_config.h - reads the tokenizer_config.json beside a vocabulary file that does not say everything itself.
 * The functions for parts of such a file are for folder_config.c, too.
 */
#ifndef TOKMAP_VOCABULARY_TOKENIZER_CONFIG_H
#define TOKMAP_VOCABULARY_TOKENIZER_CONFIG_H

#include "json_file.h"

enum config_special { CONFIG_UNK, CONFIG_SEP, CONFIG_PAD, CONFIG_CLS, CONFIG_MASK, CONFIG_SPECIALS };

/* A text of a configuration. NULL: not given. */
struct config_text {
    const uint8_t *text;
    size_t bytes;
};

/* Initialize with zeros, but flags with the values that they have where the file does not say them. */
struct tokenizer_config {
    bool there;
    struct config_text class_name, specials[CONFIG_SPECIALS];
    struct config_text added; /* the first added token that has no mark as a special one */
    bool lower, chinese, basic, prefix_space;
    bool strip_given, strip;
    char *path, *text;
    struct json_file file;
};

/* Reads the file beside `vocabulary`, if it is there. Call tokenizer_config_free after success and after failure.
 * Statuses: OK, and those of vocabulary_file_read() and json_file_status(). */
enum tokmap_status tokenizer_config_read(struct tokenizer_config *config, const char *vocabulary,
                                         struct tokmap_error *error);
void tokenizer_config_free(struct tokenizer_config *config);

/* Returns whether a class of transformers, without the ending "Fast", is one of these names, which blanks separate. */
bool config_class_is(const struct config_text *class_name, const char *names);

/* Parses the text of a token: a string, or an object with it as "content". Anything else is skipped. */
bool config_text_parse(struct json_file *file, struct config_text *text);
/* Parses an added token: {"content": ..., "special": ...}. */
bool config_added_parse(struct json_file *file, struct config_text *text, bool *special);

#endif
