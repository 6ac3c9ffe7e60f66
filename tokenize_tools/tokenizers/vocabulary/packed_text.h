/* SPDX-License-Identifier: MIT */
/* packed_text.h - decompresses a vocabulary file in memory: CLIP's is a .gz. */
#ifndef TOKMAP_VOCABULARY_PACKED_TEXT_H
#define TOKMAP_VOCABULARY_PACKED_TEXT_H

#include <stdint.h>

#include "tokmap/tokmap.h"

#define PACKED_TEXT_MOST ((uint64_t)256 << 20) /* bytes that a file may have when it is decompressed */

/* Replaces the text of a compressed file, which was allocated by malloc(), by what it decompresses to; leaves the text
 * of any other file as it is. Statuses: OK, ERROR_FORMAT, ERROR_TRUNCATED, ERROR_UNSUPPORTED (built without the
 * library, or nothing is in the file), ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status packed_text_open(const char *path, char **text, uint64_t *bytes, struct tokmap_error *error);

#endif
