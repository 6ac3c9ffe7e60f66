/* SPDX-License-Identifier: MIT */
/* command_train_tokenizer.c - tokmap train-tokenizer: the command line of train/train_corpus.h, its progress, and its
 * closing report. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/output_file.h"
#include "commands/options/corpus_arguments.h"
#include "commands/report/skip_report.h"
#include "common/error.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"
#include "text/utf8.h"
#include "train/train_corpus.h"

static const char program[] = "tokmap train-tokenizer";

#define SPECIALS_MOST 10000

struct training_command {
    const struct cli_command *command;
    const char *output; /* as it was typed */
    char *prefix;
    const char *pattern, *special_names;
    struct corpus_arguments corpus;
    struct input_warnings warnings;
    struct skip_report skips;
    bool force, json, quiet;
    int shown; /* enum cli_progress_mode; NONE with --quiet */
    uint64_t vocabulary, min_frequency, threads, memory;
    struct train_text *specials;
    uint32_t special_count;
    struct cli_progress progress;
    struct input_size size;
    enum train_stage stage;
    double seconds;
};

/* ---- progress and report ---- */

static void skipped_report(void *user, const struct corpus_issue *issue, const struct tokmap_error *why)
{
    struct training_command *training = user;
    skip_report_add(&training->skips, issue, why);
}

static void progress_report(void *user, enum train_stage stage, uint64_t done)
{
    struct training_command *training = user;
    if (stage != training->stage) {
        cli_progress_end(&training->progress);
        cli_progress_start(&training->progress, "merging", "tokens", training->vocabulary - training->special_count,
                           training->shown);
        training->stage = stage;
    }
    if (stage == TRAIN_READING)
        training->progress.total = input_size_update(&training->size);
    cli_progress_update(&training->progress, done);
}

static double bytes_each(const struct train_corpus_result *result)
{
    return result->trained_tokens ? (double)result->totals.text / (double)result->trained_tokens : 0;
}

static const char standard[] = "tokenizer";

/* Prints a path for -t: the folder, if the file in it has the name that a folder stands for. */
static void next_print(const struct training_command *training)
{
    char *path = NULL;
    const size_t folder = path_folder_bytes(training->prefix);
    if (folder && !strcmp(training->prefix + folder, standard))
        path = strndup(training->prefix, folder);
    else
        path = path_ended(training->prefix, ".json");
    if (!path)
        cli_output_lost();
    char *quoted = path ? cli_shell_quote(path) : NULL;
    if (quoted)
        printf("\nnext:\n  tokmap tokenizer %s\n  tokmap pack -t %s%s -o PREFIX INPUT...\n", quoted, quoted,
               training->special_count ? "" : " --no-eod");
    free(quoted);
    free(path);
}

static void training_report(const struct training_command *training, const struct train_corpus_result *result)
{
    struct cli_report report;
    char remark[64];
    const uint64_t total = result->tokens + (uint64_t)training->special_count;
    cli_report_begin(&report, training->json, NULL);
    report.label_width = 24;
    if (!training->json)
        cli_print("trained on %s of text in %s: wrote %s.json, %s%s\n", CLI_BYTES(result->counts.text_bytes),
                  CLI_SECONDS(training->seconds), training->prefix,
                  training->special_count ? ".tiktoken, .specials.json" : ".tiktoken",
                  strcmp(path_name(training->prefix), standard) != 0 ? "" : ", _config.json");
    cli_member(&report, "output", cli_text(training->prefix));
    cli_member(&report, "model", cli_text("bpe"));
    cli_member(&report, "pattern", cli_text(training->pattern));
    cli_line(&report, "files", "files", result->counts.files, "");
    cli_numbers(&report, "files_skipped|records_skipped", result->counts.files_skipped, result->counts.records_skipped);
    cli_line(&report, "documents", "documents", result->counts.documents, "");
    cli_line(&report, "text_bytes", "text bytes", result->counts.text_bytes, "");
    cli_line(&report, "pieces", "pieces", result->totals.pieces, "");
    cli_line(&report, "different_pieces", "  distinct", result->totals.distinct, "with two bytes or more");
    cli_line(&report, "vocabulary", "vocabulary", total,
             total == training->vocabulary ? "" : "fewer than requested: no pair of tokens is left to merge");
    cli_line(&report, "merges", "  merges", result->tokens - (uint64_t)256, "");
    cli_line(&report, NULL, training->special_count ? "  special tokens" : NULL, training->special_count, "");
    cli_report_array(&report, "special_tokens");
    for (uint32_t i = 0; i < training->special_count; i++)
        cli_member(&report, NULL,
                   cli_bytes_text((const char *)training->specials[i].bytes, (size_t)training->specials[i].count));
    cli_report_close(&report);
    (void)snprintf(remark, sizeof remark, "%.2f bytes each", bytes_each(result));
    cli_line(&report, "tokens", "tokens of this text", result->trained_tokens, remark);
    cli_member(&report, "bytes_per_token", cli_real(bytes_each(result)));
    if (!training->json)
        printf("  counting took %s, merging %s\n", CLI_SECONDS(result->counting_seconds),
               CLI_SECONDS(result->learning_seconds));
    skip_report_to(&training->skips, &result->counts, &report);
    cli_member(&report, "counting_seconds", cli_real(result->counting_seconds));
    cli_member(&report, "merging_seconds", cli_real(result->learning_seconds));
    cli_member(&report, "seconds", cli_real(training->seconds));
    cli_report_end(&report);
    if (!training->json)
        next_print(training);
}

/* ---- arguments ---- */

/* Splits "A,B,C" into texts in that order. Returns 0, or prints a message and returns the exit status. */
static int specials_split(const struct cli_command *command, struct training_command *training)
{
    const char *at = training->special_names;
    struct tokmap_error error;
    if (!at)
        return 0;
    training->specials = calloc(SPECIALS_MOST, sizeof *training->specials);
    if (!training->specials) {
        (void)error_set_memory(&error, "the special tokens", SPECIALS_MOST * sizeof *training->specials);
        return cli_failed(program, &error);
    }
    for (;; at++) {
        const size_t bytes = strcspn(at, ",");
        if (!bytes)
            return cli_misused(command, "--special-tokens contains an empty name; write NAME,NAME,...");
        if (training->special_count == SPECIALS_MOST)
            return cli_misused(command, "--special-tokens accepts at most %d names", SPECIALS_MOST);
        if (utf8_valid_prefix(at, bytes) != bytes)
            return cli_misused(command, "--special-tokens contains a name that is not valid UTF-8");
        const struct train_text text = {(const uint8_t *)at, bytes};
        for (uint32_t i = 0; i < training->special_count; i++)
            if (training->specials[i].count == bytes && !memcmp(training->specials[i].bytes, at, bytes))
                return cli_misused(command, "--special-tokens names '%.*s' twice", (int)bytes, at);
        uint8_t *spelled = malloc(bytes);
        uint64_t count = 0;
        const bool single = spelled && train_decode_spelling(&text, spelled, &count) && count == 1;
        free(spelled);
        if (single)
            return cli_misused(command,
                               "--special-tokens: '%.*s' is how a tokenizer.json writes a single byte; choose a "
                               "longer name",
                               (int)bytes, at);
        training->specials[training->special_count++] = text;
        at += bytes;
        if (!*at)
            return 0;
    }
}

/* Returns whether an operand is a run file. A text may look like anything, so its name must say so, unless the command
 * cannot run anyway and the question is only which message helps. */
static bool is_run_file(const char *name, bool incomplete)
{
    const size_t length = strlen(name);
    struct tokmap_run *run = NULL;
    if (!cli_names_run(name))
        return false;
    if (length > 4 && !strcmp(name + length - 4, ".run"))
        return true;
    const bool opens = incomplete && !tokmap_run_open(&run, name, NULL, NULL);
    tokmap_run_close(run);
    return opens;
}

/* Returns whether an operand is a dataset. A folder, which may hold very many texts, is not searched for shards unless
 * the command cannot run anyway. */
static bool is_dataset(const char *name, bool incomplete)
{
    struct os_stat stat;
    struct tokmap_dataset *dataset = NULL;
    if (!strcmp(name, "-") || cli_names_run(name))
        return false;
    if (!incomplete && !os_stat(name, &stat) && stat.kind != OS_KIND_FILE)
        return false;
    const bool opens = !tokmap_dataset_open(&dataset, name, NULL, NULL);
    tokmap_dataset_close(dataset);
    return opens;
}

/* Says what the command does instead, and returns true, if an operand is not a text but something that a training
 * program opens: the command's name reads as if it would train a model. */
static bool operand_is_no_text(const struct cli_command *command, const struct training_command *training,
                               const char *const *operands, size_t count)
{
    const bool incomplete = !training->output || !training->vocabulary;
    for (size_t i = 0; i < count; i++) {
        if (is_run_file(operands[i], incomplete)) {
            (void)cli_misused(command,
                              "'%s' is a run file, which a training program opens; this command makes a vocabulary (a "
                              "tokenizer) from text. 'tokmap info' describes a run, and 'tokmap audit' checks it",
                              operands[i]);
            return true;
        }
        if (is_dataset(operands[i], incomplete)) {
            (void)cli_misused(command,
                              "'%s' is a dataset, which contains tokens already; this command makes a vocabulary (a "
                              "tokenizer) from text. 'tokmap info' describes a dataset",
                              operands[i]);
            return true;
        }
    }
    return false;
}

/* Refuses arguments that are missing or wrong. Returns 0, or prints a message and returns the exit status. */
static int arguments_check(const struct cli_command *command, struct training_command *training, const char **operands,
                           size_t *operand_count)
{
    if (operand_is_no_text(command, training, operands, *operand_count))
        return CLI_MISUSED;
    if (!training->output)
        return cli_misused(command, "no output given; name the vocabulary that is made from the text with -o PREFIX");
    if (!training->vocabulary)
        return cli_misused(command, "no size given; set the number of tokens of the vocabulary with --vocab-size N");
    if (!split_rules_named(training->pattern)) {
        const char *const *names = split_rules_names();
        size_t count = 0;
        while (names[count])
            count++;
        const char *nearest = cli_nearest(training->pattern, names, count);
        if (nearest)
            return cli_misused(command, "--pattern: there is no split pattern '%s'; did you mean '%s'?",
                               training->pattern, nearest);
        return cli_misused(command, "--pattern: there is no split pattern '%s'; --help lists them", training->pattern);
    }
    const int status = specials_split(command, training);
    if (status)
        return status;
    const uint64_t least = 256 + (uint64_t)training->special_count;
    if (training->vocabulary < least || training->vocabulary > TRAIN_TOKENS_MOST)
        return cli_misused(command, "--vocab-size must be between %" PRIu64 " (one id per byte%s) and %u", least,
                           training->special_count ? " and per special token" : "", TRAIN_TOKENS_MOST);
    if (!training->threads || training->threads > TRAIN_THREADS_MOST)
        return cli_misused(command, "--threads must be between 1 and %d", TRAIN_THREADS_MOST);
    if (!training->memory)
        return cli_misused(command, "--max-memory must be at least 1");
    return corpus_arguments_check(command, &training->corpus, operands, operand_count);
}

/* ---- training ---- */

static int inputs_train(struct training_command *training, const char **operands, size_t operand_count)
{
    struct train_corpus_result result = {0};
    struct tokmap_error error;
    struct train_corpus_options options = {
        .prefix = training->prefix,
        .replace = training->force,
        .threads = (uint32_t)training->threads,
        .vocabulary = (uint32_t)training->vocabulary,
        .min_frequency = training->min_frequency,
        .memory = training->memory,
        .skip_limit = training->skips.limit,
        .other_output = skip_report_file(&training->skips),
        .settings = {training->pattern, training->specials, training->special_count},
        .skipped = skipped_report,
        .progress = progress_report,
        .stop = os_is_stopped,
        .user = training,
    };
    corpus_arguments_apply(&training->corpus, &options.corpus);
    training->warnings.program = program;
    input_warnings_watch(&training->warnings, &options.corpus);
    const uint64_t started = os_clock_ns();
    if (training->quiet)
        training->shown = CLI_PROGRESS_NONE;
    input_size_start(&training->size, operands, operand_count, &options.corpus.select, training->shown);
    cli_progress_start(&training->progress, "counting", NULL, training->size.bytes, training->shown);
    enum tokmap_status status = output_place_check(training->prefix, false, &error);
    if (!status)
        status = train_corpus(&options, operands, operand_count, &result, &error);
    cli_progress_end(&training->progress);
    input_warnings_tell(&training->warnings, &training->progress);
    input_warnings_free(&training->warnings);
    training->seconds = (double)(os_clock_ns() - started) * 1e-9;
    if (os_signals_release()) {
        if (status)
            cli_say(program, "interrupted; the unfinished output has been removed");
        training->skips.abandoned = status != TOKMAP_OK;
        skip_report_close(&training->skips, status != TOKMAP_OK);
        os_signal_die(os_signal_caught());
    }
    const bool listed = skip_report_finish(&training->skips, status != TOKMAP_OK);
    if (status) {
        const int failed = command_failed(training->command, &error);
        skip_report_hint(&training->skips, &result.counts, operands, operand_count, &error);
        return failed;
    }
    skip_report_advise(&training->skips, &result.counts);
    if (training->json || !training->quiet)
        training_report(training, &result);
    return cli_finish(program, listed ? CLI_DONE : CLI_FAILED);
}

static int train(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    static const char *const endings[] = {"json", "tiktoken", NULL};
    struct training_command *training = user;
    training->command = command;
    training->skips.list = -1;
    int status = arguments_check(command, training, operands, &operand_count);
    if (!status)
        status = output_prefix_make(command, training->output, endings, &training->prefix);
    if (!status)
        status = skip_report_open(&training->skips, command, &training->corpus, &training->progress, training->json,
                                  training->force);
    if (!status) {
        cli_signals_catch();
        status = inputs_train(training, operands, operand_count);
    }
    skip_report_close(&training->skips, status != CLI_DONE);
    free(training->specials);
    free(training->prefix);
    return status;
}

static const struct cli_often often[] = {{"output", NULL},
                                         {"vocab-size", NULL},
                                         {"special-tokens", NULL},
                                         {"input-format", NULL},
                                         {"pattern", "cl100k_base (default), gpt2, o200k_base, ..."},
                                         {"include", "read only the files of folders that match GLOB"},
                                         {"field", NULL},
                                         {"on-error", NULL},
                                         {"force", NULL},
                                         {"threads", NULL}};

int command_train_tokenizer(int argc, char **argv)
{
    struct training_command training = {.pattern = "cl100k_base", .corpus = CORPUS_ARGUMENTS_INIT, .min_frequency = 1};
    training.threads = os_processors() < TRAIN_THREADS_MOST ? os_processors() : TRAIN_THREADS_MOST;
    training.memory = os_memory_limit() / 4 * 3;
    const struct cli_option options[] = {
        CLI_HEADING("Output"),
        {'o', "output", CLI_TEXT, &training.output, NULL, "PREFIX", "write PREFIX.json and PREFIX.tiktoken", NULL},
        {0, "force", CLI_FLAG, &training.force, NULL, NULL, "replace the output if it exists", NULL},
        CLI_HEADING("Vocabulary"),
        {0, "vocab-size", CLI_SIZE, &training.vocabulary, NULL, "N", "number of ids, with those of special tokens",
         NULL},
        {0, "special-tokens", CLI_TEXT, &training.special_names, NULL, "NAME,...",
         "special tokens; they get the last ids, in this order", NULL},
        {0, "pattern", CLI_TEXT, &training.pattern, NULL, "NAME",
         "how text is cut into pieces (default: cl100k_base): " SPLIT_RULES_NAMES, SPLIT_RULES_NAMES},
        {0, "min-frequency", CLI_NUMBER, &training.min_frequency, NULL, "N",
         "merge only pairs that appear at least N times in the text (default: 1)", NULL},
        CLI_HEADING("Inputs"),
        CORPUS_OPTIONS_INPUT(training.corpus),
        CORPUS_OPTIONS_FILES(training.corpus),
        CORPUS_OPTION_ON_ERROR(training.corpus),
        SKIP_OPTIONS(training.skips),
        CORPUS_OPTIONS_TEXTS(training.corpus),
        CLI_HEADING("General"),
        {'j', "threads", CLI_NUMBER, &training.threads, NULL, "N",
         "number of threads (default: one per processor); the output is the same for every N", NULL},
        {0, "max-memory", CLI_SIZE, &training.memory, NULL, "SIZE",
         "memory for the distinct pieces of the text (default: three quarters of the machine's)", NULL},
        {0, "json", CLI_FLAG, &training.json, NULL, NULL, "print the closing report as JSON", NULL},
        CLI_OPTION_PROGRESS(training.shown),
        {'q', "quiet", CLI_FLAG, &training.quiet, NULL, NULL, "print no progress and no closing report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "-o PREFIX --vocab-size N [OPTION]... [INPUT]...",
        .summary =
            "Makes a vocabulary of byte-level BPE from text. It is written as PREFIX.json (a tokenizer.json) and "
            "PREFIX.tiktoken (a rank file).",
        .often = often,
        .often_count = sizeof often / sizeof often[0],
        .details =
            "An INPUT is a file, a folder (all regular files below it that are not hidden), a pattern (** matches any "
            "number of folders), or '-' for standard input. It contains text, one document per file, or records, one "
            "document each: JSONL, a JSON array, CSV, TSV, Parquet, or WARC. All but Parquet may be gzip, zstd, "
            "bzip2, xz, or LZ4.\n\n"
            "Examples:\n"
            "  tokmap train-tokenizer -o vocab/tokenizer --vocab-size 32768 "
            "--special-tokens '<|endoftext|>' books/\n"
            "  tokmap train-tokenizer -o web --vocab-size 50k --pattern o200k_base 'crawl/*.jsonl.zst'\n",
        CLI_OPTIONS(options),
        .operands = CLI_FILES,
    };
    return cli_run(&command, argc, argv, train, &training);
}
