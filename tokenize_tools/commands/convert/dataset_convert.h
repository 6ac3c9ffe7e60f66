/* SPDX-License-Identifier: MIT */
/*
 * dataset_convert.h - copies a dataset into the files of another project, or of any dataset into a shard.
 *
 * Tokens are read once, in blocks of 1 MiB of a shard. Where the shard has an index, each block is compared with its
 * hash, so damage is not copied. Documents come from the index of the dataset; without an index, from OLMo's
 * .csv.gz, or from the EOD and BOS, as `tokmap index` finds them.
 */
#ifndef TOKMAP_COMMANDS_CONVERT_DATASET_CONVERT_H
#define TOKMAP_COMMANDS_CONVERT_DATASET_CONVERT_H

#include "commands/options/tokenizer_arguments.h"
#include "foreign_writer.h"

struct convert_options {
    const char *program; /* for messages */
    const char *name;    /* of the dataset */
    const char *prefix;  /* of the output */
    bool to_shard;       /* the output is a shard; otherwise it is of `target` */
    enum foreign_target target;
    uint32_t width;            /* bytes of a token of the output; 0: those of the dataset, for nanogpt 2 */
    bool drop_mask;            /* a mask that the output cannot have is left out; otherwise it is an error */
    const char *shared_tokens; /* as in foreign_writer_options */
    const struct stated_tokenizer *tokenizer; /* that made the ids, to be recorded; NULL, or none stated: that of the
                                                 dataset */
    bool replace, sync;
    bool equal;                                    /* as in foreign_writer_options */
    void (*progress)(void *user, uint64_t tokens); /* from time to time, with the tokens so far */
    void *user;
};

struct convert_result {
    struct foreign_written written;
    bool masked;         /* the output has a mask */
    bool mask_dropped;   /* the dataset has one, and the output does not */
    uint64_t columns;    /* of the dataset, that the output does not have */
    uint8_t content[16]; /* of a shard; else zero */
};

/* Converts. On failure no file of the output remains, and an older output is unchanged unless the message says
 * otherwise. Messages name --width, --force, --drop-mask, and --tokenizer.
 * Statuses: OK; those of opening and reading a dataset; ERROR_CORRUPT (a block does not have its hash); ERROR_TOKEN (an
 * id is not in the vocabulary, or does not fit); ERROR_MISMATCH (the EOD or BOS is not in the vocabulary of the
 * tokenizer); ERROR_UNSUPPORTED (the mask); ERROR_EXISTS, ERROR_BUSY, ERROR_IO, ERROR_LIMIT, ERROR_INTERRUPTED,
 * ERROR_MEMORY. */
enum tokmap_status dataset_convert(const struct tokmap_dataset *dataset, const struct convert_options *options,
                                   struct convert_result *result, struct tokmap_error *error);

#endif
