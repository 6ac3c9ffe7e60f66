/*
 * shard_sink.h - the shard that a dataset is copied into: tokens of the same or another width, documents, mask,
 * origins, and columns. For one thread at a time.
 */
#ifndef TOKMAP_COMMANDS_CONVERT_SHARD_SINK_H
#define TOKMAP_COMMANDS_CONVERT_SHARD_SINK_H

#include "commands/options/stated_tokenizer.h"
#include "foreign_writer.h"

struct shard_sink_options {
    const struct tokmap_dataset *dataset; /* where vocabulary, tokenizer, origins, and columns come from */
    const struct stated_tokenizer *tokenizer; /* or of the vocabulary and the tokenizer, this; NULL: the dataset's */
    const char *prefix;
    uint32_t width; /* of the shard */
    bool mask;
    bool origins; /* every document of the dataset has one */
    bool indexed; /* documents are those that the dataset numbers; without them there are no columns */
    bool replace, sync;
};

struct shard_sink;

/* Statuses: those of shard_writer_open(), and of reading the dataset. */
enum tokmap_status shard_sink_open(struct shard_sink **sink, const struct shard_sink_options *options,
                                   struct tokmap_error *error);

/* Appends tokens of the dataset's width, as foreign_writer_add() does; the documents are those of the dataset, in
 * order. largest: the largest id of the tokens. Statuses: those of shard_writer_add(). */
enum tokmap_status shard_sink_add(struct shard_sink *sink, const uint8_t *tokens, uint64_t count, const uint64_t *ends,
                                  uint64_t documents, uint64_t largest, struct tokmap_error *error);
enum tokmap_status shard_sink_mask(struct shard_sink *sink, const uint8_t *bits, uint64_t count,
                                   struct tokmap_error *error);

/* Finishes the shard. Frees the sink with every status. content: its id. Statuses: those of shard_writer_commit(). */
enum tokmap_status shard_sink_commit(struct shard_sink *sink, struct foreign_written *written, uint8_t content[16],
                                     struct tokmap_error *error);
void shard_sink_abort(struct shard_sink *sink); /* NULL is ignored */

#endif
