/* SPDX-License-Identifier: MIT */
/*
 * also_arguments.h - the option --also of `tokmap pack`: the formats of other projects in which the shards are written,
 * too. Each is a conversion of a finished shard (dataset_convert.h) that shares its tokens where the format can. A
 * sealed shard has no tokens that another project can read, so each format has a copy: PREFIX.megatron.bin, .npy, and
 * so on. When they are written, and what happens if that fails, is in pack_also.h.
 */
#ifndef TOKMAP_COMMANDS_PACK_ALSO_ARGUMENTS_H
#define TOKMAP_COMMANDS_PACK_ALSO_ARGUMENTS_H

#include "cli/cli.h"
#include "commands/convert/dataset_convert.h"
#include "pack/packing_options.h"

#define ALSO_ENDINGS_MOST 16
#define ALSO_ENDING_BYTES 32

struct also_arguments {
    const char *typed;                            /* "megatron,olmo"; NULL: none */
    enum foreign_target targets[FOREIGN_TARGETS]; /* by number of the format */
    size_t shown[FOREIGN_TARGETS];                /* the numbers in the order in which they were typed */
    size_t count;
    char formats[64]; /* all names, by number */
    bool sealed;      /* the shards are; set by the caller before also_parse() */
    char endings[ALSO_ENDINGS_MOST][ALSO_ENDING_BYTES];
    const char *ending_list[ALSO_ENDINGS_MOST]; /* of all files, for pack_also */
    size_t ending_count;
    bool begun;      /* files are being written, */
    uint32_t format; /* of this format now */
    bool removed;    /* files of the old output */
};

/* The names of the output. */
struct also_output {
    const char *prefix;
    const struct split *split;
    bool numbered; /* shard sets; otherwise it is one shard */
    bool replace;
};

/* Reads the list. Returns 0, or prints a message and returns the exit status. */
int also_parse(const struct cli_command *command, struct also_arguments *also);

/* Returns how many of the endings only shards with a mask have. */
size_t also_mask_endings(const struct also_arguments *also);

/* Returns how many of the formats have a copy of all tokens. */
uint32_t also_copies(const struct also_arguments *also);

/* Refuses, before anything is packed, what could not be written in the end: a mask or a width that a format cannot
 * have; files that exist, unless output->replace; and shards that have the name of a copy, such as PREFIX.megatron.
 * Without Megatron's format, refuses to replace a shard for which Megatron has an index, which would then be wrong.
 * Statuses: OK, ERROR_UNSUPPORTED, ERROR_EXISTS, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status also_check(const struct also_arguments *also, const struct also_output *output, uint32_t width,
                              bool masked, struct tokmap_error *error);

/* Removes the files of older shards, sealed or not, that would not fit the new ones, at the end of their commit. The
 * files of a shard PREFIX.megatron stay.
 * Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status also_remove_old(struct also_arguments *also, const struct also_output *output,
                                   struct tokmap_error *error);

/* Writes the files of one format for one shard. options: name and prefix are those of the shard; target, its prefix,
 * and shared_tokens are set here. Statuses: those of dataset_convert() and of opening the shard. */
enum tokmap_status also_write(struct also_arguments *also, uint32_t format, const struct convert_options *options,
                              struct also_written *written, struct tokmap_error *error);

/* After a failure: says how to get the files that are missing, if the shards are complete, or if those of the old ones
 * were removed. kept: the same command continues. */
void also_advise(const struct also_arguments *also, const struct also_output *output, bool kept, const char *program);

/* Adds to the closing report: lines, and the member "also"; warns of what a format lacks. sums: those of pack_result.
 */
void also_report_to(const struct also_arguments *also, const struct also_written *sums, const char *program,
                    struct cli_report *report);

#endif
