/* command_seal.c - tokmap seal: compresses the tokens of shards, which stay datasets. */
#include "cli/cli.h"
#include "commands.h"
#include "commands/options/field_options.h"
#include "seal_shards.h"
#include "format/shard_seal.h"

static int seal_operands(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    if (operand_count != 1)
        return cli_misused(command, "expected one dataset");
    return seal_shards(command, user, operands[0]);
}

int command_seal(int argc, char **argv)
{
    struct seal_arguments given = {.level = SEAL_LEVEL};
    const struct cli_option options[] = {
        {0, "force", CLI_FLAG, &given.force, NULL, NULL,
         "seal again what is sealed, and remove NAME.bin although another program has an index of it", NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print the report as a JSON object", NULL},
        {0, "level", CLI_NUMBER, &given.level, NULL, "N", "level of zstd, 1 to 19 (default: 6)", NULL},
        CLI_OPTION_PROGRESS(given.progress_mode),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print no report", NULL},
        {'j', "threads", CLI_NUMBER, &given.threads, &given.threads_given, "N",
         "number of threads that compress (default: one per processor)", NULL},
    };
    const struct cli_command command = {
        .program = "tokmap seal",
        .usage = "DATASET [OPTION]...",
        .summary = "Compresses the tokens of each shard: NAME.bin.zst takes the place of NAME.bin. The dataset stays "
                   "what it was: training runs read it as it is, in the same order and from the same cursors. `tokmap "
                   "unseal` restores NAME.bin, and so does `zstd -d`.",
        .details = "Examples:\n"
                   "  tokmap seal data/web\n"
                   "  tokmap seal data --level 19 --json\n",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, seal_operands, &given);
}
