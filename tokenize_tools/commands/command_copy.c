/* SPDX-License-Identifier: MIT */
/* command_copy.c - tokmap copy: moves a dataset between file systems and object storage, and compares it. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/copy/copy_file.h"
#include "commands/copy/dataset_copy.h"
#include "platform/os.h"

struct copy_arguments {
    uint64_t connections, part_bytes;
    bool part_given, force, json, quiet;
    int verify;        /* enum copy_verify */
    int progress_mode; /* enum cli_progress_mode */
    struct cli_progress progress;
};

enum copy_verify { VERIFY_SIZES, VERIFY_FULL };

static const char program[] = "tokmap copy";

static void progressed(void *user, uint64_t done, uint64_t total)
{
    struct copy_arguments *given = user;
    given->progress.total = total;
    cli_progress_update(&given->progress, done);
}

static void report(const struct copy_arguments *given, const char *from, const char *to,
                   const struct dataset_copy_result *result, double seconds)
{
    struct cli_report report;
    cli_report_begin(&report, given->json, NULL);
    cli_member(&report, "from", cli_text(from));
    cli_member(&report, "to", cli_text(to));
    cli_numbers(&report, "shards|changed", result->shards, result->changed);
    cli_member(&report, "manifest", cli_bool(result->manifest));
    cli_numbers(&report, "bytes|sent|kept", result->bytes, result->sent, result->kept);
    cli_member(&report, "verify", cli_text(given->verify == VERIFY_FULL ? "full" : "sizes"));
    cli_member(&report, "seconds", cli_real(seconds));
    cli_numbers(&report, "values", result->values);
    cli_report_end(&report);
    if (given->json || given->quiet)
        return;
    cli_print("%s: %s%s%s%s, %s%s\n", to, CLI_COUNTED(result->shards, "shard"), result->values ? " and " : "",
              result->values ? CLI_COUNTED(result->values, "file") : "", result->values ? " of values" : "",
              CLI_BYTES(result->bytes), !result->changed ? "; all of it was there already" : "");
    if (result->kept && result->changed)
        cli_print("%s: %s had been copied before\n", to, CLI_BYTES(result->kept));
    if (seconds > 0 && result->sent)
        cli_say(program, "%s in %s, %s/s", CLI_BYTES(result->sent), CLI_SECONDS(seconds),
                CLI_BYTES((uint64_t)((double)result->sent / seconds)));
}

static int copy(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct copy_arguments *given = user;
    struct tokmap_error error = {0};
    struct dataset_copy_result result = {.shards = 0};
    if (operand_count != 2)
        return cli_misused(command, "expected a dataset and where its copy goes");
    if (!given->connections || given->connections > COPY_CONNECTIONS_MOST)
        return cli_misused(command, "--connections must be between 1 and %u", COPY_CONNECTIONS_MOST);
    if (given->part_given &&
        (given->part_bytes < COPY_PART_LEAST || given->part_bytes > COPY_PART_MOST || given->part_bytes % COPY_ALIGN))
        return cli_misused(command,
                           "--part-bytes is %" PRIu64 " bytes, and must be a whole number of MiB from 5Mi to 1Gi (5M "
                           "are 5000000 bytes: write 5Mi)",
                           given->part_bytes);
    if (cli_names_run(operands[0]))
        return cli_misused(command, "'%s' is a run file; name the dataset of one of its sources", operands[0]);
    const struct dataset_copy_options options = {.from = operands[0],
                                                 .to = operands[1],
                                                 .connections = (uint32_t)given->connections,
                                                 .part_bytes = given->part_bytes,
                                                 .replace = given->force,
                                                 .full = given->verify == VERIFY_FULL,
                                                 .progress = progressed,
                                                 .user = given};
    cli_signals_catch();
    cli_progress_start(&given->progress, "copying", NULL, 0, given->quiet ? CLI_PROGRESS_NONE : given->progress_mode);
    const uint64_t start = os_clock_ns();
    const enum tokmap_status status = dataset_copy(&options, &result, &error);
    const double seconds = (double)(os_clock_ns() - start) * 1e-9;
    cli_progress_end(&given->progress);
    cli_signals_end(program, status && result.unfinished ? "interrupted; the same command continues" : NULL);
    if (status) {
        const int failed = command_failed(command, &error);
        if (result.unfinished && result.sent)
            cli_say(program, "what has been copied is kept: the same command continues");
        return cli_finish(program, failed);
    }
    report(given, operands[0], operands[1], &result, seconds);
    return cli_finish(program, CLI_DONE);
}

int command_copy(int argc, char **argv)
{
    struct copy_arguments given = {.connections = COPY_CONNECTIONS};
    const struct cli_option options[] = {
        {'j', "connections", CLI_NUMBER, &given.connections, NULL, "N",
         "copy N parts at a time (default: 8), each with a thread and a connection", NULL},
        {0, "force", CLI_FLAG, &given.force, NULL, NULL, "replace another dataset of this name", NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print the report as a JSON object", NULL},
        {0, "part-bytes", CLI_SIZE, &given.part_bytes, &given.part_given, "SIZE",
         "size of a part, which each connection has in memory (default: 16MiB, or more for a file above 156 GiB)",
         NULL},
        CLI_OPTION_PROGRESS(given.progress_mode),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print no progress and no report", NULL},
        {0, "verify", CLI_CHOICE, &given.verify, NULL, "HOW",
         "sizes (default): compare sizes and, where the storage has them, checksums (ETags) of what was written; full: "
         "also read all of it again",
         "sizes|full"},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "FROM TO [OPTION]...",
        .summary = "Copies a dataset between file systems and object storage (s3://, gs://; from https://, too). Each "
                   "byte is compared with the checksums of the dataset on the way.",
        .details = "FROM is a shard, a folder, or a manifest. Its copy has the same shards, under the name TO, or in "
                   "the folder TO if that ends in a slash. Its indexes come last, so the copy is there whole or not at "
                   "all. A copy that was killed continues when the same command is given again.\n\n"
                   "Examples:\n"
                   "  tokmap copy data/web data/backup/\n"
                   "  tokmap copy data/web s3://bucket/data/web --connections 32\n"
                   "  tokmap copy s3://bucket/data/web gs://other/web --verify full\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, copy, &given);
}
