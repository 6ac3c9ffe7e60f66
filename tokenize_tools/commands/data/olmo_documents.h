/* SPDX-License-Identifier: MIT */
/*
 * olmo_documents.h - where documents end in the token files of OLMo and Dolma: their .csv.gz, read as a stream. The
 * library does not read gzip, so this does. A zeroed struct is ready; it is for one thread at a time.
 */
#ifndef TOKMAP_COMMANDS_DATA_OLMO_DOCUMENTS_H
#define TOKMAP_COMMANDS_DATA_OLMO_DOCUMENTS_H

#include <stdbool.h>

#include "common/bytes_buffer.h"
#include "corpus/stream.h"

struct olmo_documents {
    struct stream *stream;
    char *path;                 /* NULL: not open */
    struct bytes_buffer buffer; /* bytes that have been read, */
    size_t at;                  /* and taken so far */
    uint64_t line, before;      /* lines taken, and the end of the last document */
    bool ended;                 /* the stream has no more bytes */
};

/* Reads the next ends of documents, as options.ends of tokmap_dataset_index() does: at most `capacity`; *used is 0 at
 * the end. The first call opens the .csv.gz beside `tokens_path`, a file of `tokens` tokens. Statuses: OK,
 * ERROR_NOT_FOUND (no such file, which a message of `program` has said), ERROR_CORRUPT, ERROR_TRUNCATED (the list ends
 * before the tokens), ERROR_LIMIT, ERROR_MEMORY, and those of reading a stream. */
enum tokmap_status olmo_documents_read(struct olmo_documents *csv, const char *program, const char *tokens_path,
                                       uint64_t tokens, uint64_t *ends, uint64_t capacity, uint64_t *used,
                                       struct tokmap_error *error);

void olmo_documents_free(struct olmo_documents *csv);

#endif
