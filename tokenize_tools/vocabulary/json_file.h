/* json_file.h - JSON files of tokenizers: strings as they mean, and faults with the field they are in. */
#ifndef TOKMAP_VOCABULARY_JSON_FILE_H
#define TOKMAP_VOCABULARY_JSON_FILE_H

#include "text/json_scan.h"
#include "tokmap/tokmap.h"

/* Texts that are written with escapes, decoded; all live until the arena is freed. Zeroed at first. */
struct text_block;
struct text_arena {
    struct text_block *blocks;
};
void text_arena_free(struct text_arena *arena);
/* Room for `bytes`, or NULL. */
uint8_t *text_arena_alloc(struct text_arena *arena, size_t bytes);

struct json_file {
    const char *path;
    struct json_scan scan;
    struct text_arena arena;
    struct tokmap_error *error;
    enum tokmap_status status; /* of the first thing that went wrong, but for faults of the scan */
};

/* text: the whole file. False if it is not UTF-8. The file's bytes must outlive what is read. */
bool json_file_begin(struct json_file *file, const char *path, const char *text, size_t count,
                     struct tokmap_error *error);
void json_file_end(struct json_file *file);

/* The bytes that a string means: in the file itself, or in the arena if it has escapes. False: a lone surrogate,
 * memory. */
bool json_file_decode(struct json_file *file, const struct json_string *string, const uint8_t **bytes, size_t *count);
/* Takes a string and gives its bytes. */
bool json_file_text(struct json_file *file, const uint8_t **bytes, size_t *count);
/* Takes true or false, or null for `missing`. */
bool json_file_flag(struct json_file *file, bool missing, bool *value);

/* Sets the error, at the offset that was read last; returns false. */
bool json_file_refuse(struct json_file *file, enum tokmap_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
/* The status of reading: that of the first refusal, or of a fault in the JSON itself. */
enum tokmap_status json_file_status(struct json_file *file);

#endif
