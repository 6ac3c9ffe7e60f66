/* SPDX-License-Identifier: MIT */
/* command_verify.c - tokmap verify: reads every byte of a dataset and prints each fault as one line that says where
 * it is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/layout.h"
#include "format/plan_file.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "platform/process.h"

/* ---- plans ---- */

#define DOCUMENTS_A_LOOK ((uint64_t)1 << 14)

/* Checks the segments of one document, which are numbers `next` and so on in order of their first tokens. */
static enum tokmap_status document_check(const struct plan *plan, const struct tokmap_document *document,
                                         uint64_t *next, struct tokmap_error *error)
{
    const uint64_t seq_len = plan->header.seq_len;
    for (uint64_t done = 0; done < document->tokens;) {
        struct plan_segment segment = {0};
        uint64_t number;
        const uint64_t part = min64(document->tokens - done, seq_len);
        enum tokmap_status status =
            *next < plan->header.segments ? plan_ordered(plan, *next, &number, &segment, error) : TOKMAP_OK;
        if (status)
            return status;
        if (segment.first_token != document->first_token + done || segment.tokens != part)
            return error_set(error, TOKMAP_ERROR_MISMATCH, plan->path, TOKMAP_NO_OFFSET,
                             "the plan has no segment of %" PRIu64 " tokens from token %" PRIu64 " on, although "
                             "document %" PRIu64 " of the dataset has them; make the plan again with `tokmap plan`",
                             part, document->first_token + done, document->number);
        ++*next;
        done += part;
    }
    return TOKMAP_OK;
}

static enum tokmap_status documents_check(const struct plan *plan, const struct tokmap_dataset *dataset,
                                          int (*progress)(void *user, uint64_t done, uint64_t total), void *user,
                                          struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    enum tokmap_status status = TOKMAP_OK;
    uint64_t next = 0;
    for (uint64_t number = 0; number < info.documents && !status; number++) {
        struct tokmap_document document;
        if (number % DOCUMENTS_A_LOOK == 0 && progress && progress(user, number, info.documents))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, plan->path, TOKMAP_NO_OFFSET,
                             "the caller stopped the check");
        status = tokmap_dataset_document(dataset, number, &document, error);
        if (!status)
            status = document_check(plan, &document, &next, error);
    }
    if (!status && next != plan->header.segments)
        status = error_set(error, TOKMAP_ERROR_MISMATCH, plan->path, TOKMAP_NO_OFFSET,
                           "the plan has %" PRIu64 " segments, but the documents of the dataset make %" PRIu64
                           "; make the plan again with `tokmap plan`",
                           plan->header.segments, next);
    return status;
}

/* Opens a plan and checks all of it. dataset: if not NULL, also that each segment is a whole document, or, of a
 * document longer than a row, a full row or the rest. *header receives the plan's header, or zeros if it cannot be
 * opened. progress: may be NULL; a result other than 0 ends the work. Statuses: those of plan_open() and plan_verify(),
 * ERROR_MISMATCH (the dataset has other documents). */
static enum tokmap_status plan_check(const char *path, const struct tokmap_dataset *dataset,
                                     int (*progress)(void *user, uint64_t done, uint64_t total), void *user,
                                     struct plan_header *header, struct tokmap_error *error)
{
    struct plan plan;
    *header = (struct plan_header){0};
    enum tokmap_status status = plan_open(&plan, path, error);
    if (status)
        return status;
    *header = plan.header;
    status = plan_verify(&plan, progress, user, error);
    if (!status && dataset)
        status = documents_check(&plan, dataset, progress, user, error);
    plan_close(&plan);
    return status;
}

/* ---- the command ---- */

static const char program[] = "tokmap verify";

#define THREADS_MOST 1024

struct verify_arguments {
    uint64_t threads;
    bool threads_given, json, quiet;
    int progress; /* enum cli_progress_mode */
};

struct verify_report {
    const struct tokmap_dataset *dataset;
    struct cli_progress progress;
    struct cli_report out;
    uint64_t faults;
};

/* Finds the block of a fault in a token file, and the byte at which it ends. Returns false if the fault is in an
 * index, or in a sealed file, which has frames. */
static bool fault_block(const struct verify_report *report, const struct tokmap_error *fault, uint64_t *block,
                        uint64_t *end)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    if (!report->dataset || fault->offset == TOKMAP_NO_OFFSET || tokmap_dataset_info(report->dataset, &info))
        return false;
    for (uint64_t number = 0; number < info.shards; number++) {
        if (tokmap_dataset_shard(report->dataset, number, &shard, NULL) || strcmp(shard.tokens_path, fault->path) != 0)
            continue;
        if (shard_file_is(fault->path, SHARD_SEALED))
            return false;
        *block = fault->offset / BLOCK_BYTES;
        *end = min64((*block + 1) * BLOCK_BYTES, shard.tokens * info.width);
        return *block < shard.blocks;
    }
    return false;
}

/* Prints the library's message, which already names the section, or the block and its bytes. */
static void fault_print(struct verify_report *report, const struct tokmap_error *fault)
{
    struct cli_report *out = &report->out;
    char text[sizeof fault->path + sizeof fault->message + 256];
    uint64_t block = 0, end = 0;
    cli_report_item(out);
    cli_member(out, "path", cli_text(fault->path));
    if (fault_block(report, fault, &block, &end)) {
        cli_numbers(out, "block|first_byte|end_byte", block, block * BLOCK_BYTES, end);
    } else if (fault->offset != TOKMAP_NO_OFFSET) {
        cli_member(out, "offset", cli_number(fault->offset));
    }
    cli_member(out, "status", cli_text(tokmap_status_name(fault->status)));
    cli_member(out, "message", cli_text(fault->message));
    cli_report_close(out);
    if (!out->as_json)
        cli_print("%s\n", tokmap_error_print(fault, text, sizeof text));
}

static int fault_found(void *user, const struct tokmap_error *fault)
{
    struct verify_report *report = user;
    report->faults++;
    cli_progress_clear(&report->progress);
    fault_print(report, fault);
    (void)cli_flush();
    return 0;
}

static int progressed(void *user, uint64_t done, uint64_t total)
{
    struct verify_report *report = user;
    report->progress.total = total;
    cli_progress_update(&report->progress, done);
    return os_signal_caught() != 0;
}

/* Returns whether a status means that a file is damaged, rather than that it could not be read. */
static bool is_fault(enum tokmap_status status)
{
    return status == TOKMAP_ERROR_FORMAT || status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_TRUNCATED ||
           status == TOKMAP_ERROR_MISMATCH || status == TOKMAP_ERROR_TOKEN;
}

/* Findings in all datasets. */
struct verify_sum {
    struct tokmap_dataset_info info; /* tokens, documents, and shards are sums */
    struct tokmap_verify_result result;
    uint64_t plans;
    struct plan_header plan; /* the last one */
};

/* Reads a dataset. Prints faults as they are found. */
static enum tokmap_status dataset_verify(const struct tokmap_dataset *dataset, const char *name,
                                         const struct verify_arguments *given, struct verify_report *report,
                                         struct verify_sum *sum, struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    struct tokmap_verify_result result = TOKMAP_VERIFY_RESULT_INIT;
    const uint64_t faults = report->faults;
    dataset_warn(program, dataset, name);
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    options.threads = (uint32_t)given->threads;
    options.fault = fault_found;
    options.progress = progressed;
    options.user = report;
    report->dataset = dataset;
    cli_progress_start(&report->progress, "verifying", NULL, 0, given->quiet ? CLI_PROGRESS_NONE : given->progress);
    const enum tokmap_status status = tokmap_dataset_verify(dataset, &options, &result, error);
    cli_progress_end(&report->progress);
    /* The status of the whole is printed if the library reported no fault by itself. */
    if (is_fault(status) && report->faults == faults)
        (void)fault_found(report, error);
    report->dataset = NULL;
    sum->info.tokens += info.tokens;
    sum->info.documents += info.documents;
    sum->info.shards += info.shards;
    sum->result.blocks += result.blocks;
    sum->result.bytes += result.bytes;
    return status;
}

/* Reads a plan, and compares it with the documents of the dataset that it belongs to, unless that is NULL. */
static enum tokmap_status plan_verify_named(const char *plan, const struct tokmap_dataset *dataset,
                                            const struct verify_arguments *given, struct verify_report *report,
                                            struct verify_sum *sum, struct tokmap_error *error)
{
    cli_progress_start(&report->progress, "verifying", "segments", 0,
                       given->quiet ? CLI_PROGRESS_NONE : given->progress);
    const enum tokmap_status status = plan_check(plan, dataset, progressed, report, &sum->plan, error);
    cli_progress_end(&report->progress);
    if (is_fault(status))
        (void)fault_found(report, error);
    sum->plans++;
    return status;
}

/* Returns whether an earlier source of the run reads the same dataset. */
static bool is_repeated(const struct tokmap_run *run, uint64_t number, const char *data)
{
    for (uint64_t before = 0; before < number; before++)
        if (!strcmp(info_of_source(run, before).data, data))
            return true;
    return false;
}

/* Reads the datasets and plans of all sources. Goes on after faults. */
static enum tokmap_status run_verify(const struct tokmap_run *run, const char *name,
                                     const struct verify_arguments *given, struct verify_report *report,
                                     struct verify_sum *sum, struct tokmap_error *error)
{
    const struct tokmap_run_info info = info_of_run(run);
    enum tokmap_status status = TOKMAP_OK, found = TOKMAP_OK;
    const uint64_t datasets = info.sources + info.validations;
    for (uint64_t i = 0; i < datasets && (!status || is_fault(status)); i++) {
        const struct tokmap_source_info source = info_of_source(run, i);
        status = TOKMAP_OK;
        if (!is_repeated(run, i, source.data))
            status = dataset_verify(source.dataset, datasets == 1 ? name : source.data, given, report, sum, error);
        found = found ? found : status;
        if (source.plan && (!status || is_fault(status)))
            status = plan_verify_named(source.plan, source.dataset, given, report, sum, error);
        found = found && (!status || is_fault(status)) ? found : status;
    }
    return found;
}

/* Opens a dataset or run and reads it. */
static enum tokmap_status verify(const char *name, const struct verify_arguments *given, struct verify_report *report,
                                 struct verify_sum *sum, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_run *run = NULL;
    const bool is_run = cli_names_run(name);
    enum tokmap_status status =
        is_run ? tokmap_run_open(&run, name, NULL, error) : tokmap_dataset_open(&dataset, name, NULL, error);
    /* A failure to open is a fault like any other, but it keeps the rest from being checked. */
    if (is_fault(status)) {
        (void)fault_found(report, error);
        cli_say(program, "'%s' cannot be opened, so the rest of it was not checked", name);
    }
    if (run)
        run_warn(program, run, name);
    if (!status)
        status = is_run ? run_verify(run, name, given, report, sum, error)
                        : dataset_verify(dataset, name, given, report, sum, error);
    tokmap_run_close(run);
    tokmap_dataset_close(dataset);
    return status;
}

static void summary_print(const char *name, bool is_plan, const struct verify_sum *sum, uint64_t faults, double seconds)
{
    const struct tokmap_dataset_info *info = &sum->info;
    if (faults)
        cli_print("%s: %s\n", name, CLI_COUNTED(faults, "fault"));
    else if (is_plan)
        cli_print("%s: sound: %s rows, %s segments\n", name, CLI_COUNT(sum->plan.rows), CLI_COUNT(sum->plan.segments));
    else if (!info->shards)
        cli_print("%s: synthetic; it has no files to verify\n", name);
    else
        cli_print("%s: sound: %s, %s in %s%s%s\n", name, CLI_COUNTED(info->tokens, "token"),
                  CLI_COUNTED(info->documents, "document"), CLI_COUNTED(info->shards, "shard"),
                  sum->plans ? ", and " : "", sum->plans ? CLI_COUNTED(sum->plans, "plan") : "");
    if (sum->result.bytes && seconds > 0)
        cli_say(program, "read %s in %s, %s/s", CLI_BYTES(sum->result.bytes), CLI_SECONDS(seconds),
                CLI_BYTES((uint64_t)((double)sum->result.bytes / seconds)));
}

static int verify_name(const struct cli_command *command, const struct verify_arguments *given, const char *name)
{
    struct tokmap_error error = {0};
    struct verify_sum sum = {.plans = 0};
    struct verify_report report = {.faults = 0};
    const bool is_plan = plan_is_file(name); /* a run names the dataset that it belongs to */
    cli_signals_catch();
    cli_report_begin(&report.out, given->json, NULL);
    cli_member(&report.out, is_plan ? "plan" : cli_names_run(name) ? "run" : "dataset", cli_text(name));
    cli_report_list(&report.out, "faults", NULL);
    const uint64_t start = os_clock_ns();
    const enum tokmap_status status = is_plan ? plan_verify_named(name, NULL, given, &report, &sum, &error)
                                              : verify(name, given, &report, &sum, &error);
    const double seconds = (double)(os_clock_ns() - start) * 1e-9;
    cli_report_close(&report.out);
    cli_member(&report.out, "sound", cli_bool(status == TOKMAP_OK));
    if (is_plan) {
        cli_numbers(&report.out, "rows|segments|tokens", sum.plan.rows, sum.plan.segments, sum.plan.tokens);
    } else {
        cli_member(&report.out, "complete", cli_bool(status == TOKMAP_OK || (is_fault(status) && sum.result.bytes)));
        cli_numbers(&report.out, "tokens|documents|shards|blocks|bytes", sum.info.tokens, sum.info.documents,
                    sum.info.shards, sum.result.blocks, sum.result.bytes);
        cli_member(&report.out, "seconds", cli_real(seconds));
    }
    cli_report_end(&report.out);
    cli_signals_end(program, NULL);
    if (status && !is_fault(status))
        return cli_finish(program, command_failed(command, &error));
    if (!given->json && !given->quiet)
        summary_print(name, is_plan, &sum, report.faults, seconds);
    return cli_finish(program, status ? CLI_FAILED : CLI_DONE);
}

static int verify_operands(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    const struct verify_arguments *given = user;
    if (operand_count != 1)
        return cli_misused(command, "expected one dataset, plan, or run file");
    if (given->threads_given && (!given->threads || given->threads > THREADS_MOST))
        return cli_misused(command, "--threads must be between 1 and %d", THREADS_MOST);
    return verify_name(command, given, operands[0]);
}

int command_verify(int argc, char **argv)
{
    struct verify_arguments given = {0};
    const struct cli_option options[] = {
        {'j', "threads", CLI_NUMBER, &given.threads, &given.threads_given, "N",
         "number of threads that read (default: one per processor)", NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print a JSON object", NULL},
        CLI_OPTION_PROGRESS(given.progress),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print faults only", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "DATASET|PLAN|RUN [OPTION]...",
        .summary =
            "Reads every byte of a dataset, or of a run's datasets, and compares it with the checksums in the index. "
            "Prints one line for each fault: the file, and the section of an index or the block and byte range of "
            "a token file. Of a plan, it checks that the rows hold every token once, and in a run that they are those "
            "of its dataset's documents.",
        .details = "The exit status is 1 if there are faults.\n\n"
                   "Examples:\n"
                   "  tokmap verify data/web\n"
                   "  tokmap verify data --json\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS | CLI_RUNS,
    };
    /* -t was the number of threads here, while it is the tokenizer in every other command. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], "-t", 2) == 0)
            return cli_misused(&command, "unknown option '-t': verify needs no tokenizer, and the number of threads is "
                                         "-j N or --threads N, as in every command");
    return cli_run(&command, argc, argv, verify_operands, &given);
}
