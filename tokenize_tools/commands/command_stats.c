/* SPDX-License-Identifier: MIT */
/*
 * command_stats.c - tokmap stats: how long the documents of a dataset are, from which files they came, and how often
 * each id occurs.
 *
 * The first two come from the index, in one pass over its documents; the ids from one pass over the tokens.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/range_share.h"
#include "commands/data/token_decode.h"
#include "commands/options/target.h"
#include "commands/options/tokenizer_arguments.h"
#include "commands/report/dataset_about.h"
#include "commands/report/document_lengths.h"
#include "commands/report/token_counts.h"
#include "common/bytes.h"
#include "common/error.h"

static const char program[] = "tokmap stats";

#define TOP_MOST 10000
#define FILES_SHOWN 20
#define LONGEST_TEXT 48 /* bytes of a token's text in the table */

struct stats_arguments {
    struct tokenizer_arguments tokenizer;
    uint64_t threads, top;
    bool threads_given, no_ids, unused, verbose, json, quiet;
    int progress; /* enum cli_progress_mode */
};

/* Number of bytes of text that the tokens were made from, and its source. */
enum text_from { TEXT_UNKNOWN, TEXT_FROM_INDEX, TEXT_FROM_TOKENIZER };

struct stats {
    const char *name;
    const struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    struct document_report documents;
    struct token_counts counts;
    uint64_t targets;
    enum text_from text_from;
    uint64_t text_bytes, text_tokens; /* bytes of text, and the tokens that stand for them */
    struct tokenizer *tokenizer;      /* NULL: unknown */
    bool with_ids;
};

/* ---- gathering ---- */

/* Adds up what the indexes say about their text. They say it of whole shards only. */
static enum tokmap_status text_of_indexes(struct stats *stats, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    bool known = stats->info.shards > 0;
    for (uint64_t number = 0; number < stats->info.shards && known && !status; number++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        struct about_facts about;
        status = tokmap_dataset_shard(stats->dataset, number, &shard, error);
        if (!status)
            status = about_read(&shard, &about, error);
        if (status)
            break;
        known = about.counted && !add_overflows(stats->text_bytes, about.text_bytes, &stats->text_bytes) &&
                !add_overflows(stats->text_tokens, about.tokens, &stats->text_tokens);
        about_free(&about);
    }
    if (known && !status && stats->text_tokens)
        stats->text_from = TEXT_FROM_INDEX;
    return status;
}

/* Adds up the bytes that the ids stand for. Special tokens stand for no text. */
static enum tokmap_status text_of_tokenizer(struct stats *stats, struct tokmap_error *error)
{
    const struct token_counts *counts = &stats->counts;
    const struct tokenizer_info info = info_of_tokenizer(stats->tokenizer);
    unsigned __int128 bytes = 0;
    for (uint64_t id = 0; (id = token_counts_next(counts, id)) < counts->vocabulary; id++) {
        const uint8_t *text;
        uint32_t count;
        if (!tokenizer_token(stats->tokenizer, id, &text, &count))
            return error_set(error, TOKMAP_ERROR_MISMATCH, stats->name, TOKMAP_NO_OFFSET,
                             "id %" PRIu64 " occurs, but the tokenizer '%s' does not have it; name the tokenizer that "
                             "made the dataset with --tokenizer",
                             id, info.name);
        bytes += (unsigned __int128)token_counts_of(counts, id) * count;
    }
    for (uint64_t i = 0; i < info.added; i++) {
        struct tokmap_added_token added;
        const uint8_t *text;
        uint32_t count;
        tokenizer_added_at(stats->tokenizer, i, &added);
        if (added.special && tokenizer_token(stats->tokenizer, added.id, &text, &count))
            bytes -= (unsigned __int128)token_counts_of(counts, added.id) * count;
    }
    if (!counts->tokens || bytes > UINT64_MAX)
        return TOKMAP_OK;
    stats->text_from = TEXT_FROM_TOKENIZER;
    stats->text_bytes = (uint64_t)bytes;
    stats->text_tokens = counts->tokens;
    return TOKMAP_OK;
}

/* Opens the tokenizer. Without -t it only adds texts of ids, so the dataset can be described without it. */
static enum tokmap_status stats_tokenizer(struct stats *stats, const struct stats_arguments *given,
                                          struct tokmap_error *error)
{
    const struct tokenizer_arguments *asked = &given->tokenizer;
    bool assumed;
    if (!stats->with_ids && !asked->spec_given)
        return TOKMAP_OK;
    const enum tokmap_status status = dataset_tokenizer_open(&stats->tokenizer, stats->dataset, asked, &assumed, error);
    if (!status || asked->spec_given || status == TOKMAP_ERROR_MEMORY)
        return status;
    *error = (struct tokmap_error){0};
    return TOKMAP_OK;
}

static enum tokmap_status stats_gather(struct stats *stats, const struct stats_arguments *given,
                                       struct tokmap_error *error)
{
    const int mode = given->quiet ? CLI_PROGRESS_NONE : given->progress;
    stats->info = info_of_dataset(stats->dataset);
    stats->with_ids = !given->no_ids;
    enum tokmap_status status = stats_tokenizer(stats, given, error);
    if (!status)
        status = document_report_make(&stats->documents, stats->dataset, given->threads, true, mode, error);
    if (!status)
        status = dataset_targets(stats->dataset, given->threads, mode, &stats->targets, error);
    if (!status && stats->with_ids)
        status = token_counts_make(&stats->counts, stats->dataset, given->threads, mode, error);
    if (!status)
        status = text_of_indexes(stats, error);
    if (!status && stats->text_from == TEXT_UNKNOWN && stats->tokenizer && stats->with_ids)
        status = text_of_tokenizer(stats, error);
    return status;
}

static void stats_free(struct stats *stats)
{
    document_report_free(&stats->documents);
    token_counts_free(&stats->counts);
    tokenizer_close(stats->tokenizer);
}

/* ---- the report ---- */

static void text_report(const struct stats *stats, struct cli_report *report)
{
    static const char *const from[] = {NULL, "index", "tokenizer"};
    const bool known = stats->text_from != TEXT_UNKNOWN;
    char ratio[64];
    if (known)
        cli_row(report, "a token stands for", "%s%s", bytes_a_token_text(stats->text_bytes, stats->text_tokens, ratio),
                stats->text_from == TEXT_FROM_TOKENIZER ? ", as its tokenizer decodes them" : "");
    else
        cli_row(report, "a token stands for", "unknown; the index does not say, and %s",
                !stats->info.shards ? "a synthetic dataset has no text"
                : !stats->with_ids  ? "--no-ids leaves the tokens out"
                : stats->tokenizer  ? "there are no tokens"
                                    : "the tokenizer is needed (-t FILE)");
    cli_member(report, "text_bytes_a_token",
               cli_real(known ? (double)stats->text_bytes / (double)stats->text_tokens : (double)NAN));
    cli_member(report, "text_from", cli_text(from[stats->text_from]));
}

static void eod_report(const struct stats *stats, struct cli_report *report)
{
    const uint64_t id = stats->info.eod_id;
    cli_member(report, "eod_id", cli_id(id));
    if (id == TOKMAP_NO_ID) {
        cli_row(report, "end of document", "no id, or shards differ");
    } else if (!stats->with_ids) {
        cli_row(report, "end of document", "id %" PRIu64, id);
    } else {
        const uint64_t ends = token_counts_of(&stats->counts, id);
        cli_row(report, "end of document", "id %" PRIu64 ", %s time%s (%.2f%% of the tokens)", id, CLI_COUNT(ends),
                ends == 1 ? "" : "s", cli_percent(ends, stats->counts.tokens));
    }
}

static void head_report(const struct stats *stats, struct cli_report *report)
{
    const struct tokmap_dataset_info *info = &stats->info;
    const uint64_t masked = info->tokens - stats->targets;
    cli_fact_text(report, "dataset", "dataset", stats->name);
    cli_fact_number(report, "tokens", "tokens", info->tokens);
    cli_fact(report, "documents", "documents", cli_number(info->documents), "%s",
             info->documents || !info->tokens ? CLI_COUNT(info->documents) : "not recorded; `tokmap index` finds them");
    cli_fact_number(report, "shards", "shards", info->shards);
    cli_member(report, "vocabulary", cli_number(info->vocabulary));
    eod_report(stats, report);
    cli_fact(report, "masked", info->masked ? "mask" : NULL, cli_bool(info->masked),
             "%s tokens are masked (%.2f%%), %s count as targets", CLI_COUNT(masked), cli_percent(masked, info->tokens),
             CLI_COUNT(stats->targets));
    cli_member(report, "targets", cli_number(stats->targets));
    text_report(stats, report);
    cli_report_rows(report, NULL);
}

/* Adds an item of the list of input files. */
static void file_report(const struct stats *stats, const char *path, size_t path_bytes, uint64_t documents,
                        uint64_t tokens, struct cli_report *report)
{
    const double share = cli_percent(tokens, stats->info.tokens);
    cli_report_item(report);
    cli_fact(report, "path", "  file", cli_bytes_text(path, path_bytes), "  %.*s", (int)min64(path_bytes, 4096), path);
    cli_fact_number(report, "documents", "documents", documents);
    cli_fact_number(report, "tokens", "tokens", tokens);
    cli_fact(report, "percent", "%", cli_real(share), "%.2f", share);
    cli_report_close(report);
}

static void files_print(const struct stats *stats, uint64_t shown, struct cli_report *report)
{
    const struct origin_shares *files = &stats->documents.files;
    const struct length_bin *unknown = &stats->documents.unknown;
    struct origin_share rest = {.path = NULL};
    char text[96];
    for (uint64_t i = shown; i < files->count; i++) {
        rest.documents += files->files[i].documents;
        rest.tokens += files->files[i].tokens;
    }
    (void)snprintf(text, sizeof text, "(%s; -v lists them)", CLI_COUNTED(files->count - shown, "other file"));
    if (shown < files->count)
        file_report(stats, text, strlen(text), rest.documents, rest.tokens, report);
    if (unknown->documents)
        file_report(stats, "(not recorded)", strlen("(not recorded)"), unknown->documents, unknown->tokens, report);
}

/* Lists the input files; for people, without `all`, the first ones. */
static void files_report(const struct stats *stats, bool all, struct cli_report *report)
{
    const struct origin_shares *files = &stats->documents.files;
    const uint64_t shown = all || report->as_json ? files->count : min64(files->count, FILES_SHOWN);
    if (!report->as_json) {
        if (!stats->documents.counted || !stats->info.shards)
            return;
        cli_print("\ninput files%s%s%s\n", files->count ? ": " : "",
                  files->count ? CLI_COUNTED(files->count, "file") : ": not recorded in the index",
                  files->count ? ", the largest first" : "");
        if (!files->count)
            return;
    }
    cli_report_list(report, "files", "  file|>documents|>tokens|>%");
    for (uint64_t i = 0; i < shown; i++) {
        const struct origin_share *file = &files->files[i];
        file_report(stats, file->path, (size_t)file->path_bytes, file->documents, file->tokens, report);
    }
    if (!report->as_json)
        files_print(stats, shown, report);
    cli_report_close(report);
    cli_report_object(report, "files_unknown");
    cli_numbers(report, "documents|tokens", stats->documents.unknown.documents, stats->documents.unknown.tokens);
    cli_report_close(report);
}

/* Calls each() for every range of ids that do not occur, which includes `first` and excludes `end`. */
static void unused_walk(const struct token_counts *counts, void (*each)(void *user, uint64_t first, uint64_t end),
                        void *user)
{
    for (uint64_t id = 0; id < counts->vocabulary; id++) {
        const uint64_t next = token_counts_next(counts, id);
        if (next > id)
            each(user, id, next);
        id = next;
    }
}

/* Adds a range of ids to an array of JSON, or prints it. */
static void unused_range(void *user, uint64_t first, uint64_t end)
{
    struct cli_report *report = user;
    if (report->as_json) {
        cli_member_pair(report, NULL, first, end);
    } else if (end - first == 1) {
        (void)printf("  %" PRIu64 "\n", first);
    } else {
        (void)printf("  %" PRIu64 "..%" PRIu64 "\n", first, end);
    }
}

/* Writes the text of an id in quotes, cut to what a table has room for; "" without a tokenizer. */
static void id_text(const struct stats *stats, uint64_t id, char text[4 * LONGEST_TEXT + 8])
{
    const uint8_t *bytes;
    uint32_t count;
    text[0] = '\0';
    if (!stats->tokenizer || !tokenizer_token(stats->tokenizer, id, &bytes, &count))
        return;
    FILE *file = fmemopen(text, 4 * LONGEST_TEXT + 8, "w");
    if (!file) {
        cli_output_lost();
        return;
    }
    token_quoted(bytes, (uint32_t)min64(count, LONGEST_TEXT), file);
    if (count > LONGEST_TEXT)
        (void)fputs("...", file);
    (void)fclose(file);
}

/* Lists the most frequent ids. */
static void top_report(const struct stats *stats, const uint64_t *ids, uint64_t count, struct cli_report *report)
{
    if (!count && !report->as_json)
        return;
    cli_report_list(report, "frequent", stats->tokenizer ? ">  id|>count|>%|text" : ">  id|>count|>%");
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *bytes = NULL;
        uint32_t byte_count = 0;
        char text[4 * LONGEST_TEXT + 8];
        const uint64_t times = token_counts_of(&stats->counts, ids[i]);
        const double share = cli_percent(times, stats->counts.tokens);
        const bool known = stats->tokenizer && tokenizer_token(stats->tokenizer, ids[i], &bytes, &byte_count);
        id_text(stats, ids[i], text);
        cli_report_item(report);
        cli_fact(report, "id", "  id", cli_number(ids[i]), "  %" PRIu64, ids[i]);
        cli_fact_number(report, "count", "count", times);
        cli_fact(report, "percent", "%", cli_real(share), "%.2f", share);
        cli_fact(report, "text", "text",
                 known ? cli_bytes_text(byte_count ? (const char *)bytes : "", byte_count) : cli_null(), "%s", text);
        cli_report_close(report);
    }
    cli_report_close(report);
}

/* Adds which ids occur. */
static void ids_report(const struct stats *stats, const struct stats_arguments *given, const uint64_t *ids,
                       uint64_t count, struct cli_report *report)
{
    const struct token_counts *counts = &stats->counts;
    const uint64_t unused = counts->vocabulary - counts->used, eod = stats->info.eod_id;
    const bool part = counts->tokens < stats->info.tokens;
    if (!stats->with_ids) {
        cli_member(report, "ids", cli_null());
        return;
    }
    if (!report->as_json)
        cli_print("\nids: %s of the vocabulary's %s occur (%.2f%%), %s do not%s%s%s\n", CLI_COUNT(counts->used),
                  CLI_COUNT(counts->vocabulary), cli_percent(counts->used, counts->vocabulary), CLI_COUNT(unused),
                  part ? ", in the first " : "", part ? CLI_COUNT(counts->tokens) : "", part ? " tokens" : "");
    cli_report_object(report, "ids");
    cli_numbers(report, "tokens|used|unused", counts->tokens, counts->used, unused);
    cli_member(report, "eod", eod == TOKMAP_NO_ID ? cli_null() : cli_number(token_counts_of(counts, eod)));
    top_report(stats, ids, count, report);
    if (!report->as_json && !stats->tokenizer && stats->info.shards)
        cli_print("  the texts of ids need the tokenizer (-t FILE)\n");
    if (!report->as_json && (given->unused || given->verbose))
        cli_print("\nids that do not occur, as ranges A..B that exclude B%s\n", unused ? "" : ": none");
    cli_report_array(report, "unused_ranges");
    if (report->as_json || given->unused || given->verbose)
        unused_walk(counts, unused_range, report);
    cli_report_close(report);
    cli_report_close(report);
}

/* ---- the command ---- */

static enum tokmap_status stats_print(const struct stats *stats, const struct stats_arguments *given, bool later,
                                      struct tokmap_error *error)
{
    uint64_t *ids = calloc(given->top + 1, sizeof *ids);
    if (!ids)
        return error_set_memory(error, "the most frequent ids", given->top * sizeof *ids);
    const uint64_t count = stats->with_ids ? token_counts_top(&stats->counts, ids, given->top) : 0;
    struct cli_report report;
    if (later && !given->json)
        (void)putchar('\n');
    cli_report_begin(&report, given->json, "*|a token stands for|end of document|mask");
    head_report(stats, &report);
    if (!given->json)
        (void)putchar('\n');
    document_report_add(&stats->documents, stats->info.documents, &report);
    files_report(stats, given->verbose, &report);
    ids_report(stats, given, ids, count, &report);
    cli_report_end(&report);
    free(ids);
    (void)cli_flush();
    return TOKMAP_OK;
}

static enum tokmap_status dataset_stats(const struct stats_arguments *given, const char *name, bool later,
                                        struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, error);
    if (status)
        return status;
    dataset_warn(program, dataset, name);
    struct stats stats = {.name = name, .dataset = dataset};
    status = stats_gather(&stats, given, error);
    if (!status)
        status = stats_print(&stats, given, later, error);
    stats_free(&stats);
    tokmap_dataset_close(dataset);
    return status;
}

static int stats_body(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    const struct stats_arguments *given = user;
    struct tokmap_error error = {0};
    enum tokmap_status status = TOKMAP_OK;
    if (!operand_count)
        return cli_misused(command, "expected one or more datasets");
    if (given->threads_given && (!given->threads || given->threads > RANGE_THREADS_MOST))
        return cli_misused(command, "--threads must be between 1 and %d", RANGE_THREADS_MOST);
    if (given->top > TOP_MOST)
        return cli_misused(command, "--top must be at most %d", TOP_MOST);
    if (given->unused && given->no_ids)
        return cli_misused(command, "--unused needs the ids, which --no-ids leaves out");
    for (size_t i = 0; i < operand_count; i++)
        if (cli_names_run(operands[i]))
            return cli_misused(command, "'%s' is a run; name the datasets of its sources, which `tokmap info %s` lists",
                               operands[i], operands[i]);
    const int misused = tokenizer_arguments_check(command, &given->tokenizer);
    if (misused)
        return misused;
    cli_signals_catch();
    for (size_t i = 0; i < operand_count && !status; i++)
        status = dataset_stats(given, operands[i], i > 0, &error);
    cli_signals_end(program, NULL);
    return cli_finish(program, status ? command_failed(command, &error) : CLI_DONE);
}

int command_stats(int argc, char **argv)
{
    struct stats_arguments given = {.tokenizer = TOKENIZER_ARGUMENTS_INIT, .top = 20};
    const struct cli_option options[] = {
        CLI_HEADING("What is counted"),
        {0, "no-ids", CLI_FLAG, &given.no_ids, NULL, NULL, "do not read the tokens: documents and files only", NULL},
        {'j', "threads", CLI_NUMBER, &given.threads, &given.threads_given, "N",
         "number of threads (default: one per processor)", NULL},
        CLI_HEADING("What is printed"),
        {0, "top", CLI_NUMBER, &given.top, NULL, "N", "the N most frequent ids (default: 20; 0: none)", NULL},
        {0, "unused", CLI_FLAG, &given.unused, NULL, NULL, "list the ids that do not occur, as ranges", NULL},
        {'v', "verbose", CLI_FLAG, &given.verbose, NULL, NULL, "all input files, and what --unused lists", NULL},
        CLI_HEADING("The tokenizer, for texts of ids and bytes of text"),
        TOKENIZER_OPTIONS_RECORDED(given.tokenizer),
        CLI_HEADING("General"),
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print a JSON object for each dataset", NULL},
        CLI_OPTION_PROGRESS(given.progress),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "the same as --progress none", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "DATASET... [OPTION]...",
        .summary = "Prints how long the documents of a dataset are, which share each input file has, how many bytes of "
                   "text a token stands for, how many ids of the vocabulary occur and which most often, and the shares "
                   "of the end-of-document id and of masked tokens.",
        .details = "Examples:\n"
                   "  tokmap stats data/web\n"
                   "  tokmap stats 'data/web#docs=0..10%' --top 100\n"
                   "  tokmap stats data/web data/code --no-ids --json\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, stats_body, &given);
}
