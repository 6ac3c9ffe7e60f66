/* SPDX-License-Identifier: MIT */
/*
 * chat_json.h - writes JSON as json.dumps(value, ensure_ascii=False) of Python does, which is the filter `tojson` of
 * chat templates: ", " and ": " between values, keys in the order of the text, and numbers as Python prints them.
 */
#ifndef TOKMAP_CHAT_CHAT_JSON_H
#define TOKMAP_CHAT_CHAT_JSON_H

#include "common/bytes_buffer.h"
#include "text/json_scan.h"

#define CHAT_JSON_DEPTH 64 /* objects and arrays inside one another */

/* Initialize with zeros. */
struct chat_json {
    struct bytes_buffer out;         /* the text so far */
    struct bytes_buffer text, names; /* scratch memory */
    uint64_t
        lone; /* escapes of half a surrogate pair, each of which became U+FFFD; the caller resets it, as the next two */
    bool no_memory;   /* `out` is incomplete */
    bool indent;      /* four spaces for each object and array around a value, as with indent=4 */
    bool names_twice; /* an object has a name twice, of which Python keeps one value only */
};

void chat_json_free(struct chat_json *json);

/* Append to json->out. The value is valid JSON and valid UTF-8, at most CHAT_JSON_DEPTH deep. */
void chat_json_value(struct chat_json *json, const char *value, size_t bytes);
void chat_json_string(struct chat_json *json, const char *text, size_t bytes);
/* Decodes the text of a string, without quotes and escapes. */
void chat_json_text(struct chat_json *json, const struct json_string *string);

#endif
