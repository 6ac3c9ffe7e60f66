/* SPDX-License-Identifier: MIT */
/* command_seal.c - tokmap seal and tokmap unseal: compress the tokens of shards, which stay datasets, and restore
 * them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/output_file.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/shard_seal.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"

/* ---- both commands ---- */

struct seal_arguments {
    bool unseal;
    uint64_t level, threads;
    bool threads_given, force, json, quiet;
    int progress_mode; /* enum cli_progress_mode */
};

#define THREADS_MOST 1024

struct shard_list {
    char **paths; /* of the indexes, in byte order, each once */
    uint64_t count;
};

struct seal_sum {
    const struct seal_arguments *given;
    uint64_t shards, changed; /* shards that were looked at, and those that were converted */
    uint64_t tokens, token_bytes, sealed_bytes;
    uint64_t done, total; /* bytes of tokens, for the progress */
    struct cli_progress progress;
};

static void list_free(struct shard_list *list)
{
    for (uint64_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
}

/* Sorts the list, and drops doubles: a manifest can name a shard twice. */
static void list_sort(struct shard_list *list)
{
    uint64_t kept = 0;
    qsort(list->paths, list->count, sizeof *list->paths, path_compare);
    for (uint64_t i = 0; i < list->count; i++) {
        if (kept && !strcmp(list->paths[i], list->paths[kept - 1]))
            free(list->paths[i]);
        else
            list->paths[kept++] = list->paths[i];
    }
    list->count = kept;
}

/* Finds the shards. The dataset is closed again, because each of its shards keeps a file open. */
static enum tokmap_status list_find(struct shard_list *list, const char *program, const char *name,
                                    struct seal_sum *sum, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    enum tokmap_status status = local_dataset_open(&dataset, name, error);
    if (!status) {
        dataset_warn(program, dataset, name);
        status = tokmap_dataset_info(dataset, &info);
        sum->total = info.tokens * info.width;
    }
    if (!status && strcmp(info.kind, "shards") != 0)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                           "only shards of `tokmap pack` are sealed, and this dataset has none");
    if (!status && !(list->paths = calloc(info.shards, sizeof *list->paths)))
        status = error_set_memory(error, "the list of shards", info.shards);
    for (uint64_t i = 0; i < info.shards && !status; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        status = tokmap_dataset_shard(dataset, i, &shard, error);
        if (!status && !(list->paths[list->count++] = strdup(shard.index_path))) {
            list->count--;
            status = error_set_memory(error, "the path of a shard", i);
        }
    }
    tokmap_dataset_close(dataset);
    if (!status)
        list_sort(list);
    return status;
}

static int progressed(void *user, uint64_t done, uint64_t total)
{
    struct seal_sum *sum = user;
    (void)total;
    sum->progress.total = sum->total;
    cli_progress_update(&sum->progress, min64(sum->done + done, sum->total));
    return os_signal_caught() != 0;
}

static enum tokmap_status convert_all(const struct shard_list *list, struct seal_sum *sum, struct tokmap_error *error)
{
    const struct seal_arguments *given = sum->given;
    const struct shard_seal_options options = {
        .unseal = given->unseal,
        .replace = given->force,
        .level = (int)given->level,
        .threads = given->threads_given ? (uint32_t)given->threads : os_processors(),
        .progress = progressed,
        .user = sum,
    };
    for (uint64_t i = 0; i < list->count; i++) {
        struct shard_seal_result result;
        const enum tokmap_status status = shard_seal(list->paths[i], &options, &result, error);
        if (status)
            return status;
        sum->shards++;
        sum->changed += result.changed;
        sum->tokens += result.tokens;
        sum->token_bytes += result.token_bytes;
        sum->sealed_bytes += result.sealed_bytes;
        sum->done += result.token_bytes;
    }
    return TOKMAP_OK;
}

static double ratio(const struct seal_sum *sum)
{
    return sum->sealed_bytes ? (double)sum->token_bytes / (double)sum->sealed_bytes : 0;
}

static void report(const char *program, const struct seal_sum *sum, const char *name, double seconds)
{
    struct cli_report report;
    const bool unseal = sum->given->unseal;
    cli_report_begin(&report, sum->given->json, NULL);
    cli_member(&report, "dataset", cli_text(name));
    cli_numbers(&report, "shards|changed|tokens|token_bytes", sum->shards, sum->changed, sum->tokens, sum->token_bytes);
    if (sum->sealed_bytes) {
        cli_member(&report, "sealed_bytes", cli_number(sum->sealed_bytes));
        cli_member(&report, "ratio", cli_real(ratio(sum)));
    }
    cli_member(&report, "seconds", cli_real(seconds));
    cli_report_end(&report);
    if (sum->given->json || sum->given->quiet)
        return;
    if (!sum->changed) {
        cli_print("%s: %s\n", name, unseal ? "no shard was sealed" : "all shards were sealed already");
        return;
    }
    if (!unseal)
        cli_print("%s: sealed %s: %s of tokens in %s, ratio %.2f\n", name, CLI_COUNTED(sum->changed, "shard"),
                  CLI_BYTES(sum->token_bytes), CLI_BYTES(sum->sealed_bytes), ratio(sum));
    else
        cli_print("%s: unsealed %s: %s of tokens\n", name, CLI_COUNTED(sum->changed, "shard"),
                  CLI_BYTES(sum->token_bytes));
    if (sum->shards > sum->changed)
        cli_print("%s: unchanged, because they were %s: %s\n", name, unseal ? "not sealed" : "sealed already",
                  CLI_COUNTED(sum->shards - sum->changed, "shard"));
    if (seconds > 0)
        cli_say(program, "%s in %s, %s/s", CLI_BYTES(sum->token_bytes), CLI_SECONDS(seconds),
                CLI_BYTES((uint64_t)((double)sum->token_bytes / seconds)));
}

/* Returns whether a name ends in a part, which is not a whole shard. */
static bool names_part(const char *name)
{
    const char *mark = strrchr(name, '#');
    const size_t bytes = strlen(name);
    const char last = bytes ? name[bytes - 1] : '/';
    return mark && (!strncmp(mark, "#docs=", 6) || !strncmp(mark, "#tokens=", 8)) &&
           (last == '%' || (last >= '0' && last <= '9'));
}

/* Converts the shards of the dataset `name`, in order, and prints the report. Returns the exit status. */
static int seal_shards(const struct cli_command *command, const struct seal_arguments *given, const char *name)
{
    const char *program = command->program;
    struct tokmap_error error = {0};
    struct shard_list list = {NULL, 0};
    struct seal_sum sum = {.given = given};
    if (given->threads_given && (!given->threads || given->threads > THREADS_MOST))
        return cli_misused(command, "--threads must be between 1 and %d", THREADS_MOST);
    if (!given->unseal && (!given->level || given->level > SEAL_LEVEL_MOST))
        return cli_misused(command, "--level must be between 1 and %d", SEAL_LEVEL_MOST);
    if (cli_names_run(name))
        return cli_misused(command, "'%s' is a run file; name the dataset of one of its sources", name);
    if (names_part(name))
        return cli_misused(command, "'%s' is a part of a dataset; name whole shards", name);
    cli_signals_catch();
    enum tokmap_status status = list_find(&list, program, name, &sum, &error);
    cli_progress_start(&sum.progress, given->unseal ? "unsealing" : "sealing", NULL, 0,
                       given->quiet ? CLI_PROGRESS_NONE : given->progress_mode);
    const uint64_t start = os_clock_ns();
    bool stated = false;
    if (!status)
        status = manifest_file_clear(name, &stated, &error);
    if (!status)
        status = convert_all(&list, &sum, &error);
    if (!status && stated)
        status = manifest_file_state(name, &error);
    const double seconds = (double)(os_clock_ns() - start) * 1e-9;
    cli_progress_end(&sum.progress);
    cli_signals_end(program, NULL);
    list_free(&list);
    if (status && sum.changed)
        cli_say(program, "%" PRIu64 " of the shards were done before the failure, and stay so", sum.changed);
    if (status)
        return cli_finish(program, command_failed(command, &error));
    report(program, &sum, name, seconds);
    return cli_finish(program, CLI_DONE);
}

/* ---- the commands ---- */

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
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, seal_operands, &given);
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
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, seal_operands, &given);
}
