/* SPDX-License-Identifier: MIT */
/* command_export.c - tokmap export: the command line of export/text_export.h, its output file, and its report. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "codec/file_type.h"
#include "commands/commands.h"
#include "commands/data/output_file.h"
#include "commands/options/dataset_tokenizer.h"
#include "commands/options/error_options.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "corpus/name_kind.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text_export.h"

static const char program[] = "tokmap export";

struct exporting {
    const struct cli_command *command;
    struct tokenizer_arguments asked;
    const char *output; /* "-": standard output */
    struct cli_range documents;
    bool jsonl, text, origin, check, force, json, quiet;
    int invalid; /* enum text_export_invalid */
    int progress_mode;
    uint64_t threads;
    struct cli_progress progress;
};

static bool to_stdout(const struct exporting *exporting)
{
    return strcmp(exporting->output, "-") == 0;
}

/* ---- report ---- */

static void export_report(const struct exporting *exporting, const char *name, const struct text_export_result *result,
                          double seconds)
{
    struct cli_report report;
    cli_report_begin(&report, exporting->json, NULL);
    cli_member(&report, "dataset", cli_text(name));
    cli_member(&report, "output", cli_text(exporting->output));
    cli_member(&report, "documents", cli_number(result->documents));
    cli_member(&report, "documents_replaced", cli_number(result->replaced));
    cli_member(&report, "documents_skipped", cli_number(result->skipped));
    cli_member(&report, "tokens", cli_number(result->tokens));
    cli_member(&report, "text_bytes", cli_number(result->text_bytes));
    cli_member(&report, "output_bytes", cli_number(result->output_bytes));
    cli_member(&report, "seconds", cli_real(seconds));
    cli_report_end(&report);
    if (exporting->json || exporting->quiet)
        return;
    /* Standard output has the documents if they go there. */
    cli_say(program, "exported %s, %s of text, to %s in %s (%s/s)", CLI_COUNTED(result->documents, "document"),
            CLI_BYTES(result->text_bytes), to_stdout(exporting) ? "standard output" : exporting->output,
            CLI_SECONDS(seconds), CLI_BYTES(seconds > 0 ? (uint64_t)((double)result->text_bytes / seconds) : 0));
    if (result->replaced)
        cli_say(program, "%s of them not valid UTF-8: U+FFFD was written for the invalid bytes",
                CLI_COUNT(result->replaced));
    if (result->skipped)
        cli_say(program, "%s not valid UTF-8 and left out", CLI_COUNTED(result->skipped, "more document"));
}

/* ---- export ---- */

static void progress_report(void *user, uint64_t tokens)
{
    struct exporting *exporting = user;
    cli_progress_update(&exporting->progress, tokens);
}

static enum tokmap_status range_set(const struct exporting *exporting, const char *name,
                                    const struct tokmap_dataset *dataset, struct text_export_options *options,
                                    uint64_t *tokens, struct tokmap_error *error)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_document first = {0}, last = {0};
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status)
        return error_set(error, status, name, TOKMAP_NO_OFFSET, "%s", tokmap_status_text(status));
    options->first = exporting->documents.given ? exporting->documents.first : 0;
    options->end = exporting->documents.given ? exporting->documents.end : info.documents;
    if (options->end > info.documents)
        return error_set(error, TOKMAP_ERROR_RANGE, name, TOKMAP_NO_OFFSET,
                         "documents %" PRIu64 "..%" PRIu64 " reach past the end; the dataset has %s, numbered from 0",
                         options->first, options->end, CLI_COUNTED(info.documents, "document"));
    *tokens = 0;
    if (info.tokens && !info.documents) /* says why, so that no text is left out without a word */
        return tokmap_dataset_document(dataset, 0, &first, error);
    if (options->first == options->end)
        return TOKMAP_OK;
    status = tokmap_dataset_document(dataset, options->first, &first, error);
    if (!status)
        status = tokmap_dataset_document(dataset, options->end - 1, &last, error);
    *tokens = last.first_token + last.tokens - first.first_token;
    return status;
}

/* With --force, a wrong name could replace the dataset by its own text. */
static enum tokmap_status output_check(const struct exporting *exporting, const char *name,
                                       const struct tokmap_dataset *dataset, struct tokmap_error *error)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct os_stat output;
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status || os_stat(exporting->output, &output))
        return status;
    bool own = output_is_file(name, &output);
    for (uint64_t number = 0; number < info.shards && !own; number++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        status = tokmap_dataset_shard(dataset, number, &shard, error);
        if (status)
            return status;
        own = output_is_file(shard.index_path, &output) || output_is_file(shard.tokens_path, &output);
    }
    if (!own)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_ARGUMENT, exporting->output, TOKMAP_NO_OFFSET,
                     "this output is a file of the dataset that is exported; choose another name");
}

static enum tokmap_status documents_export(struct exporting *exporting, const char *name,
                                           const struct tokmap_dataset *dataset, const struct tokenizer *tokenizer,
                                           struct text_export_result *result, struct tokmap_error *error)
{
    struct output_file file = {.fd = -1};
    struct text_export_options options = {.dataset = dataset,
                                          .tokenizer = tokenizer,
                                          .plain = exporting->text,
                                          .origin = exporting->origin,
                                          .check = exporting->check,
                                          .invalid = (enum text_export_invalid)exporting->invalid,
                                          .threads = (uint32_t)exporting->threads,
                                          .fd = 1,
                                          .stream = true,
                                          .progress = progress_report,
                                          .stop = os_is_stopped,
                                          .user = exporting};
    uint64_t tokens = 0;
    enum tokmap_status status = range_set(exporting, name, dataset, &options, &tokens, error);
    if (!status && !to_stdout(exporting))
        status = output_check(exporting, name, dataset, error);
    if (!status && !to_stdout(exporting)) {
        status = output_file_open(&file, exporting->output, exporting->force, error);
        options.fd = file.fd;
        options.stream = false;
    }
    if (status)
        return status;
    cli_progress_start(&exporting->progress, "exporting", tokens,
                       exporting->quiet ? CLI_PROGRESS_NONE : exporting->progress_mode);
    exporting->progress.unit = "tokens";
    status = text_export(&options, result, error);
    cli_progress_end(&exporting->progress);
    if (status && to_stdout(exporting) && error->system == EPIPE)
        os_pipe_broken();
    if (status && error->status == TOKMAP_ERROR_IO && !error->path[0])
        (void)error_set_system(error, error->system, to_stdout(exporting) ? NULL : file.partial, TOKMAP_NO_OFFSET,
                               to_stdout(exporting) ? "standard output cannot be written"
                                                    : "the output cannot be written");
    if (!status && !to_stdout(exporting))
        return output_file_commit(&file, error);
    output_file_abort(&file);
    return status;
}

static int export_name(struct exporting *exporting, const char *name)
{
    const struct run_arguments none = RUN_ARGUMENTS_INIT;
    struct target target = {0};
    struct tokenizer *tokenizer = NULL;
    struct text_export_result result = {0};
    struct tokmap_error error = {0};
    bool assumed;
    if (cli_names_run(name))
        return cli_misused(exporting->command,
                           "'%s' is a run file; name the dataset that its line 'source' names, or print the rows of a "
                           "step with 'tokmap show'",
                           name);
    int exit_status = target_open(&target, exporting->command, name, &none, false);
    if (exit_status >= 0)
        return exit_status;
    const uint64_t started = os_clock_ns();
    enum tokmap_status status = dataset_tokenizer_open(&tokenizer, target.dataset, &exporting->asked, &assumed, &error);
    if (!status) {
        if (!exporting->quiet)
            dataset_tokenizer_note(program, tokenizer);
        if (assumed && !exporting->quiet)
            dataset_tokenizer_assumed(program, exporting->asked.spec);
        cli_signals_catch();
        status = documents_export(exporting, name, target.dataset, tokenizer, &result, &error);
    }
    const double seconds = (double)(os_clock_ns() - started) * 1e-9;
    tokenizer_close(tokenizer);
    target_close(&target);
    if (os_signals_release()) {
        if (status)
            cli_say(program,
                    to_stdout(exporting) ? "interrupted" : "interrupted; the unfinished output has been removed");
        os_signal_die(os_signal_caught());
    }
    if (status)
        return command_failed(exporting->command, &error);
    export_report(exporting, name, &result, seconds);
    return cli_finish(program, CLI_DONE);
}

static int export_operands(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct exporting *exporting = user;
    exporting->command = command;
    if (operand_count != 1)
        return cli_misused(command, "expected one dataset");
    if (exporting->jsonl && exporting->text)
        return cli_misused(command, "--jsonl and --text exclude each other");
    if (exporting->origin && exporting->text)
        return cli_misused(command, "--origin is for JSONL and cannot be used with --text");
    if (file_type_packed_ending(exporting->output, strlen(exporting->output)) ||
        name_kind_of(exporting->output) == NAME_PARQUET)
        return cli_misused(command,
                           "-o %s has the name of another format than %s, which is written; to compress it, pipe "
                           "standard output into a program that does, such as zstd",
                           exporting->output, exporting->text ? "text" : "JSONL");
    if (exporting->json && to_stdout(exporting))
        return cli_misused(command, "--json prints the report on standard output, which has the documents; write them "
                                    "to a file with -o FILE");
    if (!exporting->threads || exporting->threads > TEXT_EXPORT_THREADS_MOST)
        return cli_misused(command, "--threads must be between 1 and %d", TEXT_EXPORT_THREADS_MOST);
    if (tokenizer_arguments_check(command, &exporting->asked))
        return CLI_MISUSED;
    return export_name(exporting, operands[0]);
}

int command_export(int argc, char **argv)
{
    struct exporting exporting = {.asked = TOKENIZER_ARGUMENTS_INIT, .output = "-"};
    exporting.threads = os_processors() < TEXT_EXPORT_THREADS_MOST ? os_processors() : TEXT_EXPORT_THREADS_MOST;
    const struct cli_option options[] = {
        CLI_HEADING("What is written"),
        {'o', "output", CLI_TEXT, &exporting.output, NULL, "FILE", "write to FILE; '-' (default): standard output",
         NULL},
        {0, "force", CLI_FLAG, &exporting.force, NULL, NULL, "replace the output if it exists", NULL},
        {0, "jsonl", CLI_FLAG, &exporting.jsonl, NULL, NULL, "a JSON object per document: {\"text\": ...} (default)",
         NULL},
        {0, "text", CLI_FLAG, &exporting.text, NULL, NULL, "the texts as they are, each followed by a newline", NULL},
        {0, "documents", CLI_RANGE, &exporting.documents, NULL, "A..B", "only documents A up to, not including, B",
         NULL},
        {0, "origin", CLI_FLAG, &exporting.origin, NULL, NULL,
         "add the members path and record: the input file of each document, and the record in it, from 0", NULL},
        {0, "invalid-utf8", CLI_CHOICE, &exporting.invalid, NULL, "ACTION",
         "a document that is not valid UTF-8 is an error (error, the default), is written with U+FFFD (replace), or is "
         "left out (skip)",
         "error|replace|skip"},
        {0, "check", CLI_FLAG, &exporting.check, NULL, NULL,
         "encode each text again, and stop if it does not give the same tokens", NULL},
        CLI_HEADING("Tokenizer"),
        TOKENIZER_OPTIONS_RECORDED(exporting.asked),
        CLI_HEADING("General"),
        {'j', "threads", CLI_NUMBER, &exporting.threads, NULL, "N",
         "number of threads (default: one per processor); the output is the same for every N", NULL},
        {0, "json", CLI_FLAG, &exporting.json, NULL, NULL, "print the report as a JSON object; needs -o FILE", NULL},
        CLI_OPTION_PROGRESS(exporting.progress_mode),
        {'q', "quiet", CLI_FLAG, &exporting.quiet, NULL, NULL, "print no progress and no report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[-o FILE] [OPTION]... DATASET",
        .summary = "Turns a dataset back into text: one JSON object per document, without the tokens that end or begin "
                   "documents.",
        .details = "`tokmap pack` with the same tokenizer and options makes the same tokens of the result.\n\n"
                   "Examples:\n"
                   "  tokmap export --jsonl -o web.jsonl data/web\n"
                   "  tokmap export --documents 0..10 data/web\n"
                   "  tokmap export --origin data/web | zstd > web.jsonl.zst\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, export_operands, &exporting);
}
