/* document_lengths.h - the lengths of a dataset's documents, and texts about them. */
#ifndef TOKMAP_COMMANDS_SHARED_DOCUMENT_LENGTHS_H
#define TOKMAP_COMMANDS_SHARED_DOCUMENT_LENGTHS_H

#include "cli/cli.h"
#include "pack/histogram.h"
#include "tokmap/tokmap.h"

/* Visits every document of a dataset (of a synthetic one, the first 2^20) through its index. progress: enum
 * cli_progress_mode. Statuses: OK, ERROR_MEMORY, ERROR_CORRUPT. */
enum tokmap_status dataset_lengths(const struct tokmap_dataset *dataset, int progress, struct lengths *lengths,
                                   struct tokmap_error *error);

/* "p50 312, p90 1,204, p99 8,000, max 120,331, mean 401.2", or "none"; returns `text`. */
#define LENGTHS_TEXT 192
const char *lengths_text(const struct lengths *lengths, char text[LENGTHS_TEXT]);
/* Writes the member "document_tokens": an object with p50, p90, p99, max, and mean, or null. */
void lengths_json(const struct lengths *lengths, struct cli_json *json);

/* "4.37 bytes of text", for the row "a token stands for"; "unknown" without tokens. Returns `text`. */
const char *bytes_a_token_text(uint64_t text_bytes, uint64_t tokens, char text[64]);

#endif
