/* SPDX-License-Identifier: MIT */
/*
 * command_plan.c - tokmap plan: packs the documents of a dataset into rows, so that no document is cut that fits a row,
 * and writes the plan, which a source of a run draws in place of windows.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/output_file.h"
#include "commands/options/target.h"
#include "common/error.h"
#include "format/shard_file.h"
#include "plan/planner.h"
#include "platform/process.h"

static const char program[] = "tokmap plan";

#define DOCUMENTS_A_LOOK ((uint64_t)1 << 14) /* documents between two looks at the clock and at signals */

struct planning {
    const char *output;
    struct planner_options options;
    bool seq_len_given, most_given, pad_given, one_document;
    bool force, json, quiet;
    int mode; /* enum cli_progress_mode */
    struct cli_progress progress;
};

static int progressed(void *user, uint64_t done, uint64_t total)
{
    struct planning *planning = user;
    planning->progress.total = total;
    cli_progress_update(&planning->progress, done);
    return os_signal_caught() != 0;
}

static enum tokmap_status documents_add(struct planning *planning, struct planner *planner,
                                        const struct tokmap_dataset *dataset, const struct tokmap_dataset_info *info,
                                        struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (info->tokens && !info->documents) {
        struct tokmap_document document;
        status = tokmap_dataset_document(dataset, 0, &document, error); /* its message says how to find them */
        return status ? status
                      : error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                                  "it is not known where the documents of this dataset end");
    }
    cli_progress_start(&planning->progress, "reading the lengths of documents", "documents", info->documents,
                       planning->quiet ? CLI_PROGRESS_NONE : planning->mode);
    for (uint64_t number = 0; number < info->documents && !status; number++) {
        struct tokmap_document document;
        status = tokmap_dataset_document(dataset, number, &document, error);
        if (!status)
            status = planner_add(planner, document.tokens, error);
        if (number % DOCUMENTS_A_LOOK == 0 && progressed(planning, number, info->documents))
            status = TOKMAP_ERROR_INTERRUPTED;
    }
    cli_progress_end(&planning->progress);
    return status;
}

/* Reads the documents, packs them, and writes the plan. */
static enum tokmap_status plan_make(struct planning *planning, const struct tokmap_dataset *dataset, int fd,
                                    struct planner_result *result, struct plan_header *header,
                                    struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    struct planner *planner = NULL;
    enum tokmap_status status = planner_new(&planner, &planning->options, error);
    if (!status)
        status = documents_add(planning, planner, dataset, &info, error);
    if (!status) {
        cli_progress_start(&planning->progress, "packing", "segments", 0,
                           planning->quiet ? CLI_PROGRESS_NONE : planning->mode);
        status = planner_pack(planner, progressed, planning, result, error);
        cli_progress_end(&planning->progress);
    }
    if (!status && result->tokens != info.tokens)
        status = error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                           "the documents have %" PRIu64 " tokens, but the dataset has %" PRIu64
                           "; run `tokmap verify` on it",
                           result->tokens, info.tokens);
    const int system = status ? 0 : planner_write(planner, fd, info.content, info.identity, header);
    if (system)
        status = error_set_system(error, system, planning->output, TOKMAP_NO_OFFSET, "the plan cannot be written");
    planner_free(planner);
    return status;
}

/* ---- report ---- */

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* 99.96% is not printed as 100.0%, because that would hide the padding. */
static const char *percent(uint64_t part, uint64_t whole, char text[32])
{
    const uint64_t thousandths = whole ? (uint64_t)((unsigned __int128)part * 100000 / whole) : 0;
    (void)snprintf(text, 32, "%" PRIu64 ".%02" PRIu64 "%%", thousandths / 1000, thousandths % 1000 / 10);
    return text;
}

static void report(const struct planning *planning, const struct planner_result *result,
                   const struct plan_header *header)
{
    struct cli_report report;
    const uint64_t room = result->rows * planning->options.seq_len, pad = planning->options.pad;
    const uint64_t left = room - result->tokens - result->document_padding, most = planning->options.documents_most;
    char share_text[32];
    if (!planning->json)
        cli_print("%s: %s of %s, %s full\n", planning->output, CLI_COUNTED(result->rows, "row"),
                  CLI_COUNTED(planning->options.seq_len, "token"), percent(result->tokens, room, share_text));
    cli_report_begin(&report, planning->json, NULL);
    cli_member(&report, "output", cli_text(planning->output));
    cli_member(&report, "dataset", cli_text(ID_HEX(header->dataset)));
    cli_member(&report, "seq_len", cli_number(planning->options.seq_len));
    cli_member(&report, "max_documents", cli_number_if(most, most));
    if (pad > 1)
        cli_member(&report, "pad_documents", cli_number(pad));
    cli_numbers(&report, "rows|full_rows", result->rows, result->full_rows);
    cli_fact(&report, "tokens", "  data", cli_number(result->tokens), "%s in %s, %s at the ends of rows",
             CLI_COUNTED(result->tokens, "token"), CLI_COUNTED(result->documents, "document"),
             left ? CLI_COUNTED(left, "padding token") : "no padding");
    cli_member(&report, "padding", cli_number(room - result->tokens));
    if (pad > 1)
        cli_fact(&report, "document_padding", "  padding of documents", cli_number(result->document_padding),
                 "%s (%s of the rows), so that each document is a multiple of %s",
                 CLI_COUNTED(result->document_padding, "token"), percent(result->document_padding, room, share_text),
                 CLI_COUNT(pad));
    cli_member(&report, "fill", cli_real(share(result->tokens, room)));
    cli_member(&report, "documents", cli_number(result->documents));
    cli_fact(&report, "documents_cut", "  cut", cli_number(result->cut), "%s (%s), because longer than a row",
             CLI_COUNTED(result->cut, "document"), percent(result->cut, result->documents, share_text));
    cli_fact(&report, "concatenation_cut", "  cut if concatenated", cli_number(result->concatenation_cut), "%s (%s)",
             CLI_COUNTED(result->concatenation_cut, "document"),
             percent(result->concatenation_cut, result->documents, share_text));
    cli_fact(&report, "segments", "  segments", cli_number(result->segments), "%s, %.1f a row, at most %s",
             CLI_COUNT(result->segments), (double)result->segments / (double)result->rows,
             CLI_COUNT(result->row_segments));
    cli_member(&report, "row_segments", cli_number(result->row_segments));
    cli_fact(&report, "targets", "  targets", cli_number(result->tokens - result->segments),
             "%s (%s of the tokens; the last token of a segment has none)",
             CLI_COUNT(result->tokens - result->segments),
             percent(result->tokens - result->segments, result->tokens, share_text));
    cli_fact(&report, "bytes", "  file", cli_number(header->file_bytes), "%s", CLI_BYTES(header->file_bytes));
    cli_report_end(&report);
}

/* ---- the command ---- */

static enum tokmap_status plan_operand(struct planning *planning, const char *name, struct tokmap_error *error)
{
    struct output_file file = {.fd = -1};
    struct tokmap_dataset *dataset = NULL;
    struct planner_result result;
    struct plan_header header;
    enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, error);
    if (status)
        return status;
    dataset_warn(program, dataset, name);
    status = output_file_open(&file, planning->output, planning->force, error);
    if (!status) {
        status = plan_make(planning, dataset, file.fd, &result, &header, error);
        if (status)
            output_file_abort(&file);
        else
            status = output_file_commit(&file, error);
    }
    tokmap_dataset_close(dataset);
    if (status)
        return status;
    if (planning->json || !planning->quiet)
        report(planning, &result, &header);
    return TOKMAP_OK;
}

static int plan(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct planning *planning = user;
    struct tokmap_error error = {0};
    if (!planning->output)
        return cli_misused(command, "no output given; name the plan with -o FILE");
    if (operand_count != 1)
        return cli_misused(command, "expected one dataset");
    if (!planning->seq_len_given)
        return cli_misused(command, "no length given; set the tokens of a row with --seq-len S");
    if (!planning->options.seq_len || planning->options.seq_len > PLAN_SEQ_LEN_MOST)
        return cli_misused(command, "--seq-len must be between 1 and %" PRIu64, PLAN_SEQ_LEN_MOST);
    if (planning->most_given && planning->one_document)
        return cli_misused(command, "--one-document means --max-documents 1; give one of them");
    if (planning->most_given && !planning->options.documents_most)
        return cli_misused(command, "--max-documents must be 1 or more");
    if (planning->pad_given && (!planning->options.pad || planning->options.pad > planning->options.seq_len))
        return cli_misused(command, "--pad-documents must be between 1 and --seq-len");
    if (shard_file_is(planning->output, SHARD_INDEX) || shard_file_is(planning->output, SHARD_TOKENS))
        return cli_misused(command, "a plan cannot be called '%s', because that ending means a shard",
                           planning->output);
    if (cli_names_run(operands[0]))
        return cli_misused(command, "'%s' is a run file; name the dataset of one of its sources", operands[0]);
    if (planning->one_document)
        planning->options.documents_most = 1;
    cli_signals_catch();
    const enum tokmap_status status = plan_operand(planning, operands[0], &error);
    cli_signals_end(program, NULL);
    if (status && !error.path[0])
        (void)snprintf(error.path, sizeof error.path, "%.500s", operands[0]);
    return cli_finish(program, status ? command_failed(command, &error) : CLI_DONE);
}

int command_plan(int argc, char **argv)
{
    struct planning planning = {0};
    const struct cli_option options[] = {
        {'o', "output", CLI_TEXT, &planning.output, NULL, "FILE", "the plan to write", NULL},
        {0, "seq-len", CLI_SIZE, &planning.options.seq_len, &planning.seq_len_given, "S",
         "tokens of a row; a run that uses the plan has the same seq_len", NULL},
        {0, "max-documents", CLI_NUMBER, &planning.options.documents_most, &planning.most_given, "N",
         "put at most N documents, or parts of cut documents, into a row (default: as many as fit)", NULL},
        {0, "one-document", CLI_FLAG, &planning.one_document, NULL, NULL,
         "a row has one document or a part of one, and padding", NULL},
        {0, "pad-documents", CLI_NUMBER, &planning.options.pad, &planning.pad_given, "N",
         "pad each document, or part of a cut one, to a multiple of N tokens, of which S is one: for context_layout "
         "zigzag_documents, 2 * context_world",
         NULL},
        {0, "force", CLI_FLAG, &planning.force, NULL, NULL, "replace the output if it exists", NULL},
        {0, "json", CLI_FLAG, &planning.json, NULL, NULL, "print the report as a JSON object", NULL},
        CLI_OPTION_PROGRESS(planning.mode),
        {'q', "quiet", CLI_FLAG, &planning.quiet, NULL, NULL, "print no report and no progress", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "-o FILE --seq-len S [OPTION]... DATASET",
        .summary = "Packs the documents of a dataset into rows of S tokens, so that no document is cut that fits a "
                   "row. Longer ones are cut into full rows and a rest. No token is copied: the plan lists where the "
                   "rows are in the dataset.",
        .details = "A source of a run draws the rows of the plan in place of windows if its line names the plan: "
                   "'source web data/web plan data/web.plan'.\n\n"
                   "The packing is best fit, longest first. The same dataset and options make the same file. Of a part "
                   "of a dataset, plan the part, by the name that the run uses.\n\n"
                   "Examples:\n"
                   "  tokmap plan -o data/web.plan --seq-len 8192 data/web\n"
                   "  tokmap plan -o part.plan --seq-len 4Ki 'data/web#docs=0..99%'\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, plan, &planning);
}
