/*
 * also_arguments.h - the option --also of `tokmap pack`: the formats of other projects in which the shard is written,
 * too. Each is a conversion of the finished shard (dataset_convert.h) that shares its tokens where the format can.
 */
#ifndef TOKMAP_COMMANDS_SHARED_ALSO_ARGUMENTS_H
#define TOKMAP_COMMANDS_SHARED_ALSO_ARGUMENTS_H

#include "cli/cli.h"
#include "dataset_convert.h"

struct also_arguments {
    const char *typed; /* "megatron,olmo"; NULL: none */
    enum foreign_target targets[FOREIGN_TARGETS];
    size_t count;
    struct convert_result results[FOREIGN_TARGETS];
};

#define ALSO_OPTION(also)                                                                                              \
    {                                                                                                                  \
        0, "also", CLI_TEXT, &(also).typed, NULL, "FORMATS",                                                           \
            "also write the files of other projects, which share the tokens where they can: a list such as "           \
            "megatron,olmo of megatron, llmc, datatrove, olmo, nanogpt",                                               \
            NULL                                                                                                       \
    }

/* Reads the list. Returns 0, or prints a message and returns the exit status. */
int also_parse(const struct cli_command *command, struct also_arguments *also);

/* Refuses, before anything is packed, what could not be written in the end: a mask or a width that a format cannot
 * have, and files that exist, unless `replace` is set. Without any format, refuses to replace a shard for which
 * Megatron has an index, which would then be wrong. Statuses: OK, ERROR_UNSUPPORTED, ERROR_EXISTS, ERROR_MEMORY. */
enum tokmap_status also_check(const struct also_arguments *also, const char *prefix, uint32_t width, bool masked,
                              bool replace, struct tokmap_error *error);

/* Removes the files of an older shard that would not fit the new one, before that is committed. Statuses: OK, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status also_remove_old(const struct also_arguments *also, const char *prefix, struct tokmap_error *error);

/* Writes the files of all formats. options: its prefix is that of the shard; target and shared_tokens are set here.
 * Messages say how to write the rest. Statuses: those of dataset_convert(). */
enum tokmap_status also_write(struct also_arguments *also, const struct convert_options *options,
                              struct tokmap_error *error);

/* Add to the closing report, as lines and as the member "also"; they warn of what a format lacks. */
void also_print(const struct also_arguments *also, const char *program);
void also_json(const struct also_arguments *also, struct cli_json *json);

#endif
