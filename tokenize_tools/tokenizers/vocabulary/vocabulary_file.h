/* SPDX-License-Identifier: MIT */
/*
 * vocabulary_file.h - what the readers of all formats begin and end with: the text of a file, base64, special tokens,
 * and the tokenizer that the parts make, with its name. A name tells people which tokenizer was used; only the
 * fingerprint identifies it.
 */
#ifndef TOKMAP_VOCABULARY_VOCABULARY_FILE_H
#define TOKMAP_VOCABULARY_VOCABULARY_FILE_H

#include "engine/pipeline.h"
#include "json_file.h"

#define VOCABULARY_FILE_MOST ((uint64_t)1 << 30) /* bytes of a file */
/* Opening a vocabulary takes at most VOCABULARY_MEMORY bytes for each byte of its file, and VOCABULARY_MEMORY_FREE
 * more: tables of a fixed size, and hash tables, whose sizes are powers of two. */
#define VOCABULARY_MEMORY 4u
#define VOCABULARY_MEMORY_FREE ((uint64_t)128 << 20)

/* Reads a whole file. Sets *text to its bytes, which the caller frees, and *bytes to their number. The file is read
 * rather than mapped, so that a program that replaces it at the same time cannot cause a signal. Statuses: OK,
 * ERROR_NOT_FOUND, ERROR_UNSUPPORTED (empty, or not a regular file), ERROR_LIMIT (larger than VOCABULARY_FILE_MOST),
 * ERROR_TRUNCATED (the file was emptied before it could be read), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status vocabulary_file_read(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error);

/* Decodes `count` characters of base64, which rank files and tekken.json have, into `into`, which must have room for
 * count / 4 * 3 bytes. Returns the number of bytes decoded, or 0 if the text is empty, longer than 16 MiB, or not
 * base64. */
uint32_t base64_decode(uint8_t *into, const uint8_t *text, uint64_t count);

/* Ends the opening of a vocabulary: if `status` is OK, makes a tokenizer of the parts, named by its file
 * (vocabulary_file.c) unless they have a name. Frees what the parts own. Statuses: `status`, and those of
 * pipeline_new(). */
enum tokmap_status vocabulary_end(struct tokenizer **tokenizer, enum tokmap_status status, struct pipeline_parts *parts,
                                  const char *path, const struct tokmap_tokenizer_options *options,
                                  struct tokmap_error *error);

/* A list of special tokens, for vocabularies whose own file does not name them. It can be read from a JSON object that
 * maps texts to ids: {"<|endoftext|>": 100257}. A zeroed struct is an empty list. */
struct special_list {
    struct added_token *tokens;
    uint32_t count;
    uint64_t room;
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
