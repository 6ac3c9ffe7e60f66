/* SPDX-License-Identifier: MIT */
/*
 * document_text.h - the text of one document of a dataset after the other, for a search. Blocks of tokens are compared
 * with their hashes first, so damaged tokens are never searched.
 */
#ifndef TOKMAP_COMMANDS_FIND_DOCUMENT_TEXT_H
#define TOKMAP_COMMANDS_FIND_DOCUMENT_TEXT_H

#include "commands/options/tokenizer_arguments.h"
#include "encode/fim_reader.h"
#include "tokmap/tokmap.h"

struct document_text {
    const struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    struct tokenizer *tokenizer;
    bool assumed; /* the dataset does not record its tokenizer (see dataset_tokenizer.h) */
    struct tokenizer_decoder *decoder;
    struct text_buffer text; /* of the document that was read last */
    struct block_compare *compare;
    uint8_t *room;        /* of block_compare_range() */
    void *tokens;         /* of a document */
    uint64_t tokens_most; /* that fit there */
    uint64_t shard;       /* 1 + its number: that of the document that was read last; 0: none */
    struct fim_marks fim; /* of that shard */
    struct fim_reader order;
};

/* Prepares to read documents of a dataset, which must stay open. document_text_close() must follow in any case.
 * Statuses: OK, ERROR_MEMORY, those of dataset_tokenizer_open(). */
enum tokmap_status document_text_open(struct document_text *reader, const struct tokmap_dataset *dataset,
                                      const struct tokenizer_arguments *asked, struct tokmap_error *error);
void document_text_close(struct document_text *reader); /* accepts one that is all zero */

/* Sets reader->text to the text of a document, without special tokens, as it was before `pack --fim` rearranged it.
 * Statuses: OK, ERROR_CORRUPT, ERROR_TOKEN, ERROR_MEMORY, those of block_compare_range() and tokmap_dataset_copy(). */
enum tokmap_status document_text_read(struct document_text *reader, const struct tokmap_document *document,
                                      struct tokmap_error *error);

#endif
