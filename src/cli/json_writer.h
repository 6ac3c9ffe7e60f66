/* SPDX-License-Identifier: MIT */
/* json_writer.h - JSON output that is always well formed: commas, quotes, and escapes are the writer's job. */
#ifndef TOKMAP_CLI_JSON_WRITER_H
#define TOKMAP_CLI_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli_json {
    FILE *file;
    uint32_t depth;     /* objects and arrays that are open, at most 63 */
    uint64_t has_items; /* bit d: the container at depth d has an item */
    uint64_t is_array;  /* bit d: it is an array */
    bool as_given;      /* characters above U+007F are never escaped: for JSON that becomes part of a file, whose bytes
                           must not change from version to version */
};

/* Begins a JSON value. What is not plain (common/visible.h) is escaped in strings, such as \u009b, so that the output
 * of a command does not act on a terminal.
 *
 * Every function below takes the key of a member, or NULL for an element of an array and for a value at the top. A
 * value at the top is followed by a newline only if it is an object or an array. */
void cli_json_begin(struct cli_json *json, FILE *file);
void cli_json_object(struct cli_json *json, const char *key);
void cli_json_array(struct cli_json *json, const char *key);
void cli_json_end(struct cli_json *json); /* closes the innermost object or array */

void cli_json_text(struct cli_json *json, const char *key, const char *text);
/* Writes a string of `bytes` bytes, which may contain zero bytes. Each byte that is not part of valid UTF-8 becomes
 * U+FFFD. */
void cli_json_bytes(struct cli_json *json, const char *key, const char *text, size_t bytes);
void cli_json_number(struct cli_json *json, const char *key, uint64_t number);
void cli_json_real(struct cli_json *json, const char *key, double number); /* 12 digits; null if not finite */
void cli_json_bool(struct cli_json *json, const char *key, bool value);
void cli_json_null(struct cli_json *json, const char *key);

#define CLI_JSON_RAW_DEPTH 64
/* Writes a value that is JSON already, with its line ends replaced by spaces. Writes null if the bytes are not one
 * valid JSON value, or if more than CLI_JSON_RAW_DEPTH of its objects and arrays contain one another. */
void cli_json_raw(struct cli_json *json, const char *key, const char *text, size_t bytes);

#endif
