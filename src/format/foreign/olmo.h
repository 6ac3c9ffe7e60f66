/* SPDX-License-Identifier: MIT */
/*
 * olmo.h - the .csv.gz beside the token files of Dolma and OLMo-core: a line "START,END[,ID,SOURCE,LINE]" per document,
 * in tokens, END not included. The token file itself has no header (raw_tokens.h).
 */
#ifndef TOKMAP_FORMAT_FOREIGN_OLMO_H
#define TOKMAP_FORMAT_FOREIGN_OLMO_H

#include <stddef.h>

#include "tokmap/tokmap.h"

/* Reads one line, without its line end. before: the end of the document before it. A document begins where the one
 * before it ends, because tokens between documents would belong to none. Statuses: OK, ERROR_CORRUPT (with the line's
 * number). */
enum tokmap_status olmo_parse_line(const char *path, uint64_t line, const char *text, size_t bytes, uint64_t before,
                                   uint64_t tokens, uint64_t *end, struct tokmap_error *error);

/* Compares the end of the last document, of line `line`, with the tokens of the file: a list that ends early has lost
 * its last lines, or belongs to another file. Statuses: OK, ERROR_TRUNCATED (with the line's number). */
enum tokmap_status olmo_check_end(const char *path, uint64_t line, uint64_t end, uint64_t tokens,
                                  struct tokmap_error *error);

#endif
