/*
 * command_stats.c - tokmap stats: how long the documents of a dataset are, from which files they came, and how often
 * each id occurs.
 *
 * The first two come from the index, in one pass over its documents; the ids from one pass over the tokens.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/range_share.h"
#include "commands/data/token_decode.h"
#include "commands/options/dataset_tokenizer.h"
#include "commands/options/field_options.h"
#include "commands/options/target.h"
#include "commands/report/dataset_about.h"
#include "commands/report/document_lengths.h"
#include "commands/report/token_counts.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "platform/process.h"

static const char program[] = "tokmap stats";

#define TOP_MOST 10000
#define FILES_SHOWN 20
#define LONGEST_TEXT 48 /* bytes of a token's text in the table */

struct stats_arguments {
    struct tokenizer_arguments tokenizer;
    uint64_t threads, top;
    const char *plot, *line; /* a picture of the lengths, or NULL; the command line, for its caption */
    bool threads_given, no_ids, unused, verbose, json, quiet;
    int progress; /* enum cli_progress_mode */
};

/* How many bytes of text the tokens were made from, and how that is known. */
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

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* ---- gathering ---- */

/* Adds up what the indexes say about their text. They say it of whole shards only. */
static enum tokmap_status text_of_indexes(struct stats *stats, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    bool known = stats->info.shards > 0;
    for (uint64_t number = 0; number < stats->info.shards && known && !status; number++) {
        struct tokmap_shard_info shard = {.size = sizeof shard};
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
    struct tokenizer_info info;
    tokenizer_info(stats->tokenizer, &info);
    unsigned __int128 bytes = 0;
    for (uint64_t id = 0; (id = token_counts_next(counts, id)) < counts->vocabulary; id++) {
        const uint8_t *text;
        uint32_t count;
        if (!tokenizer_token(stats->tokenizer, id, &text, &count))
            return error_set(error, TOKMAP_ERROR_MISMATCH, stats->name, TOKMAP_NO_OFFSET,
                             "id %" PRIu64 " occurs, but the tokenizer '%s' does not have it; name the tokenizer that "
                             "made the dataset with options.tokenizer",
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
    stats->info.size = sizeof stats->info;
    stats->with_ids = !given->no_ids;
    enum tokmap_status status = tokmap_dataset_info(stats->dataset, &stats->info);
    if (status)
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "%s", tokmap_status_text(status));
    status = stats_tokenizer(stats, given, error);
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

/* ---- for people ---- */

static void row_add(struct cli_table *table, const char *name, const char *value)
{
    cli_table_row(table, (const char *const[]){name, value});
}

static void head_print(const struct stats *stats)
{
    const struct tokmap_dataset_info *info = &stats->info;
    char text[256], a[32], b[32], ratio[64];
    struct cli_table *table = cli_table_new(2);
    row_add(table, "dataset", stats->name);
    row_add(table, "tokens", cli_count(info->tokens, a));
    row_add(table, "documents",
            info->documents || !info->tokens ? cli_count(info->documents, a)
                                             : "not recorded; `tokmap index` finds them");
    row_add(table, "shards", cli_count(info->shards, a));
    if (stats->text_from != TEXT_UNKNOWN)
        (void)snprintf(text, sizeof text, "%s%s", bytes_a_token_text(stats->text_bytes, stats->text_tokens, ratio),
                       stats->text_from == TEXT_FROM_TOKENIZER ? ", as its tokenizer decodes them" : "");
    else
        (void)snprintf(text, sizeof text, "unknown; the index does not say, and %s",
                       !info->shards      ? "a synthetic dataset has no text"
                       : !stats->with_ids ? "--no-ids leaves the tokens out"
                       : stats->tokenizer ? "there are no tokens"
                                          : "the tokenizer is needed (-t FILE)");
    row_add(table, "a token stands for", text);
    if (stats->with_ids && info->eod_id != TOKMAP_NO_ID) {
        const uint64_t ends = token_counts_of(&stats->counts, info->eod_id);
        (void)snprintf(text, sizeof text, "id %" PRIu64 ", %s time%s (%.2f%% of the tokens)", info->eod_id,
                       cli_count(ends, a), ends == 1 ? "" : "s", percent(ends, stats->counts.tokens));
        row_add(table, "end of document", text);
    } else {
        (void)snprintf(text, sizeof text, "id %" PRIu64, info->eod_id);
        row_add(table, "end of document", info->eod_id == TOKMAP_NO_ID ? "no id, or shards differ" : text);
    }
    if (info->masked) {
        (void)snprintf(text, sizeof text, "%s tokens are masked (%.2f%%), %s count as targets",
                       cli_count(info->tokens - stats->targets, a),
                       percent(info->tokens - stats->targets, info->tokens), cli_count(stats->targets, b));
        row_add(table, "mask", text);
    }
    cli_table_print(table, NULL, stdout);
    cli_table_free(table);
}

static void file_row(struct cli_table *table, const char *path, uint64_t documents, uint64_t tokens, uint64_t whole)
{
    char a[32], b[32], share[32];
    (void)snprintf(share, sizeof share, "%.2f", percent(tokens, whole));
    cli_table_row(table, (const char *const[]){path, cli_count(documents, a), cli_count(tokens, b), share});
}

static void files_print(const struct stats *stats, bool all)
{
    static const bool right[] = {false, true, true, true};
    const struct origin_shares *files = &stats->documents.files;
    const struct length_bin *unknown = &stats->documents.unknown;
    char count[64], text[4096 + 8];
    if (!stats->documents.counted || !stats->info.shards)
        return;
    cli_print("\ninput files");
    if (!files->count) {
        cli_print(": not recorded in the index\n");
        return;
    }
    cli_print(": %s, the largest first\n", cli_counted(files->count, "file", count));
    const uint64_t shown = all ? files->count : min64(files->count, FILES_SHOWN), whole = stats->info.tokens;
    struct origin_share rest = {.path = NULL};
    struct cli_table *table = cli_table_new(4);
    cli_table_row(table, (const char *const[]){"  file", "documents", "tokens", "%"});
    for (uint64_t i = 0; i < files->count; i++) {
        const struct origin_share *file = &files->files[i];
        if (i < shown) {
            (void)snprintf(text, sizeof text, "  %.*s", (int)min64(file->path_bytes, 4096), file->path);
            file_row(table, text, file->documents, file->tokens, whole);
        } else {
            rest.documents += file->documents;
            rest.tokens += file->tokens;
        }
    }
    if (shown < files->count) {
        (void)snprintf(text, sizeof text, "  (%s; -v lists them)",
                       cli_counted(files->count - shown, "other file", count));
        file_row(table, text, rest.documents, rest.tokens, whole);
    }
    if (unknown->documents)
        file_row(table, "  (not recorded)", unknown->documents, unknown->tokens, whole);
    cli_table_print(table, right, stdout);
    cli_table_free(table);
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

static void unused_range_print(void *user, uint64_t first, uint64_t end)
{
    (void)user;
    if (end - first == 1)
        (void)printf("  %" PRIu64 "\n", first);
    else
        (void)printf("  %" PRIu64 "..%" PRIu64 "\n", first, end);
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

static void top_print(const struct stats *stats, const uint64_t *ids, uint64_t count)
{
    static const bool right[] = {true, true, true, false};
    struct cli_table *table = cli_table_new(4);
    cli_table_row(table, (const char *const[]){"  id", "count", "%", stats->tokenizer ? "text" : ""});
    for (uint64_t i = 0; i < count; i++) {
        char id[32], times[32], share[32], text[4 * LONGEST_TEXT + 8];
        const uint64_t number = token_counts_of(&stats->counts, ids[i]);
        (void)snprintf(id, sizeof id, "  %" PRIu64, ids[i]);
        (void)snprintf(share, sizeof share, "%.2f", percent(number, stats->counts.tokens));
        id_text(stats, ids[i], text);
        cli_table_row(table, (const char *const[]){id, cli_count(number, times), share, text});
    }
    cli_table_print(table, right, stdout);
    cli_table_free(table);
}

static void ids_print(const struct stats *stats, const struct stats_arguments *given, const uint64_t *ids,
                      uint64_t count)
{
    const struct token_counts *counts = &stats->counts;
    char a[32], b[32], c[32], part[96] = "";
    if (counts->tokens < stats->info.tokens)
        (void)snprintf(part, sizeof part, ", in the first %s tokens", cli_count(counts->tokens, a));
    cli_print("\nids: %s of the vocabulary's %s occur (%.2f%%), %s do not%s\n", cli_count(counts->used, a),
              cli_count(counts->vocabulary, b), percent(counts->used, counts->vocabulary),
              cli_count(counts->vocabulary - counts->used, c), part);
    if (count)
        top_print(stats, ids, count);
    if (!stats->tokenizer && stats->info.shards)
        cli_print("  the texts of ids need the tokenizer (-t FILE)\n");
    if (!given->unused && !given->verbose)
        return;
    cli_print("\nids that do not occur, as ranges A..B that exclude B%s\n",
              counts->used < counts->vocabulary ? "" : ": none");
    unused_walk(counts, unused_range_print, NULL);
}

/* ---- JSON ---- */

static void files_json(const struct stats *stats, struct cli_json *json)
{
    const struct document_report *documents = &stats->documents;
    cli_json_array(json, "files");
    for (uint64_t i = 0; i < documents->files.count; i++) {
        const struct origin_share *file = &documents->files.files[i];
        cli_json_object(json, NULL);
        cli_json_bytes(json, "path", file->path, (size_t)file->path_bytes);
        cli_json_number(json, "documents", file->documents);
        cli_json_number(json, "tokens", file->tokens);
        cli_json_real(json, "percent", percent(file->tokens, stats->info.tokens));
        cli_json_end(json);
    }
    cli_json_end(json);
    cli_json_object(json, "files_unknown");
    cli_json_number(json, "documents", documents->unknown.documents);
    cli_json_number(json, "tokens", documents->unknown.tokens);
    cli_json_end(json);
}

static void unused_range_json(void *user, uint64_t first, uint64_t end)
{
    struct cli_json *json = user;
    cli_json_array(json, NULL);
    cli_json_number(json, NULL, first);
    cli_json_number(json, NULL, end);
    cli_json_end(json);
}

static void ids_json(const struct stats *stats, const uint64_t *ids, uint64_t count, struct cli_json *json)
{
    const struct token_counts *counts = &stats->counts;
    if (!stats->with_ids) {
        cli_json_null(json, "ids");
        return;
    }
    cli_json_object(json, "ids");
    cli_json_number(json, "tokens", counts->tokens);
    cli_json_number(json, "used", counts->used);
    cli_json_number(json, "unused", counts->vocabulary - counts->used);
    if (stats->info.eod_id == TOKMAP_NO_ID)
        cli_json_null(json, "eod");
    else
        cli_json_number(json, "eod", token_counts_of(counts, stats->info.eod_id));
    cli_json_array(json, "frequent");
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *text;
        uint32_t bytes;
        cli_json_object(json, NULL);
        cli_json_number(json, "id", ids[i]);
        cli_json_number(json, "count", token_counts_of(counts, ids[i]));
        cli_json_real(json, "percent", percent(token_counts_of(counts, ids[i]), counts->tokens));
        if (stats->tokenizer && tokenizer_token(stats->tokenizer, ids[i], &text, &bytes))
            cli_json_bytes(json, "text", bytes ? (const char *)text : "", bytes);
        else
            cli_json_null(json, "text");
        cli_json_end(json);
    }
    cli_json_end(json);
    cli_json_array(json, "unused_ranges");
    unused_walk(counts, unused_range_json, json);
    cli_json_end(json);
    cli_json_end(json);
}

static void stats_json(const struct stats *stats, const uint64_t *ids, uint64_t count)
{
    static const char *const from[] = {NULL, "index", "tokenizer"};
    const struct tokmap_dataset_info *info = &stats->info;
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "dataset", stats->name);
    cli_json_number(&json, "tokens", info->tokens);
    cli_json_number(&json, "documents", info->documents);
    cli_json_number(&json, "shards", info->shards);
    cli_json_number(&json, "vocabulary", info->vocabulary);
    if (info->eod_id == TOKMAP_NO_ID)
        cli_json_null(&json, "eod_id");
    else
        cli_json_number(&json, "eod_id", info->eod_id);
    cli_json_bool(&json, "masked", info->masked);
    cli_json_number(&json, "targets", stats->targets);
    if (stats->text_from == TEXT_UNKNOWN) {
        cli_json_null(&json, "text_bytes_a_token");
        cli_json_null(&json, "text_from");
    } else {
        cli_json_real(&json, "text_bytes_a_token", (double)stats->text_bytes / (double)stats->text_tokens);
        cli_json_text(&json, "text_from", from[stats->text_from]);
    }
    document_report_json(&stats->documents, &json);
    files_json(stats, &json);
    ids_json(stats, ids, count, &json);
    cli_json_end(&json);
}

/* ---- the command ---- */

static enum tokmap_status stats_print(const struct stats *stats, const struct stats_arguments *given, bool later,
                                      struct tokmap_error *error)
{
    uint64_t *ids = calloc(given->top + 1, sizeof *ids);
    if (!ids)
        return error_set_memory(error, "the most frequent ids", given->top * sizeof *ids);
    const uint64_t count = stats->with_ids ? token_counts_top(&stats->counts, ids, given->top) : 0;
    if (given->json) {
        stats_json(stats, ids, count);
    } else {
        if (later)
            (void)putchar('\n');
        head_print(stats);
        (void)putchar('\n');
        document_report_print(&stats->documents, stats->info.documents);
        files_print(stats, given->verbose);
        if (stats->with_ids)
            ids_print(stats, given, ids, count);
    }
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
    if (!status && given->plot)
        status =
            document_report_plot(&stats.documents, stats.info.documents, stats.name, given->line, given->plot, error);
    stats_free(&stats);
    tokmap_dataset_close(dataset);
    return status;
}

static int stats_body(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    const struct stats_arguments *given = user;
    struct tokmap_error error = {0};
    enum cli_plot_format format;
    enum tokmap_status status = TOKMAP_OK;
    if (!operand_count)
        return cli_misused(command, "expected one or more datasets");
    if (given->threads_given && (!given->threads || given->threads > RANGE_THREADS_MOST))
        return cli_misused(command, "--threads must be between 1 and %d", RANGE_THREADS_MOST);
    if (given->plot && operand_count > 1)
        return cli_misused(command, "--plot draws the lengths of one dataset, and there are several");
    if (given->plot && !cli_plot_format_of(given->plot, &format))
        return cli_misused(command, "--plot takes a name that ends in .svg or .png, not '%s'", given->plot);
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
    (void)os_signals_release();
    if (os_signal_caught()) {
        (void)fflush(stdout);
        os_signal_die(os_signal_caught());
    }
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
        {0, "plot", CLI_TEXT, &given.plot, NULL, "FILE", "also draw the lengths as FILE.svg or FILE.png", NULL},
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
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands = CLI_DATASETS,
    };
    given.line = cli_command_line(program, argc, argv, (char[2048]){0}, 2048);
    return cli_run(&command, argc, argv, stats_body, &given);
}
