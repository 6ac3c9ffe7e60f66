/* SPDX-License-Identifier: MIT */
/*
 * document_make.h - what all formats of records need to make documents: the text is checked and decoded, lists of ids
 * are checked, and what is wrong becomes an issue of the batch. Parts of records.h.
 *
 * A reader of a format finds the fields of a record and describes the record in struct source_record. Everything here
 * may be called by any thread; a batch belongs to one thread at a time.
 */
#ifndef TOKMAP_CORPUS_DOCUMENT_MAKE_H
#define TOKMAP_CORPUS_DOCUMENT_MAKE_H

#include "corpus_options.h"
#include "id_list.h"

#define CORPUS_MASK_LENGTH "the mask has another length than the list of ids"

/* Documents of a batch in the making. */
struct making {
    const struct corpus_options *options;
    struct corpus_batch *batch;
    struct tokmap_error *error;
    bool stopped; /* an issue was found that ends the work */
};

/* Place of a record, and the treatment of its bytes. */
struct source_record {
    uint32_t part;     /* index in batch->parts */
    uint64_t record;   /* its number in the file, from 0 */
    uint64_t line;     /* from 1; 0 for text */
    uint64_t position; /* as in struct corpus_document */
    uint64_t whole;    /* bytes of the stream that are skipped if the record is left out */
    bool resumed, unfinished;
};

/* A text of a record before it is checked and decoded, which happens in place. */
struct source_text {
    char *text;
    uint64_t bytes;
    uint64_t offset; /* of the text in the stream, or TOKMAP_NO_OFFSET */
    bool escaped;    /* a JSON string with escapes */
    bool doubled;    /* a field of CSV with doubled quotes */
};

/* Returns the status of a lack of memory, and describes it. */
enum tokmap_status making_no_memory(const struct making *making);

/* Adds an issue of the record, at `offset` of the stream in its line `line`, and counts it. It is one of
 * `reason`, which is static; field: the option's name of the field that it is about, or NULL. Unless such issues are
 * skipped, it ends the work. Returns NULL if there is not enough memory. */
struct corpus_issue *making_issue(struct making *making, const struct source_record *source,
                                  enum corpus_issue_kind kind, enum corpus_reason left_out, uint64_t line,
                                  uint64_t offset, const char *reason, const char *field);

/* Checks the UTF-8 of a text, replaces what is invalid if that is wanted, and decodes escapes. Sets *text and *bytes to
 * the result, and *used to false if the document is left out, after adding an issue; *replaced grows by the invalid
 * sequences that became U+FFFD. */
enum tokmap_status making_text(struct making *making, const struct source_record *source,
                               const struct source_text *from, const char **text, uint64_t *bytes, uint64_t *replaced,
                               bool *used);

/* Adds the document and counts it: `made` has its content, source_bytes, and values. The document that `made` describes
 * gets the place of `source`. replaced: as making_text() has counted it. */
enum tokmap_status making_document(struct making *making, const struct source_record *source,
                                   const struct corpus_document *made, uint64_t replaced);

/* Adds an issue for a list of ids or a mask that cannot be used; fault->offset counts from `offset` of the stream.
 * text: the list. */
enum tokmap_status making_list_fault(struct making *making, const struct source_record *source, bool is_mask,
                                     const char *text, const struct list_fault *fault, uint64_t line, uint64_t offset,
                                     const char *field);

/* Adds an issue for a mask of `values` values for `ids` ids. */
enum tokmap_status making_mask_length(struct making *making, const struct source_record *source, uint64_t values,
                                      uint64_t ids, uint64_t line, uint64_t offset);

#endif
