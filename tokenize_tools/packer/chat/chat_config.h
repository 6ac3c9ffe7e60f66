/* SPDX-License-Identifier: MIT */
/* chat_config.h - reads what the files of a tokenizer say about its chat template. */
#ifndef TOKMAP_CHAT_CHAT_CONFIG_H
#define TOKMAP_CHAT_CHAT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "tokmap/tokmap.h"

#define CHAT_CONFIG_MOST ((uint64_t)64 << 20) /* bytes of a file */

/* Each text is NULL if no file has it. They belong to the struct, and so do the paths. */
struct chat_config {
    char *jinja; /* the template */
    size_t jinja_bytes;
    char *jinja_path; /* the file that has it */
    bool several;     /* of several templates of that file, the one named "default" */
    char *bos, *eos;  /* the texts of the tokens that templates call bos_token and eos_token */
};

void chat_config_free(struct chat_config *config);

/* Reads a file (tokenizer_config.json, chat_template.json, chat_template.jinja, or any file with the content of one of
 * them), or the files of these names in a folder, where a .jinja file counts before the others. For a file that is not
 * a tokenizer_config.json, the one beside it is read for the tokens. On failure *config is empty. Statuses: OK (also if
 * nothing was found in a folder), ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status chat_config_read(struct chat_config *config, const char *path, struct tokmap_error *error);

#endif
