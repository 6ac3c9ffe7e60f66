/* SPDX-License-Identifier: MIT */
/* document_text.c - see document_text.h. */
#include "document_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands/data/block_compare.h"
#include "commands/data/token_decode.h"
#include "commands/options/dataset_tokenizer.h"
#include "common/bytes.h"
#include "common/error.h"

enum tokmap_status document_text_open(struct document_text *reader, const struct tokmap_dataset *dataset,
                                      const struct tokenizer_arguments *asked, struct tokmap_error *error)
{
    *reader = (struct document_text){.dataset = dataset, .info = {.size = sizeof reader->info}};
    enum tokmap_status status = tokmap_dataset_info(dataset, &reader->info);
    if (!status)
        status = dataset_tokenizer_open(&reader->tokenizer, dataset, asked, &reader->assumed, error);
    if (!status)
        status = tokenizer_decoder_new(&reader->decoder, reader->tokenizer, false, error);
    return status ? status : block_compare_open(&reader->compare, dataset, error);
}

void document_text_close(struct document_text *reader)
{
    tokenizer_decoder_free(reader->decoder);
    if (reader->tokenizer)
        tokenizer_close(reader->tokenizer);
    block_compare_close(reader->compare);
    free(reader->room);
    free(reader->tokens);
    free(reader->text.bytes);
    *reader = (struct document_text){0};
}

enum tokmap_status document_text_read(struct document_text *reader, const struct tokmap_document *document,
                                      struct tokmap_error *error)
{
    const uint64_t count = document->tokens;
    uint64_t unknown = 0;
    if (count > reader->tokens_most) {
        const uint64_t most = max64(count, 2 * reader->tokens_most);
        void *grown = realloc(reader->tokens, most * reader->info.width);
        if (!grown)
            return error_set_memory(error, "a document", most * reader->info.width);
        reader->tokens = grown;
        reader->tokens_most = most;
    }
    reader->text.count = 0;
    enum tokmap_status status = TOKMAP_OK;
    if (count)
        status = block_compare_range(reader->compare, document->first_token, count, &reader->room, error);
    if (count && !status)
        status = tokmap_dataset_copy(reader->dataset, document->first_token, count, reader->tokens, error);
    if (status)
        return status;
    const struct token_list list = {reader->tokens, reader->info.width, count};
    tokenizer_decoder_begin(reader->decoder, false);
    status = token_decode(reader->decoder, reader->tokenizer, &list, &reader->text, &unknown, error);
    if (!status)
        status = tokenizer_decoder_end(reader->decoder, &reader->text, error);
    if (status == TOKMAP_ERROR_TOKEN) {
        char message[sizeof error->message];
        memcpy(message, error->message, sizeof message);
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "document %" PRIu64 ", token %" PRIu64 ": %.600s",
                         document->number, unknown, message);
    }
    return status;
}
