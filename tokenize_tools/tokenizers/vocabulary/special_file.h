/* SPDX-License-Identifier: MIT */
/*
 * special_file.h - a list of special tokens, for vocabularies whose own file does not name them. It can be read from a
 * JSON object that maps texts to ids: {"<|endoftext|>": 100257}.
 */
#ifndef TOKMAP_VOCABULARY_SPECIAL_FILE_H
#define TOKMAP_VOCABULARY_SPECIAL_FILE_H

#include "engine/added_tokens.h"
#include "json_file.h"

/* A zeroed struct is an empty list. */
struct special_list {
    struct added_token *tokens;
    uint32_t count, room;
    char *text; /* the file, if one was read; texts of tokens point into it */
    uint64_t text_bytes;
    struct json_file file;
};
/* Frees the memory of the list and zeroes it. */
void special_list_free(struct special_list *list);
/* Appends a token, whose text must outlive the list. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status special_list_add(struct special_list *list, const char *text, size_t bytes, uint32_t id,
                                    struct tokmap_error *error);
/* Appends the tokens of a file. Statuses: OK, ERROR_FORMAT, ERROR_LIMIT, ERROR_NOT_FOUND, ERROR_UNSUPPORTED (empty, or
 * not a regular file), ERROR_TRUNCATED, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status special_list_read(struct special_list *list, const char *path, struct tokmap_error *error);

#endif
