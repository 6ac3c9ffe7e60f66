/*
 * printer.h - prints tokens of a dataset as text or as ids, with where they came from.
 *
 * Memory is bounded by PRINTER_CHUNK whatever is printed, except in JSON, whose text is one string.
 */
#ifndef TOKMAP_COMMANDS_SHARED_PRINTER_H
#define TOKMAP_COMMANDS_SHARED_PRINTER_H

#include <stdbool.h>

#include "cli/cli.h"
#include "tokenizer_arguments.h"
#include "tokmap/tokmap.h"

#define PRINTER_CHUNK ((uint64_t)1 << 18) /* tokens copied at once */

/* Makes control characters visible, so that what is printed cannot act on a terminal: ^[ for escape, \x9b for a byte
 * that is no UTF-8 or a C1 control. Newline and tab stay. A character may come in parts. */
struct visible {
    unsigned char held[4];
    unsigned held_count, wanted; /* bytes of a character that has begun, and its length */
    FILE *file;
};
void visible_write(struct visible *visible, const char *text, size_t bytes);
void visible_end(struct visible *visible); /* what is left of a character that did not end */

struct printer {
    const struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    struct tokenizer *tokenizer; /* NULL where ids are printed */
    bool specials;               /* special tokens as their names */
    bool to_terminal;
    char last; /* byte printed, 0 before the first */
    struct text_buffer text;
    void *chunk; /* of PRINTER_CHUNK tokens */
};

/* asked: the tokenizer that made the dataset; NULL: no text is wanted, ids are printed.
 * Statuses: OK, ERROR_MISMATCH (it is another one), ERROR_UNSUPPORTED (none was asked for, and it is not the built-in
 * one), ERROR_MEMORY, those of vocabulary_open. */
enum tokmap_status printer_open(struct printer *printer, const struct tokmap_dataset *dataset,
                                const struct tokenizer_arguments *asked, bool specials, struct tokmap_error *error);
void printer_close(struct printer *printer);

/* Tokens [first, first + count), taken modulo the dataset's; first < tokens, count <= tokens + ... of any size. start:
 * a document begins there, so what encoding put before its text is left out. Text: as it is, or visible on a terminal.
 * Ids: decimal, a space between, no newline after. Statuses: OK, those of tokmap_dataset_copy and tokenizer_decode. */
enum tokmap_status printer_text(struct printer *printer, uint64_t first, uint64_t count, bool start,
                                struct tokmap_error *error);
enum tokmap_status printer_ids(struct printer *printer, uint64_t first, uint64_t count, struct tokmap_error *error);
/* The field "text" or "ids" of an open object. */
enum tokmap_status printer_json(struct printer *printer, uint64_t first, uint64_t count, bool start,
                                struct cli_json *json, struct tokmap_error *error);

/* A document, or the part of it, in a range of tokens. */
struct part {
    struct tokmap_document document;
    uint64_t from;    /* first token shown, counted from the document's start */
    uint64_t count;   /* tokens shown */
    uint64_t offset;  /* of the first, in the range */
    const char *path; /* NULL: the index does not say */
    uint64_t path_bytes, record;
    const char *tokens_path; /* of the shard; NULL: synthetic */
};

/* Calls each() for the documents of a range, in order; empty documents have no part.
 * Statuses: OK, those of tokmap_dataset_document_at and tokmap_dataset_origin. */
enum tokmap_status parts_walk(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                              void (*each)(void *user, const struct part *part), void *user,
                              struct tokmap_error *error);
/* The part that is the whole of document `number`, which may be empty. */
enum tokmap_status part_whole(const struct tokmap_dataset *dataset, uint64_t number, struct part *part,
                              struct tokmap_error *error);

void part_print(const struct part *part, FILE *file);
void part_json(const struct part *part, struct cli_json *json);

#endif
