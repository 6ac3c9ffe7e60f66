/* SPDX-License-Identifier: MIT */
/*
 * json_file.h - a JSON file of a tokenizer while it is parsed: decodes strings, and reports errors with the position in
 * the file.
 *
 * Functions that return bool return false after a failure. The first failure is kept, so a parser can return false
 * through all its levels, and the function that opened the file asks for the reason by json_file_status.
 */
#ifndef TOKMAP_VOCABULARY_JSON_FILE_H
#define TOKMAP_VOCABULARY_JSON_FILE_H

#include "text/json_scan.h"
#include "tokmap/tokmap.h"

/* Memory for texts that are not in the file as they are; it is freed all at once. A zeroed struct is an empty arena. */
struct text_block;
struct text_arena {
    struct text_block *blocks;
};
/* Returns `bytes` bytes, valid until json_file_end(), or NULL if memory is lacking. */
uint8_t *text_arena_alloc(struct text_arena *arena, size_t bytes);
/* Moves all memory of another arena into this one. */
void text_arena_join(struct text_arena *arena, struct text_arena *other);

/* Returns how many bytes of a text a message prints. */
static inline int shown(size_t bytes)
{
    return bytes < 64 ? (int)bytes : 64;
}

struct json_file {
    const char *path;
    struct json_scan scan;      /* parsers call the functions of json_scan.h on it directly */
    struct text_arena arena;    /* decoded strings */
    struct tokmap_error *error; /* the caller's; may be NULL */
    const char *content;        /* the right content, for messages; parsers of other files set it */
    enum tokmap_status status;  /* of the first failure, except faults of the JSON itself, which scan.fault holds */
};

/* Begins to parse the `count` bytes of a file. The bytes must live as long as the strings that are parsed from them,
 * because strings without escapes point into them. Returns false if the text is not UTF-8. json_file_end after
 * either. */
bool json_file_begin(struct json_file *file, const char *path, const char *text, size_t count,
                     struct tokmap_error *error);
/* Frees the decoded strings. */
void json_file_end(struct json_file *file);

/* Sets *bytes and *count to what a string means: in the file itself, or in the arena if the string has escapes.
 * Returns false if the string contains half of a surrogate pair, or if memory is lacking. */
bool json_file_decode(struct json_file *file, const struct json_string *string, const uint8_t **bytes, size_t *count);
/* Parses a string, and decodes it as json_file_decode does. */
bool json_file_text(struct json_file *file, const uint8_t **bytes, size_t *count);
/* Parses true, false, or null, which is false. */
bool json_file_flag(struct json_file *file, bool *value);

/* Reports a failure at the current position of the scan, or without a position if the scan is at the end of the
 * file. Does nothing if a failure was reported before. Always returns false. */
bool json_file_refuse(struct json_file *file, enum tokmap_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
/* Reports that memory for `what` is lacking: see error_set_memory(). Does nothing if a failure was reported before.
 * Always returns false. */
bool json_file_memory(struct json_file *file, const char *what, uint64_t bytes) __attribute__((cold));
/* Returns the status of the first failure, and reports it if it is a fault of the JSON itself. OK if there was none. */
enum tokmap_status json_file_status(struct json_file *file);

#endif
