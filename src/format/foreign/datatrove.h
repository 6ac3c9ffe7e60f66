/* SPDX-License-Identifier: MIT */
/*
 * datatrove.h - the files of datatrove's DocumentTokenizer: X.ds has the tokens and nothing else; X.ds.index a u64 per
 * document, its end in tokens; X.ds.loss a byte per token, 1 if the token counts for the loss; X.ds.metadata three
 * lines of text: "TOKENIZER|BYTES OF A TOKEN", the number of tokens, and that number for people. All but X.ds can be
 * missing.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_DATATROVE_H
#define TOKMAP_FORMAT_FOREIGN_DATATROVE_H

#include <stddef.h>

#include "foreign_layout.h"
#include "tokmap/tokmap.h"

#define DATATROVE_METADATA_MOST 65536 /* bytes of the file that are read; it has about 50 */

/* Reads X.ds.metadata. *width: 2 or 4. *tokens: TOKMAP_NO_ID if the text does not count them. Statuses: OK,
 * ERROR_CORRUPT (with the line). */
enum tokmap_status datatrove_parse(const char *path, const char *text, size_t bytes, uint64_t *width, uint64_t *tokens,
                                   struct tokmap_error *error);

/* Computes the layout of X.ds. width: from the metadata, or from the word width. tokens: from the metadata, or
 * TOKMAP_NO_ID. Statuses: OK, ERROR_TRUNCATED. */
enum tokmap_status datatrove_layout(struct foreign_layout *layout, const char *path, uint64_t width, uint64_t tokens,
                                    uint64_t file_bytes, struct tokmap_error *error);

/* Checks what the size of X.ds.index and its last end say. last_end is not used if the file is empty. Statuses: OK,
 * ERROR_TRUNCATED, ERROR_CORRUPT. */
enum tokmap_status datatrove_check_index(const char *path, uint64_t index_bytes, uint64_t last_end, uint64_t tokens,
                                         struct tokmap_error *error);

#endif
