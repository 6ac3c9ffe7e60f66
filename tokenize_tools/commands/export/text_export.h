/* SPDX-License-Identifier: MIT */
/*
 * text_export.h - turns the documents of a dataset back into text, in parallel, and writes them in order.
 *
 * Documents are taken in batches of about a MiB of tokens. A worker copies the tokens of a batch, leaves out the tokens
 * that pack put around each document (EOD and BOS, as the shard's index says), decodes the rest, and formats it. Then
 * it waits until the batches before have been written, and writes. So the output does not depend on the number of
 * threads, and neither does the error: it is the first one in the order of the documents.
 *
 * Is the text right? pack encodes only valid UTF-8, so the tokens of a document that pack made decode to a text whose
 * encoding is these tokens. Tokens of another writer may begin or end inside a character. Their text would contain
 * U+FFFD where bytes were not UTF-8, which a document may also contain by itself. So a text that contains U+FFFD is
 * encoded again: if it does not give the same tokens, the document is not valid UTF-8. With `check`, every text is
 * encoded again.
 */
#ifndef TOKMAP_COMMANDS_EXPORT_TEXT_EXPORT_H
#define TOKMAP_COMMANDS_EXPORT_TEXT_EXPORT_H

#include <stdbool.h>

#include "engine/tokenizer.h"
#include "tokmap/tokmap.h"

#define TEXT_EXPORT_THREADS_MOST 256

/* Treatment of a document that is not valid UTF-8. */
enum text_export_invalid { TEXT_EXPORT_ERROR, TEXT_EXPORT_REPLACE, TEXT_EXPORT_SKIP };

struct text_export_options {
    const struct tokmap_dataset *dataset; /* with shards */
    const struct tokenizer *tokenizer;    /* the one that made the dataset; ids of any width */
    uint64_t first, end;                  /* documents, first <= end <= those of the dataset */
    bool plain;                           /* texts, each followed by a newline; otherwise one JSON object per line */
    bool origin;                          /* the JSON objects also have the members path and record */
    bool check;                           /* encode every text again, and fail where the tokens differ */
    enum text_export_invalid invalid;
    uint32_t threads; /* 1 to TEXT_EXPORT_THREADS_MOST */
    int fd;           /* destination of the output */
    bool stream;      /* it is a pipe or a terminal, so that a signal ends a wait for its reader */
    /* Called from any thread, one call at a time. */
    void (*progress)(void *user, uint64_t tokens); /* tokens done so far; may be NULL */
    bool (*stop)(void *user);                      /* true: end with ERROR_INTERRUPTED; may be NULL */
    void *user;
};

struct text_export_result {
    uint64_t documents; /* written */
    uint64_t replaced;  /* of them, documents that were not valid UTF-8 */
    uint64_t skipped;   /* documents left out because they were not */
    uint64_t tokens;    /* of the documents written, with EOD and BOS */
    uint64_t text_bytes, output_bytes;
};

/* Exports the documents. Messages name --invalid-utf8, and of an id that the tokenizer does not have its
 * document and its place in it. Memory for each thread: the tokens, the text, and the output of
 * a batch, which has at least one document. Statuses: OK, ERROR_ENCODING (a document is not valid UTF-8),
 * ERROR_MISMATCH (with `check`: the text of a document gives other tokens), ERROR_TOKEN, ERROR_INTERRUPTED, ERROR_IO,
 * ERROR_CORRUPT, ERROR_MEMORY, ERROR_LIMIT, those of tokmap_dataset_copy(). */
enum tokmap_status text_export(const struct text_export_options *options, struct text_export_result *result,
                               struct tokmap_error *error);

#endif
