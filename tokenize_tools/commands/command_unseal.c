/* command_unseal.c - tokmap unseal: restores the tokens of sealed shards. */
#include "cli/cli.h"
#include "commands.h"
#include "commands/options/field_options.h"
#include "seal_shards.h"

static int unseal_operands(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    if (operand_count != 1)
        return cli_misused(command, "expected one dataset");
    return seal_shards(command, user, operands[0]);
}

int command_unseal(int argc, char **argv)
{
    struct seal_arguments given = {.unseal = true};
    const struct cli_option options[] = {
        {0, "force", CLI_FLAG, &given.force, NULL, NULL, "replace a NAME.bin that does not belong to the shard", NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print the report as a JSON object", NULL},
        CLI_OPTION_PROGRESS(given.progress_mode),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print no report", NULL},
        {'j', "threads", CLI_NUMBER, &given.threads, &given.threads_given, "N",
         "number of threads that decompress (default: one per processor)", NULL},
    };
    const struct cli_command command = {
        .program = "tokmap unseal",
        .usage = "DATASET [OPTION]...",
        .summary = "Restores the tokens of sealed shards: NAME.bin takes the place of NAME.bin.zst. Every byte is "
                   "compared with the checksums in the index on the way.",
        .details = "Examples:\n"
                   "  tokmap unseal data/web\n",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, unseal_operands, &given);
}
