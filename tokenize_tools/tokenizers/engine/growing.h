/* SPDX-License-Identifier: MIT */
/* growing.h - the content of a file that is being made, in memory. */
#ifndef TOKMAP_ENGINE_GROWING_H
#define TOKMAP_ENGINE_GROWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialize with zeros; free `bytes`. */
struct growing {
    char *bytes;
    size_t count, room;
    bool failed; /* a lack of memory, which the caller checks once at the end */
};

void append(struct growing *g, const void *bytes, size_t count);
void append_text(struct growing *g, const char *text);
void append_number(struct growing *g, uint64_t number);
void append_escaped(struct growing *g, const uint8_t *bytes, uint64_t count); /* of a JSON string, without its quotes */
void append_string(struct growing *g, const uint8_t *bytes, uint64_t count);  /* a JSON string */
void append_base64(struct growing *g, const uint8_t *bytes, uint64_t count);

#endif
