/* SPDX-License-Identifier: MIT */
/* command_convert.c - tokmap convert: the command line of convert/dataset_convert.h, and its report. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/data/output_file.h"
#include "commands/options/target.h"
#include "commands/report/values_report.h"
#include "common/error.h"
#include "dataset_convert.h"
#include "platform/os.h"
#include "text/path.h"

static const char program[] = "tokmap convert";

enum { TO_SHARD }; /* the first choice of --to; the others are those of enum foreign_target, in order */

struct convert_arguments {
    const char *output; /* as it was typed */
    char *prefix;
    int to;
    uint64_t width;
    bool width_given, drop_mask, force, json, quiet;
    int progress_mode; /* enum cli_progress_mode */
    struct tokenizer_arguments tokenizer;
    struct cli_progress progress;
};

static void progressed(void *user, uint64_t tokens)
{
    struct convert_arguments *given = user;
    cli_progress_update(&given->progress, tokens);
}

/* ---- report ---- */

static const char *target_name(const struct convert_arguments *given)
{
    return given->to == TO_SHARD ? "tokmap" : foreign_target_name((enum foreign_target)(given->to - 1));
}

/* Warns about what the output does not have, although the dataset does. */
static void losses_warn(const struct convert_arguments *given, const struct convert_result *result)
{
    if (result->written.lost)
        cli_warn(program,
                 "%s has no index of documents, and of %s, %s cannot be found by their EOD or BOS: they lack it, or "
                 "contain it elsewhere",
                 target_name(given), CLI_COUNTED(result->written.documents, "document"),
                 CLI_COUNT(result->written.lost));
    if (result->mask_dropped)
        cli_warn(program, "%s's files cannot have a mask, so it was left out: a model will learn all tokens",
                 target_name(given));
    if (result->columns)
        cli_warn(program, "%s's files cannot have columns, so %s left out", target_name(given),
                 result->columns == 1 ? "one was" : "they were");
}

static void conversion_report(const struct convert_arguments *given, const char *name,
                              const struct convert_result *result, double seconds)
{
    const struct foreign_written *written = &result->written;
    struct cli_report report;
    cli_report_begin(&report, given->json, NULL);
    cli_member(&report, "dataset", cli_text(name));
    cli_member(&report, "output", cli_text(given->prefix));
    cli_member(&report, "format", cli_text(target_name(given)));
    cli_numbers(&report, "tokens|documents|documents_lost", written->tokens, written->documents, written->lost);
    cli_member(&report, "masked", cli_bool(result->masked));
    cli_member(&report, "mask_dropped", cli_bool(result->mask_dropped));
    cli_numbers(&report, "columns_dropped|written_bytes|shared_bytes", result->columns, written->written_bytes,
                written->shared_bytes);
    cli_member(&report, "content", cli_text(given->to == TO_SHARD ? ID_HEX(result->content) : NULL));
    cli_member(&report, "seconds", cli_real(seconds));
    cli_report_end(&report);
    if (given->json || given->quiet)
        return;
    cli_print("%s: converted %s and %s of %s to %s; wrote %s", given->prefix, CLI_COUNTED(written->tokens, "token"),
              CLI_COUNTED(written->documents, "document"), name, target_name(given), CLI_BYTES(written->written_bytes));
    if (written->shared_bytes)
        cli_print(", and shares %s of tokens with the shard", CLI_BYTES(written->shared_bytes));
    if (given->to == TO_SHARD)
        cli_print("; content id %s", ID_HEX(result->content));
    printf("\n");
    if (seconds > 0)
        cli_say(program, "took %s, %s/s", CLI_SECONDS(seconds),
                CLI_BYTES((uint64_t)((double)(written->written_bytes + written->shared_bytes) / seconds)));
}

/* ---- the command ---- */

/* If the output has the prefix of the shard that is converted, its tokens may be shared: then *tokens is the path of
 * its .bin. A name that would replace a file of the dataset is an error. */
static enum tokmap_status own_tokens_find(const struct convert_arguments *given, const struct tokmap_dataset *dataset,
                                          char **tokens, struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    struct os_stat found;
    *tokens = path_ended(given->prefix, ".bin");
    if (!*tokens)
        return error_set_memory(error, "a path", strlen(given->prefix));
    enum tokmap_status status = TOKMAP_OK;
    bool own = false, whole = false;
    for (uint64_t i = 0; i < info.shards && !status && !own && !os_stat(*tokens, &found); i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        status = tokmap_dataset_shard(dataset, i, &shard, error);
        own = !status && output_is_file(shard.tokens_path, &found);
        whole = own && info.shards == 1 && !strcmp(info.kind, "shards") && shard.tokens * info.width == found.bytes;
    }
    const bool shares = whole && given->to != TO_SHARD &&
                        foreign_target_shares((enum foreign_target)(given->to - 1), info.width) &&
                        (!given->width_given || given->width == info.width);
    if (own && !shares && !status)
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, *tokens, TOKMAP_NO_OFFSET,
                           "this file has tokens of the dataset that is converted, and %s's files cannot share them; "
                           "choose another name",
                           target_name(given));
    if (!shares) {
        free(*tokens);
        *tokens = NULL;
    }
    return status;
}

/* Refuses an index that belongs to other tokens: a shard beside an index of Megatron for other tokens of the same name
 * would make Megatron read garbage. */
static enum tokmap_status index_check(const struct convert_arguments *given, struct tokmap_error *error)
{
    struct os_stat found;
    char *path = path_ended(given->prefix, ".idx");
    if (!path)
        return error_set_memory(error, "a path", strlen(given->prefix));
    enum tokmap_status status = TOKMAP_OK;
    if (given->to == TO_SHARD && !os_lstat(path, &found))
        status = error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                           "this is an index of Megatron for the .bin that would be written; choose another name");
    free(path);
    return status;
}

static enum tokmap_status dataset_open_and_convert(struct convert_arguments *given, const char *name,
                                                   struct convert_result *result, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct stated_tokenizer stated = {.vocabulary = 0};
    char *tokens = NULL;
    enum tokmap_status status = output_place_check(given->prefix, false, error);
    if (!status)
        status = index_check(given, error);
    if (!status)
        status = tokmap_dataset_open(&dataset, name, NULL, error);
    if (!status) {
        dataset_warn(program, dataset, name);
        status = tokmap_dataset_info(dataset, &info);
    }
    if (!status)
        status = stated_tokenizer_open(&stated, &given->tokenizer, info.tokenizer, error);
    if (!status)
        status = own_tokens_find(given, dataset, &tokens, error);
    const struct convert_options options = {.program = program,
                                            .name = name,
                                            .prefix = given->prefix,
                                            .to_shard = given->to == TO_SHARD,
                                            .target = (enum foreign_target)(given->to == TO_SHARD ? 0 : given->to - 1),
                                            .width = (uint32_t)given->width,
                                            .drop_mask = given->drop_mask,
                                            .shared_tokens = tokens,
                                            .tokenizer = &stated,
                                            .replace = given->force,
                                            .sync = true,
                                            .progress = progressed,
                                            .user = given};
    if (!status) {
        cli_progress_start(&given->progress, "converting", "tokens", info.tokens,
                           given->quiet ? CLI_PROGRESS_NONE : given->progress_mode);
        status = dataset_convert(dataset, &options, result, error);
        cli_progress_end(&given->progress);
    }
    free(tokens);
    stated_tokenizer_free(&stated);
    if (!status)
        values_left_out(program, dataset, "make them again for the new files if you need them");
    tokmap_dataset_close(dataset);
    return status;
}

static int convert_operands(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    static const char *const endings[] = {"bin", "tmx", "idx", "ds", "npy", NULL};
    struct convert_arguments *given = user;
    struct convert_result result = {0};
    struct tokmap_error error = {0};
    if (operand_count != 1)
        return cli_misused(command, "expected one dataset");
    if (!given->output)
        return cli_misused(command, "no output given; name it with -o PREFIX");
    if (cli_names_run(operands[0]))
        return cli_misused(command, "'%s' is a run file; name a dataset", operands[0]);
    if (given->width_given && given->width != 2 && given->width != 4)
        return cli_misused(command, "--width must be 2 or 4");
    if (given->width == 4 && given->to == TARGET_NANOGPT + 1)
        return cli_misused(command, "tokens of nanogpt have 2 bytes; leave out --width");
    int misused = tokenizer_arguments_check(command, &given->tokenizer);
    if (!misused)
        misused = output_prefix_make(command, given->output, endings, &given->prefix);
    if (misused)
        return misused;
    cli_signals_catch();
    const uint64_t start = os_clock_ns();
    const enum tokmap_status status = dataset_open_and_convert(given, operands[0], &result, &error);
    const double seconds = (double)(os_clock_ns() - start) * 1e-9;
    cli_signals_end(program, status ? "interrupted; the unfinished output has been removed" : NULL);
    if (!status) {
        losses_warn(given, &result);
        conversion_report(given, operands[0], &result, seconds);
    }
    free(given->prefix);
    return cli_finish(program, status ? command_failed(command, &error) : CLI_DONE);
}

int command_convert(int argc, char **argv)
{
    struct convert_arguments given = {.tokenizer = TOKENIZER_ARGUMENTS_INIT};
    const struct cli_option options[] = {
        {'o', "output", CLI_TEXT, &given.output, NULL, "PREFIX", "what the names of the output begin with", NULL},
        {0, "to", CLI_CHOICE, &given.to, NULL, "FORMAT",
         "what to write: a shard (tokmap, the default), or the files of another project",
         "tokmap|" FOREIGN_TARGET_NAMES},
        TOKENIZER_OPTIONS_STATED(given.tokenizer),
        {0, "width", CLI_NUMBER, &given.width, &given.width_given, "BYTES",
         "bytes of a token in the output, 2 or 4 (default: those of the dataset; nanogpt: 2); an id that does not fit "
         "is "
         "an error",
         NULL},
        {0, "drop-mask", CLI_FLAG, &given.drop_mask, NULL, NULL,
         "convert a dataset with a mask to a format that cannot have one", NULL},
        {0, "force", CLI_FLAG, &given.force, NULL, NULL, "replace the output if it exists", NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print the report as a JSON object", NULL},
        CLI_OPTION_PROGRESS(given.progress_mode),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print no progress and no report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[--to FORMAT] -o PREFIX [OPTION]... DATASET",
        .summary = "Copies a dataset into the token files of another project, or other projects' files into a shard. "
                   "Tokens and documents stay as they are. Other projects' files can also be used where they are: see "
                   "`tokmap index`.",
        .details = "DATASET may be any name of a dataset, such as data/web, s3://bucket/web, data/web#docs=0..10%, or "
                   "megatron:old/my_text_document. If PREFIX is the shard itself, its tokens are shared where the "
                   "format allows it.\n\n"
                   "Examples:\n"
                   "  tokmap convert --to megatron -o data/megatron data/web\n"
                   "  tokmap convert --to megatron -o data/web data/web\n"
                   "  tokmap convert -t gpt2/tokenizer.json -o data/old data/my_text_document\n"
                   "  tokmap convert --to llmc -o data/llmc raw:train.bin,width=2,eod=50256\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, convert_operands, &given);
}
