/* SPDX-License-Identifier: MIT */
/* tokenizer_config.h - parts of a tokenizer_config.json (folder_config.h): texts of tokens, and names of classes. */
#ifndef TOKMAP_VOCABULARY_TOKENIZER_CONFIG_H
#define TOKMAP_VOCABULARY_TOKENIZER_CONFIG_H

#include "json_file.h"

/* A text of a configuration. NULL: not given. */
struct config_text {
    const uint8_t *text;
    size_t bytes;
};

/* Returns whether a class of transformers, without the ending "Fast", is one of these names, which blanks separate. */
bool config_class_is(const struct config_text *class_name, const char *names);

/* Parses the text of a token: a string, or an object with it as "content". Anything else is skipped. */
bool config_text_parse(struct json_file *file, struct config_text *text);
/* Parses an added token: {"content": ..., "special": ...}. */
bool config_added_parse(struct json_file *file, struct config_text *text, bool *special);

#endif
