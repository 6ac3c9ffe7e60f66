/* seal_shards.h - what `tokmap seal` and `tokmap unseal` do: find the shards of a dataset, convert each, report. */
#ifndef TOKMAP_COMMANDS_SEAL_SHARDS_H
#define TOKMAP_COMMANDS_SEAL_SHARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"

struct seal_arguments {
    bool unseal;
    uint64_t level, threads;
    bool threads_given, force, json, quiet;
    int progress_mode; /* enum cli_progress_mode */
};

/* Converts the shards of the dataset `name`, in order, and prints the report. Returns the exit status. */
int seal_shards(const struct cli_command *command, const struct seal_arguments *given, const char *name);

#endif
