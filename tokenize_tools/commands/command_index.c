/* SPDX-License-Identifier: MIT */
/*
 * command_index.c - tokmap index: reads other projects' token files once and writes the .tmx of each.
 *
 * OLMo and Dolma store where documents end in a .csv.gz beside the tokens. The library does not read gzip, so
 * data/olmo_documents.h does, and this file hands the ends to the library one after another.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/whole_file.h"
#include "commands.h"
#include "commands/data/olmo_documents.h"
#include "commands/data/output_file.h"
#include "commands/data/values_import.h"
#include "commands/options/target.h"
#include "commands/options/tokenizer_arguments.h"
#include "common/error.h"
#include "format/foreign/foreign_name.h"
#include "format/shard_file.h"
#include "format/shard_mask.h"
#include "platform/os.h"
#include "platform/process.h"

static const char program[] = "tokmap index";

#define THREADS_MOST 1024

struct index_arguments {
    uint64_t threads;
    bool threads_given, force, json, quiet;
    int progress_mode;      /* enum cli_progress_mode */
    const char *mask;       /* of --mask; NULL: an index is written */
    struct cli_list values; /* of --values: one, or none */
    struct tokenizer_arguments tokenizer;
    struct stated_tokenizer stated;
    bool olmo;
    struct olmo_documents csv;
    struct cli_progress progress;
};

static enum tokmap_status ends_read(void *user, const char *tokens_path, uint64_t tokens, uint64_t *ends,
                                    uint64_t capacity, uint64_t *used, struct tokmap_error *error)
{
    struct index_arguments *given = user;
    *used = 0;
    return given->olmo ? olmo_documents_read(&given->csv, program, tokens_path, tokens, ends, capacity, used, error)
                       : TOKMAP_ERROR_NOT_FOUND;
}

/* ---- the command ---- */

static int progressed(void *user, uint64_t done, uint64_t total)
{
    struct index_arguments *given = user;
    given->progress.total = total;
    cli_progress_update(&given->progress, done);
    return os_signal_caught() != 0;
}

/* Opens the dataset through its new indexes, to print its content id. */
static enum tokmap_status content_find(const char *name, struct tokmap_dataset_info *info, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    enum tokmap_status status = local_dataset_open(&dataset, name, error);
    if (!status) {
        dataset_warn(program, dataset, name);
        status = tokmap_dataset_info(dataset, info);
        info->warning = info->kind = NULL;
    }
    tokmap_dataset_close(dataset);
    return status;
}

static void report(const struct index_arguments *given, const char *name, const struct tokmap_index_result *result,
                   const struct tokmap_dataset_info *info, double seconds)
{
    struct cli_report report;
    cli_report_begin(&report, given->json, NULL);
    cli_member(&report, "dataset", cli_text(name));
    cli_numbers(&report, "files|tokens|documents|largest_id", result->files, result->tokens, result->documents,
                info->largest_id);
    cli_member_text_if(&report, "tokenizer", given->stated.vocabulary ? given->stated.name : NULL);
    cli_member(&report, "content", cli_text(ID_HEX(info->content)));
    cli_member(&report, "bytes", cli_number(result->bytes));
    cli_member(&report, "seconds", cli_real(seconds));
    cli_report_end(&report);
    if (given->json || given->quiet)
        return;
    cli_print("%s: indexed %s and %s in %s, largest id %s; content id %s\n", name, CLI_COUNTED(result->tokens, "token"),
              CLI_COUNTED(result->documents, "document"), CLI_COUNTED(result->files, "file"),
              CLI_COUNT(info->largest_id), ID_HEX(info->content));
    if (seconds > 0)
        cli_say(program, "read %s in %s, %s/s", CLI_BYTES(result->bytes), CLI_SECONDS(seconds),
                CLI_BYTES((uint64_t)((double)result->bytes / seconds)));
}

/* Finds the index of the one shard that a name means. */
static enum tokmap_status index_find(const char *name, char **index_path, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    *index_path = NULL;
    enum tokmap_status status = local_dataset_open(&dataset, name, error);
    if (!status)
        status = tokmap_dataset_info(dataset, &info);
    if (!status && info.shards != 1)
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                           "the dataset has %" PRIu64 " shards, but a mask belongs to one; name each shard by itself",
                           info.shards);
    if (!status)
        status = tokmap_dataset_shard(dataset, 0, &shard, error);
    if (!status && !shard_file_is(shard.index_path, SHARD_INDEX))
        status = error_set(error, TOKMAP_ERROR_NOT_FOUND, name, TOKMAP_NO_OFFSET,
                           "these files have no index that could describe a mask; run `tokmap index` on them first");
    if (!status && !(*index_path = strdup(shard.index_path)))
        status = error_set_memory(error, "the path of an index", strlen(shard.index_path) + 1);
    tokmap_dataset_close(dataset);
    return status;
}

static int mask_add(const struct cli_command *command, const struct index_arguments *given, const char *name)
{
    struct tokmap_error error = {0};
    struct shard_mask_result result = {0, 0};
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct cli_report report;
    char *index_path;
    bool stated = false;
    enum tokmap_status status = index_find(name, &index_path, &error);
    if (!status)
        status = manifest_file_clear(name, &stated, &error);
    if (!status)
        status = shard_mask_add(index_path, given->mask, given->force, &result, &error);
    if (stated) { /* also after a failure */
        const enum tokmap_status again = manifest_file_state(name, status ? NULL : &error);
        status = status ? status : again;
    }
    free(index_path);
    if (!status)
        status = content_find(name, &info, &error);
    if (status)
        return cli_finish(program, command_failed(command, &error));
    cli_report_begin(&report, given->json, NULL);
    cli_member(&report, "dataset", cli_text(name));
    cli_numbers(&report, "tokens|targets", result.tokens, result.counted);
    cli_member(&report, "content", cli_text(ID_HEX(info.content)));
    cli_report_end(&report);
    if (!given->json && !given->quiet)
        cli_print("%s: masked %s, of which %s count as targets; content id %s\n", name,
                  CLI_COUNTED(result.tokens, "token"), CLI_COUNT(result.counted), ID_HEX(info.content));
    return cli_finish(program, CLI_DONE);
}

static int values_add(const struct cli_command *command, const struct index_arguments *given, const char *name)
{
    struct tokmap_error error = {0};
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    struct values_array array = {.value_bytes = 0};
    struct cli_report report;
    enum tokmap_status status = local_dataset_open(&dataset, name, &error);
    if (!status)
        status = values_import(dataset, given->values.values[0], given->force, &array, &result, &error);
    tokmap_dataset_close(dataset);
    if (status)
        return cli_finish(program, command_failed(command, &error));
    cli_report_begin(&report, given->json, NULL);
    cli_member(&report, "dataset", cli_text(name));
    cli_member(&report, "values", cli_text(array.name));
    cli_numbers(&report, "tokens|files", result.tokens, result.files);
    cli_report_end(&report);
    if (!given->json && !given->quiet)
        cli_print("%s: values '%s', %s, of %s in %s\n", name, array.name, VALUES_TYPE(&array),
                  CLI_COUNTED(result.tokens, "token"), CLI_COUNTED(result.files, "file"));
    return cli_finish(program, CLI_DONE);
}

/* Writes a manifest again, with what the indexes of its shards say. */
static int manifest_state(const struct cli_command *command, const struct index_arguments *given, const char *name)
{
    struct tokmap_error error = {0};
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct cli_report report;
    enum tokmap_status status = manifest_file_state(name, &error);
    if (!status)
        status = content_find(name, &info, &error);
    if (status)
        return cli_finish(program, command_failed(command, &error));
    cli_report_begin(&report, given->json, NULL);
    cli_member(&report, "dataset", cli_text(name));
    cli_numbers(&report, "shards|tokens|documents", info.shards, info.tokens, info.documents);
    cli_member(&report, "content", cli_text(ID_HEX(info.content)));
    cli_report_end(&report);
    if (!given->json && !given->quiet)
        cli_print("%s: the manifest states %s with %s in %s; content id %s\n", name, CLI_COUNTED(info.shards, "shard"),
                  CLI_COUNTED(info.tokens, "token"), CLI_COUNTED(info.documents, "document"), ID_HEX(info.content));
    return cli_finish(program, CLI_DONE);
}

static int index_operands(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct index_arguments *given = user;
    struct tokmap_error error = {0};
    struct foreign_name parsed;
    if (operand_count != 1)
        return cli_misused(command, "expected one name of other projects' files, [KIND:]PATH[,WORD=VALUE]...");
    if (given->threads_given && (!given->threads || given->threads > THREADS_MOST))
        return cli_misused(command, "--threads must be between 1 and %d", THREADS_MOST);
    const int misused = tokenizer_arguments_check(command, &given->tokenizer);
    if (misused)
        return misused;
    if (given->values.count > 1)
        return cli_misused(command, "--values takes one file; run the command for each of them");
    if (!!given->mask + !!given->values.count + given->tokenizer.spec_given > 1)
        return cli_misused(command, given->values.count ? "--values excludes --mask and --tokenizer"
                                                        : "--mask and --tokenizer exclude each other");
    const char *name = operands[0];
    if (given->values.count)
        return values_add(command, given, name);
    if (given->mask)
        return mask_add(command, given, name);
    if (!given->tokenizer.spec_given && cli_is_manifest(name))
        return manifest_state(command, given, name);
    if (stated_tokenizer_open(&given->stated, &given->tokenizer, NULL, &error))
        return cli_finish(program, command_failed(command, &error));
    given->olmo = !foreign_name_parse(&parsed, name, NULL) && parsed.kind == FOREIGN_OLMO;
    struct tokmap_index_options options = TOKMAP_INDEX_OPTIONS_INIT;
    options.threads = (uint32_t)given->threads;
    options.replace = given->force;
    options.progress = progressed;
    options.ends = ends_read;
    options.user = given;
    options.tokenizer = given->stated.vocabulary ? given->stated.fingerprint : NULL;
    options.vocabulary = given->stated.vocabulary;
    options.tokenizer_about = given->stated.about;
    struct tokmap_index_result result = TOKMAP_INDEX_RESULT_INIT;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    cli_signals_catch();
    cli_progress_start(&given->progress, "indexing", NULL, 0, given->quiet ? CLI_PROGRESS_NONE : given->progress_mode);
    const uint64_t start = os_clock_ns();
    enum tokmap_status status = tokmap_dataset_index(name, &options, &result, &error);
    const double seconds = (double)(os_clock_ns() - start) * 1e-9;
    cli_progress_end(&given->progress);
    cli_signals_end(program, NULL);
    olmo_documents_free(&given->csv);
    if (!status && (status = content_find(name, &info, &error)))
        cli_warn(program, "the indexes are written, but the dataset cannot be opened to report its content id");
    if (!status)
        report(given, name, &result, &info, seconds);
    stated_tokenizer_free(&given->stated);
    return cli_finish(program, status ? command_failed(command, &error) : CLI_DONE);
}

int command_index(int argc, char **argv)
{
    struct index_arguments given = {.tokenizer = TOKENIZER_ARGUMENTS_INIT};
    const struct cli_option options[] = {
        TOKENIZER_OPTIONS_STATED(given.tokenizer),
        {0, "mask", CLI_TEXT, &given.mask, NULL, "FILE",
         "instead, give an existing shard a mask: FILE has a byte (0 or 1) or a bit for each token", NULL},
        {0, "values", CLI_LIST, &given.values, NULL, "WHAT=FILE",
         "instead, write values beside existing shards: FILE is a .npy file whose first dimension is the tokens, or a "
         "raw file, as in weights:f32=FILE",
         NULL},
        {0, "force", CLI_FLAG, &given.force, NULL, NULL, "write an index, a mask, or values that exist again", NULL},
        {'j', "threads", CLI_NUMBER, &given.threads, &given.threads_given, "N",
         "number of threads that read (default: one per processor)", NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print the report as a JSON object", NULL},
        CLI_OPTION_PROGRESS(given.progress_mode),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print no report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[KIND:]PATH[,WORD=VALUE]... [OPTION]...\n"
                 "       tokmap index --mask FILE SHARD [OPTION]...\n"
                 "       tokmap index --values WHAT=FILE DATASET [OPTION]...\n"
                 "       tokmap index MANIFEST [OPTION]...",
        .summary = "Reads token files of other projects once and writes an index, .tmx, beside each. The files do not "
                   "change. With their indexes, they have numbered documents, checksums, and a full identity, like "
                   "shards of `tokmap pack`.",
        .details = "KIND is megatron, llmc, npy, datatrove, olmo, or raw; files of Megatron, llm.c, and NumPy are "
                   "recognized without it. PATH may be a pattern. Words: width, offset, eod, bos, vocab.\n\n"
                   "With --mask, the tokens that FILE marks with 0 are not trained on as targets.\n\n"
                   "With --values, each token has numbers of its own, such as a weight, in NAME.WHAT.values.\n\n"
                   "A MANIFEST is written again, with the sizes and content ids of its shards: the dataset then opens "
                   "from the manifest alone.\n\n"
                   "Examples:\n"
                   "  tokmap index -t gpt2/tokenizer.json data/my_text_document\n"
                   "  tokmap index --mask chat.mask data/chat\n"
                   "  tokmap index --values weights:f32=w.f32 data/chat\n"
                   "  tokmap index data/all\n"
                   "  tokmap index 'llmc:fineweb/*_train_*.bin'\n"
                   "  tokmap index raw:train.bin,width=2,eod=50256\n"
                   "  tokmap index 'olmo:data/part-*.npy,width=4,eod=100257'\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, index_operands, &given);
}
