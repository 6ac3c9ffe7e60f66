/* SPDX-License-Identifier: MIT */
/* document_text.c - see document_text.h. */
#include "document_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands/data/block_compare.h"
#include "commands/data/token_decode.h"
#include "commands/options/dataset_tokenizer.h"
#include "commands/report/dataset_about.h"
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
    fim_reader_free(&reader->order);
    *reader = (struct document_text){0};
}

/* Finds the special tokens by which the text of documents of a shard is rearranged. */
static enum tokmap_status shard_use(struct document_text *reader, uint64_t shard, struct tokmap_error *error)
{
    struct tokmap_shard_info info = TOKMAP_SHARD_INFO_INIT;
    struct about_facts about = {.path = NULL};
    if (!reader->info.shards || reader->shard == shard + 1)
        return TOKMAP_OK;
    enum tokmap_status status = tokmap_dataset_shard(reader->dataset, shard, &info, error);
    if (!status)
        status = about_read(&info, &about, error);
    reader->fim = about.fim;
    reader->shard = status ? 0 : shard + 1;
    about_free(&about);
    return status;
}

/* Decodes the tokens of a document in the order of its text. */
static enum tokmap_status decode(struct document_text *reader, uint64_t count, uint64_t *unknown,
                                 struct tokmap_error *error)
{
    const uint8_t *tokens = reader->tokens;
    const uint32_t width = reader->info.width;
    struct fim_reader *order = &reader->order;
    fim_reader_begin(order, &reader->fim);
    enum tokmap_status status = fim_reader_add(order, tokens, width, count, error);
    if (!status)
        status = fim_reader_end(order, error);
    tokenizer_decoder_begin(reader->decoder, false);
    for (uint64_t i = 0; i < order->count && !status; i++) {
        const uint64_t first = order->extents[i].first_token;
        const struct token_list part = {tokens + first * width, width, order->extents[i].tokens};
        status = token_decode(reader->decoder, reader->tokenizer, &part, &reader->text, unknown, error);
        *unknown += status ? first : 0;
    }
    return status ? status : tokenizer_decoder_end(reader->decoder, &reader->text, error);
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
    enum tokmap_status status = shard_use(reader, document->shard, error);
    if (count && !status)
        status = block_compare_range(reader->compare, document->first_token, count, &reader->room, error);
    if (count && !status)
        status = tokmap_dataset_copy(reader->dataset, document->first_token, count, reader->tokens, error);
    if (status)
        return status;
    status = decode(reader, count, &unknown, error);
    if (status == TOKMAP_ERROR_TOKEN) {
        char message[sizeof error->message];
        memcpy(message, error->message, sizeof message);
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "document %" PRIu64 ", token %" PRIu64 ": %.600s",
                         document->number, unknown, message);
    }
    return status;
}
