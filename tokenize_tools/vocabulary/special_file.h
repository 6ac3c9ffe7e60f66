/* special_file.h - a JSON object, text to id: the special tokens of a vocabulary whose own file names none. */
#ifndef TOKMAP_VOCABULARY_SPECIAL_FILE_H
#define TOKMAP_VOCABULARY_SPECIAL_FILE_H

#include "tokenizer/added_tokens.h"
#include "json_file.h"

/* Zeroed at first. */
struct special_list {
    struct added_token *tokens;
    uint32_t count, room;
    char *text; /* the file, into which the tokens point */
    uint64_t text_bytes;
    struct json_file file;
};
void special_list_free(struct special_list *list);
/* Puts a token to the list; its text must outlive the list. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status special_list_add(struct special_list *list, const char *text, size_t bytes, uint32_t id,
                                    struct tokmap_error *error);
/* Statuses: OK, ERROR_FORMAT, ERROR_LIMIT, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status special_list_read(struct special_list *list, const char *path, struct tokmap_error *error);

#endif
