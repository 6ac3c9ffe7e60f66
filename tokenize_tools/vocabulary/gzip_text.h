/* SPDX-License-Identifier: MIT */
/*
 * gzip_text.h - decompresses a small gzip file in memory. The room codec/ decompresses inputs, with libraries that it
 * loads; but libtokmap_tokenize opens vocabularies without them, and one of these comes as a .gz of 1 MB.
 */
#ifndef TOKMAP_VOCABULARY_GZIP_TEXT_H
#define TOKMAP_VOCABULARY_GZIP_TEXT_H

#include <stdbool.h>

#include "common/bytes_buffer.h"
#include "tokmap/tokmap.h"

#define GZIP_TEXT_MOST ((size_t)64 << 20) /* bytes that a text may have when it is unpacked */

/* Returns whether a file begins like one of gzip. */
bool gzip_text_is(const char *bytes, uint64_t count);

/* Unpacks a file, which has one member, and appends its text to an empty buffer, which the caller frees, on failure
 * too. Statuses: OK, ERROR_FORMAT, ERROR_LIMIT,
 * ERROR_MEMORY. */
enum tokmap_status gzip_text_unpack(struct bytes_buffer *text, const char *path, const char *bytes, uint64_t count,
                                    struct tokmap_error *error);

#endif
