/* pack_seal.h - the option --seal of `tokmap pack`, and the progress of the sealing. */
#ifndef TOKMAP_COMMANDS_PACK_PACK_SEAL_H
#define TOKMAP_COMMANDS_PACK_PACK_SEAL_H

#include "cli/cli.h"
#include "format/shard_writer.h"

struct pack_seal {
    const char *text; /* the level as it was typed, or "" */
    bool given;
    struct shard_writer_seal seal;
    struct cli_progress *progress; /* of the command */
    int shown;                     /* enum cli_progress_mode */
    bool alone, begun;             /* alone: one shard is sealed, in the end, and has a progress of its own */
};

/* clang-format off */
#define PACK_SEAL_OPTION(sealed)                                                                                       \
    {0, "seal", CLI_MAYBE, &(sealed).text, &(sealed).given, "LEVEL",                                                   \
     "compress the tokens of each shard as `tokmap seal` does, at this level of zstd (1 to 19, default: 6): "          \
     "PREFIX.bin.zst takes the place of PREFIX.bin. While a shard is sealed, its tokens are on disk, too", NULL}
/* clang-format on */

/* Reads the level, and loads libzstd before any work is done. Returns 0, or prints a message and returns the exit
 * status. */
int pack_seal_check(const struct cli_command *command, struct pack_seal *sealed);

/* Returns what pack_options.seal takes: NULL if the option was not given. */
const struct shard_writer_seal *pack_seal_start(struct pack_seal *sealed, uint64_t threads, bool alone,
                                                struct cli_progress *progress, int shown);

#endif
