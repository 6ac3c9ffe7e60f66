/* command_pack.c - tokmap pack: the command line of pack/pack.h, its progress, and its closing report. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/shared/corpus_arguments.h"
#include "commands/shared/field_options.h"
#include "commands/shared/tokenizer_arguments.h"
#include "common/error.h"
#include "common/hash.h"
#include "pack/pack.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"

static const char program[] = "tokmap pack";

#define LISTED_MOST 1000 /* skipped files and records that --json lists */

struct listed {
    struct tokmap_error why;
    uint64_t bytes;
};

struct packing {
    const struct cli_command *command;
    const char *prefix;
    struct tokenizer_arguments asked;
    struct corpus_arguments corpus;
    bool force, dry_run, json, quiet;
    int shown; /* enum cli_progress_mode */
    uint64_t threads;
    struct tokenizer *tokenizer;
    struct cli_progress progress;
    struct listed *listed;
    uint64_t listed_count, skipped_count;
    double seconds;
};

/* ---- progress and report ---- */

static void skipped_report(void *user, const struct corpus_issue *issue, const struct tokmap_error *why)
{
    struct packing *packing = user;
    cli_progress_clear(&packing->progress);
    command_skipped(packing->command, why);
    packing->skipped_count++;
    if (!packing->json || packing->listed_count == LISTED_MOST)
        return;
    if (!packing->listed)
        packing->listed = malloc(LISTED_MOST * sizeof *packing->listed);
    if (packing->listed) {
        struct listed *listed = &packing->listed[packing->listed_count++];
        *listed = (struct listed){*why, issue->bytes};
        error_name_options(packing->command, &listed->why);
    }
}

static void progress_report(void *user, uint64_t stored_bytes)
{
    struct packing *packing = user;
    cli_progress_update(&packing->progress, stored_bytes);
}

static bool is_stopped(void *user)
{
    return os_signal_caught() != 0;
}

static void row(const char *name, uint64_t number, const char *remark)
{
    char text[32];
    printf("  %-24s %20s%s%s\n", name, cli_count(number, text), *remark ? "  " : "", remark);
}

static void row_if(const char *name, uint64_t number, const char *remark)
{
    if (number)
        row(name, number, remark);
}

static void report_print(const struct packing *packing, const struct pack_result *result)
{
    const struct corpus_counts *counts = &result->counts;
    char a[32], b[32], c[32], hex[33];
    hash128_hex(result->content, hex);
    if (packing->dry_run)
        printf("would pack %s of text in %s", cli_bytes(counts->text_bytes, a), cli_seconds(packing->seconds, b));
    else
        printf("packed %s of text into %s.bin and .tmx in %s", cli_bytes(counts->text_bytes, a), packing->prefix,
               cli_seconds(packing->seconds, b));
    printf(" (%s/s)\n",
           cli_bytes(packing->seconds > 0 ? (uint64_t)((double)counts->text_bytes / packing->seconds) : 0, c));
    row("files", counts->files, "");
    row_if("files skipped", counts->files_skipped, "entirely or in part");
    row("bytes as stored", counts->stored_bytes, "");
    row("input bytes", counts->stream_bytes, "after decompression, of which:");
    row("  document bytes", counts->document_bytes, "");
    row_if("  structure bytes", counts->structure_bytes, "JSON around the texts, line ends, and blank lines");
    row_if("  skipped bytes", counts->skipped_bytes, "");
    row("documents", counts->documents, "");
    row_if("  empty", counts->empty_documents, "");
    row_if("records skipped", counts->records_skipped, "");
    row_if("blank lines", counts->blank_lines, "");
    row_if("sequences replaced", counts->replaced, "invalid UTF-8, replaced by U+FFFD");
    row("text bytes", counts->text_bytes,
        counts->text_bytes == counts->document_bytes ? "" : "document bytes after decoding escapes and replacing");
    row("tokens", result->tokens, "");
    row_if("  that end a document", result->eod_tokens, "");
    row_if("  that begin a document", result->bos_tokens, "");
    if (!packing->dry_run)
        printf("  content id               %s\n", hex);
}

static void skipped_json(const struct packing *packing, struct cli_json *json)
{
    cli_json_array(json, "skipped");
    for (uint64_t i = 0; i < packing->listed_count; i++) {
        const struct listed *one = &packing->listed[i];
        cli_json_object(json, NULL);
        cli_json_bytes(json, "path", one->why.path, strlen(one->why.path));
        if (one->why.line)
            cli_json_number(json, "line", one->why.line);
        if (one->why.offset != TOKMAP_NO_OFFSET)
            cli_json_number(json, "offset", one->why.offset);
        cli_json_text(json, "status", tokmap_status_name(one->why.status));
        cli_json_bytes(json, "reason", one->why.message, strlen(one->why.message));
        cli_json_number(json, "bytes", one->bytes);
        cli_json_end(json);
    }
    cli_json_end(json);
    cli_json_number(json, "skipped_items", packing->skipped_count);
}

static void report_json(const struct packing *packing, const struct pack_result *result)
{
    const struct corpus_counts *counts = &result->counts;
    struct cli_json json;
    char hex[33];
    hash128_hex(result->content, hex);
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    if (packing->prefix)
        cli_json_bytes(&json, "output", packing->prefix, strlen(packing->prefix));
    cli_json_bool(&json, "dry_run", packing->dry_run);
    if (!packing->dry_run)
        cli_json_text(&json, "content", hex);
    cli_json_number(&json, "files", counts->files);
    cli_json_number(&json, "files_skipped", counts->files_skipped);
    cli_json_number(&json, "stored_bytes", counts->stored_bytes);
    cli_json_number(&json, "input_bytes", counts->stream_bytes);
    cli_json_number(&json, "document_bytes", counts->document_bytes);
    cli_json_number(&json, "structure_bytes", counts->structure_bytes);
    cli_json_number(&json, "skipped_bytes", counts->skipped_bytes);
    cli_json_number(&json, "documents", counts->documents);
    cli_json_number(&json, "empty_documents", counts->empty_documents);
    cli_json_number(&json, "records_skipped", counts->records_skipped);
    cli_json_number(&json, "blank_lines", counts->blank_lines);
    cli_json_number(&json, "sequences_replaced", counts->replaced);
    cli_json_number(&json, "text_bytes", counts->text_bytes);
    cli_json_number(&json, "tokens", result->tokens);
    cli_json_number(&json, "eod_tokens", result->eod_tokens);
    cli_json_number(&json, "bos_tokens", result->bos_tokens);
    cli_json_number(&json, "largest_id", result->largest_id);
    skipped_json(packing, &json);
    cli_json_real(&json, "seconds", packing->seconds);
    cli_json_end(&json);
}

/* ---- arguments ---- */

/* Refuses arguments that are missing or wrong. Returns 0, or prints a message and returns the exit status. */
static int arguments_check(const struct cli_command *command, struct packing *packing, const char **operands,
                           size_t *operand_count)
{
    if (!packing->prefix && !packing->dry_run)
        return cli_misused(command, "no output given; name it with -o PREFIX, or only check the inputs with --dry-run");
    if (tokenizer_arguments_check(command, &packing->asked))
        return CLI_MISUSED;
    if (!packing->threads || packing->threads > PACK_THREADS_MOST)
        return cli_misused(command, "--threads must be between 1 and %d", PACK_THREADS_MOST);
    return corpus_arguments_check(command, &packing->corpus, operands, operand_count);
}

/* Checks the output folder first, so that the message is about the folder and not about a file that cannot be
 * created in it. */
static enum tokmap_status folder_check(const char *prefix, struct tokmap_error *error)
{
    struct os_stat stat;
    char *folder = path_folder(prefix);
    if (!folder)
        return error_set_memory(error, "a path", strlen(prefix));
    const int system = os_stat(folder, &stat);
    enum tokmap_status status = TOKMAP_OK;
    if (system || stat.kind != OS_KIND_FOLDER)
        status = error_set(error, TOKMAP_ERROR_NOT_FOUND, folder, TOKMAP_NO_OFFSET,
                           system ? "the output folder does not exist; create it with 'mkdir -p'"
                                  : "the output folder is not a folder; choose another name");
    free(folder);
    return status;
}

/* ---- packing ---- */

static int inputs_pack(struct packing *packing, const struct pack_options *options, const char **operands,
                       size_t operand_count)
{
    struct pack_result result;
    struct tokmap_error error;
    const uint64_t started = os_clock_ns();
    enum tokmap_status status = options->dry_run ? TOKMAP_OK : folder_check(options->prefix, &error);
    if (!status) {
        const int shown = packing->quiet ? CLI_PROGRESS_NONE : packing->shown;
        cli_progress_start(&packing->progress, options->dry_run ? "reading" : "packing",
                           shown == CLI_PROGRESS_NONE ? 0 : corpus_size(operands, operand_count), shown);
        status = pack_run(options, operands, operand_count, &result, &error);
        cli_progress_end(&packing->progress);
    }
    packing->seconds = (double)(os_clock_ns() - started) * 1e-9;
    if (os_signals_release()) {
        if (status)
            cli_say(program, "interrupted; the unfinished output has been removed");
        os_signal_die(os_signal_caught());
    }
    if (status)
        return command_failed(packing->command, &error);
    if (packing->json)
        report_json(packing, &result);
    else if (!packing->quiet)
        report_print(packing, &result);
    return cli_finish(program, CLI_DONE);
}

static int pack(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct packing *packing = user;
    packing->command = command;
    int status = arguments_check(command, packing, operands, &operand_count);
    if (!status)
        status = tokenizer_arguments_open(command, &packing->asked, true, &packing->tokenizer);
    if (status)
        return status;
    const bool is_bytes = !strcmp(packing->asked.spec, "bytes"); /* the built-in tokenizer, which has no file */
    struct pack_options options = {.prefix = packing->prefix,
                                   .dry_run = packing->dry_run,
                                   .replace = packing->force,
                                   .sync = true,
                                   .threads = (uint32_t)packing->threads,
                                   .tokenizer = packing->tokenizer,
                                   .tokenizer_options = &packing->asked.options,
                                   .tokenizer_path = is_bytes ? NULL : packing->asked.spec,
                                   .skipped = skipped_report,
                                   .progress = progress_report,
                                   .stop = is_stopped,
                                   .user = packing};
    corpus_arguments_apply(&packing->corpus, &options.corpus);
    status = tokenizer_arguments_eod_bos(command, &packing->asked, packing->tokenizer, true, &options.eod_id,
                                         &options.bos_id);
    if (!status) {
        cli_signals_catch();
        status = inputs_pack(packing, &options, operands, operand_count);
    }
    tokenizer_close(packing->tokenizer);
    free(packing->listed);
    return status;
}

int command_pack(int argc, char **argv)
{
    struct packing packing = {.asked = TOKENIZER_ARGUMENTS_INIT, .corpus = CORPUS_ARGUMENTS_INIT};
    packing.threads = os_processors() < PACK_THREADS_MOST ? os_processors() : PACK_THREADS_MOST;
    const struct cli_option options[] = {
        CLI_HEADING("Output"),
        {'o', "output", CLI_TEXT, &packing.prefix, NULL, "PREFIX", "write PREFIX.bin and PREFIX.tmx", NULL},
        {0, "force", CLI_FLAG, &packing.force, NULL, NULL, "replace the output if it exists", NULL},
        {0, "dry-run", CLI_FLAG, &packing.dry_run, NULL, NULL, "read, check, and count everything, but write nothing",
         NULL},
        CLI_HEADING("Tokenizer"),
        TOKENIZER_OPTIONS(packing.asked),
        TOKENIZER_OPTION_SPECIAL(packing.asked),
        TOKENIZER_OPTIONS_EOD_BOS(packing.asked,
                                  "end each document with this token (default if the tokenizer names one)",
                                  "end no document with a token"),
        CLI_HEADING("Inputs"),
        CORPUS_OPTIONS_INPUT(packing.corpus),
        CORPUS_OPTION_ON_ERROR(packing.corpus),
        CORPUS_OPTIONS_TEXTS(packing.corpus),
        CLI_HEADING("General"),
        {'j', "threads", CLI_NUMBER, &packing.threads, NULL, "N",
         "number of threads (default: one per processor); the output is the same for every N", NULL},
        {0, "json", CLI_FLAG, &packing.json, NULL, NULL, "print the closing report as JSON", NULL},
        CLI_OPTION_PROGRESS(packing.shown),
        {'q', "quiet", CLI_FLAG, &packing.quiet, NULL, NULL, "print no progress and no closing report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "-o PREFIX [OPTION]... [INPUT]...",
        .summary = "Turns text into a shard of token ids: PREFIX.bin and its index PREFIX.tmx.",
        .details =
            "An INPUT is a file, a folder (all regular files below it), a pattern, or '-' for standard input. It "
            "contains text, one document per file, or JSONL, one document per line; plain, gzip, or zstd.\n\n"
            "Examples:\n"
            "  tokmap pack -o data/books books/\n"
            "  tokmap pack -o data/web -t gpt2/tokenizer.json 'crawl/*.jsonl.zst'\n"
            "  zcat mail.gz | tokmap pack -o data/mail --invalid-utf8 replace -\n",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands = CLI_FILES,
    };
    return cli_run(&command, argc, argv, pack, &packing);
}
