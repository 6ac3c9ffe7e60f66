/* SPDX-License-Identifier: MIT */
/*
 * printer.h - prints tokens of a dataset as text or ids, with the documents that they came from.
 *
 * Memory is bounded by PRINTER_CHUNK whatever is printed, except in JSON, where the text of an item is one string. The
 * blocks that hold the tokens are compared with their hashes first, so damaged tokens are never printed.
 */
#ifndef TOKMAP_COMMANDS_SHOW_PRINTER_H
#define TOKMAP_COMMANDS_SHOW_PRINTER_H

#include <stdbool.h>

#include "cli/cli.h"
#include "commands/options/tokenizer_arguments.h"
#include "encode/fim.h"
#include "tokmap/tokmap.h"

#define PRINTER_CHUNK ((uint64_t)1 << 18) /* tokens copied at a time */

struct printer {
    const struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    struct tokenizer *tokenizer; /* NULL: ids are printed */
    bool assumed;                /* the dataset does not record its tokenizer (see tokenizer_arguments.h) */
    bool to_terminal;
    bool marked;   /* the dataset has a mask, and text that does not count as a target is marked: dim on a terminal,
                      between   double brackets elsewhere */
    bool marking;  /* the text being printed does not count */
    uint8_t *mask; /* of the chunk; NULL without a mask */
    char last;     /* the last byte printed, 0 before the first */
    struct tokenizer_decoder *decoder; /* NULL without a tokenizer */
    struct text_buffer text;
    void *chunk;          /* room for PRINTER_CHUNK tokens */
    uint64_t chunk_first; /* place of its first token in the dataset */
    struct block_compare *compare;
    uint8_t *room; /* of block_compare_range() */
};

/* Prepares to print tokens of `dataset`, which must stay open. asked: the options that name the tokenizer (see
 * tokenizer_arguments.h), or NULL to print ids. marked: mark what does not count, if the dataset has a mask.
 * printer_close() must follow in any case. Statuses: OK, ERROR_MEMORY, those of dataset_tokenizer_open(). */
enum tokmap_status printer_open(struct printer *printer, const struct tokmap_dataset *dataset,
                                const struct tokenizer_arguments *asked, bool specials, bool marked,
                                struct tokmap_error *error);
/* Accepts a printer that is all zero. */
void printer_close(struct printer *printer);

/* Prints tokens to standard output. An extent continues at the dataset's first token after its last one: its first
 * token is below their number, and its number of tokens may be any. The extents of a text are decoded together. start:
 * a document begins with the first one, so what the tokenizer put before its text (a prefix space) is left out.
 * printer_text: the text, unchanged, or with visible control characters on a terminal. printer_ids: decimal ids
 * separated by spaces, without a newline. Tokens that do not count are marked: dim text on a terminal, otherwise text
 * between the brackets U+27E6 and U+27E7, and ids in parentheses. A message about an id that the tokenizer does not
 * have names its document and its place. Statuses: OK, those of block_compare_range(), tokmap_dataset_mask(), and
 * tokenizer_decode(). */
enum tokmap_status printer_text(struct printer *printer, const struct tokmap_extent *extents, uint64_t extent_count,
                                bool start, struct tokmap_error *error);
enum tokmap_status printer_ids(struct printer *printer, uint64_t first, uint64_t count, struct tokmap_error *error);
/* Does the same as the member "text" or "ids" of an open object, without marks. With a mask, also the member
 * "uncounted": the tokens that do not count, as ranges [first, end) counted from the first token printed. */
enum tokmap_status printer_json(struct printer *printer, const struct tokmap_extent *extents, uint64_t extent_count,
                                bool start, struct cli_report *report, struct tokmap_error *error);

/* Finds the order of the text of a document, if `pack --fim` has rearranged it: reader->extents of the dataset's
 * tokens. Statuses: OK, ERROR_MEMORY, those of block_compare_range(). */
enum tokmap_status printer_order(struct printer *printer, const struct tokmap_document *document,
                                 struct fim_reader *reader, struct tokmap_error *error);
/* Says how a document is stored whose text is printed as it was: at the end of a line; as the member "fim". */
void order_print(const struct fim_reader *order, FILE *file);
void order_members(const struct fim_reader *order, struct cli_report *report);

/* The part of a document that is in a range of tokens. Its paths live as long as the dataset. */
struct part {
    const struct tokmap_dataset *dataset;
    struct tokmap_document document;
    uint64_t from;    /* the first token shown, counted from the document's first token */
    uint64_t count;   /* tokens shown */
    uint64_t offset;  /* the first token shown, counted from the start of the range */
    const char *path; /* the input file, not zero-terminated; NULL: not recorded in the index */
    uint64_t path_bytes, record;
    bool alone;              /* no other document of the dataset came from this input file, as with a text file */
    const char *tokens_path; /* the shard's .bin; NULL: the dataset is synthetic */
    bool excluded;           /* the run excludes it: the row has the pad id in its place */
};

/* Calls each() in order for every document that has tokens in a range, which may continue at the dataset's first
 * token after its last one. Empty documents have no part, and neither has a dataset whose documents are not recorded
 * (info.documents is 0). Statuses: OK, ERROR_CORRUPT, those of
 * tokmap_dataset_document_at() and tokmap_dataset_origin(). */
enum tokmap_status parts_walk(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                              void (*each)(void *user, const struct part *part), void *user,
                              struct tokmap_error *error);
/* Fills the part that is the whole document `number`, which may be empty. Statuses: as parts_walk(). */
enum tokmap_status part_whole(const struct tokmap_dataset *dataset, uint64_t number, struct part *part,
                              struct tokmap_error *error);

/* Writes a line for people, and below it one for each value that the document has in the dataset's columns; writes
 * members of an open object, "columns" among them if the document has values. */
void part_print(const struct part *part, FILE *file);
void part_members(const struct part *part, struct cli_report *report);

#endif
