/* SPDX-License-Identifier: MIT */
/*
 * command_info.c - tokmap info: describes a dataset or a run without reading its tokens.
 *
 * The number of documents per row comes from the document index, in one pass and in memory that does not grow with the
 * dataset. Each document is visited once, and the windows that are entirely inside one document are counted together.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/options/target.h"
#include "commands/report/dataset_about.h"
#include "commands/report/document_lengths.h"
#include "commands/report/mixture_report.h"
#include "commands/report/token_counts.h"
#include "commands/report/values_report.h"
#include "common/bytes.h"
#include "common/error.h"
#include "folder_list.h"
#include "format/plan_file.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "text/json_scan.h"
#include "text/path.h"

static const char program[] = "tokmap info";

/* ---- documents per row ---- */

/* The windows of a synthetic dataset that are counted, and the most documents that they may hold together: fewer
 * windows are counted where each holds very many documents, and none where the first one alone holds more. It has very
 * many of both, all of the same distribution. */
#define SYNTHETIC_WINDOWS ((uint64_t)1 << 20)
#define SYNTHETIC_ROW_DOCUMENTS ((uint64_t)1 << 24)

/* The rows of the about section that are printed. It has no limit, and what pack writes has about 30 values. */
#define ABOUT_ROWS 1000

struct row_counts {
    uint64_t windows, tail;
    uint64_t counted; /* the first `counted` windows are in the histogram */
    uint64_t p50, p999, largest;
};

static enum tokmap_status count_documents(const struct tokmap_dataset *dataset, uint64_t documents, uint64_t seq_len,
                                          uint64_t windows, struct histogram *counts, int mode,
                                          struct tokmap_error *error)
{
    const uint64_t end = windows * seq_len;
    uint64_t window = 0, in_window = 0; /* the current window, and its documents so far */
    enum tokmap_status status = TOKMAP_OK;
    struct cli_progress progress;
    cli_progress_start(&progress, "counting documents", "documents", documents, mode);
    for (uint64_t number = 0; number < documents; number++) {
        struct tokmap_document document;
        status = tokmap_dataset_document(dataset, number, &document, error);
        if (status || document.first_token >= end)
            break;
        if (document.tokens == 0)
            continue;
        const uint64_t first = document.first_token / seq_len;
        const uint64_t last = (min64(document.first_token + document.tokens, end) - 1) / seq_len;
        if (first > window) {
            histogram_add(counts, in_window, 1);
            window = first;
            in_window = 0;
        }
        in_window++;
        if (last > first) {
            histogram_add(counts, in_window, 1);
            histogram_add(counts, 1, last - first - 1); /* the windows that are entirely inside this document */
            window = last;
            in_window = 1;
        }
        if (number % 65536 == 0)
            cli_progress_update(&progress, number);
    }
    cli_progress_end(&progress);
    if (!status && in_window)
        histogram_add(counts, in_window, 1);
    return status;
}

/* Returns the windows of a synthetic dataset that are counted. */
static enum tokmap_status synthetic_windows(const struct tokmap_dataset *dataset, uint64_t documents, uint64_t seq_len,
                                            uint64_t windows, uint64_t *counted, struct tokmap_error *error)
{
    struct tokmap_document last = {0};
    enum tokmap_status status = TOKMAP_OK;
    *counted = min64(windows, SYNTHETIC_WINDOWS);
    if (documents > SYNTHETIC_ROW_DOCUMENTS) {
        status = tokmap_dataset_document(dataset, SYNTHETIC_ROW_DOCUMENTS, &last, error);
        *counted = min64(*counted, last.first_token / seq_len);
    }
    return status;
}

/* Counts the windows, the tail, and the documents per row of a dataset in epoch 0. */
static enum tokmap_status rows_count(const struct tokmap_dataset *dataset, uint64_t seq_len, uint64_t lookahead,
                                     struct row_counts *rows, int mode, struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    struct histogram counts;
    enum tokmap_status status = TOKMAP_OK;
    memset(rows, 0, sizeof *rows);
    rows->windows = info.tokens > lookahead ? (info.tokens - lookahead) / seq_len : 0;
    rows->tail = info.tokens - rows->windows * seq_len;
    if (!rows->windows)
        return TOKMAP_OK;
    rows->counted = rows->windows;
    if (!info.shards)
        status = synthetic_windows(dataset, info.documents, seq_len, rows->windows, &rows->counted, error);
    if (status || !rows->counted)
        return status;
    if (!histogram_new(&counts))
        return error_set_memory(error, "counting documents per row", 0);
    status = count_documents(dataset, info.documents, seq_len, rows->counted, &counts, mode, error);
    rows->p50 = histogram_percentile(&counts, 500);
    rows->p999 = histogram_percentile(&counts, 999);
    rows->largest = counts.largest;
    histogram_free(&counts);
    return status;
}

/* ---- a dataset ---- */

struct dataset_facts {
    struct tokmap_dataset_info info;
    uint64_t index_bytes;           /* of all shards */
    uint64_t sealed, sealed_bytes;  /* shards that are sealed, and the bytes of their tokens on disk */
    const char *cached;             /* an index in the cache folder, if a shard is in object storage */
    struct tokmap_shard_info first; /* shard 0, if the dataset has shards */
    char tokenizer[ABOUT_NAME];     /* of shard 0; "": unknown */
    char title[ABOUT_TITLE];        /* the same for people */
    bool text_known;                /* the index of every shard records the bytes of its text */
    uint64_t text_bytes;
    struct lengths lengths; /* of documents */
    uint64_t counted;       /* tokens that count as targets */
};

/* Returns true if a path is that of sealed tokens, or of such a file while it is replaced. */
static bool is_sealed_name(const char *path)
{
    struct shard_name found;
    return shard_file_find(path, strlen(path), &found) && found.file == SHARD_SEALED &&
           (found.state == SHARD_FINAL || found.state == SHARD_REPLACED);
}

static bool is_remote(const struct tokmap_shard_info *shard)
{
    return shard->tokens_path && remote_is(shard->tokens_path);
}

/* Finds the name of a shard's index, not that of a copy in the cache folder. The caller frees *made. */
static enum tokmap_status index_name(const struct tokmap_shard_info *shard, const char **name, char **made,
                                     struct tokmap_error *error)
{
    *made = is_remote(shard) ? shard_file_beside(shard->tokens_path, SHARD_INDEX, SHARD_FINAL) : NULL;
    *name = *made ? *made : shard->index_path;
    return is_remote(shard) && !*made ? error_set_memory(error, "the name of an index", 0) : TOKMAP_OK;
}

static void files_add(struct dataset_facts *facts, const struct tokmap_shard_info *shard)
{
    struct os_stat found;
    facts->index_bytes += shard->index_bytes;
    facts->cached = is_remote(shard) ? shard->index_path : facts->cached;
    if (!shard->tokens_path || !is_sealed_name(shard->tokens_path))
        return;
    facts->sealed++;
    char *copy = is_remote(shard) ? shard_file_beside(shard->index_path, SHARD_SEALED, SHARD_FINAL) : NULL;
    if (!os_stat(copy ? copy : shard->tokens_path, &found))
        facts->sealed_bytes += found.bytes;
    free(copy);
}

/* Reads what all indexes say. mode: enum cli_progress_mode. */
static enum tokmap_status facts_gather(const struct tokmap_dataset *dataset, struct dataset_facts *facts, int mode,
                                       struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    memset(facts, 0, sizeof *facts);
    facts->info = info_of_dataset(dataset);
    for (uint64_t shard = facts->info.shards; !status && shard-- > 0;) {
        facts->first.size = sizeof facts->first;
        status = tokmap_dataset_shard(dataset, shard, &facts->first, error);
        struct about_facts about;
        if (!status)
            files_add(facts, &facts->first);
        if (!status)
            status = about_read(&facts->first, &about, error);
        if (status)
            break;
        facts->text_known = about.counted && (facts->text_known || shard + 1 == facts->info.shards) &&
                            !add_overflows(facts->text_bytes, about.text_bytes, &facts->text_bytes);
        memcpy(facts->tokenizer, about.name, sizeof facts->tokenizer);
        (void)about_title(&about, facts->title);
        about_free(&about);
    }
    if (!status)
        status = dataset_targets(dataset, 0, mode, &facts->counted, error);
    return status ? status : dataset_lengths(dataset, mode, &facts->lengths, error);
}

static const char *reading_name(enum tokmap_reading reading)
{
    static const char *const names[] = {"auto", "mapped", "pread"};
    return (unsigned)reading < sizeof names / sizeof names[0] ? names[reading] : "unknown";
}

/* Adds "2 tokens per epoch": the count, the noun (given in the singular), and the rest. */
static void fact_counted(struct cli_report *report, const char *name, const char *label, uint64_t number,
                         const char *noun, const char *rest)
{
    cli_fact(report, name, label, cli_number(number), "%s%s", CLI_COUNTED(number, noun), rest);
}

static void fact_id(struct cli_report *report, const char *name, const char *label, uint64_t id)
{
    cli_fact(report, name, label, cli_id(id), "%s", id == TOKMAP_NO_ID ? "none" : CLI_COUNT(id));
}

/* Reports the digits of an id; null in JSON if it is unknown. remark: text that people read after it. */
static void fact_hex(struct cli_report *report, const char *name, const char *label, const uint8_t id[16],
                     const char *remark)
{
    char hex[33];
    const bool known = strcmp(id_hex(id, hex), "unknown") != 0;
    cli_fact(report, name, label, cli_text(known ? hex : NULL), "%s%s", hex, remark);
}

/* The rows of a dataset for people, in order. "*" are its columns. */
#define DATASET_ROWS                                                                                                   \
    "source|dataset|part|tokens|documents|document lengths|text|files of|shards|width|tokenizer|vocabulary|"           \
    "largest id|eod id|bos id|mask|values|token files|sealed|indexes|page hashes|read by|cache|content|fingerprint|*|" \
    "plan|windows|tokens in rows|an epoch|tail|documents per row"

static void lengths_report(const struct dataset_facts *facts, struct cli_report *report)
{
    const struct lengths *lengths = &facts->lengths;
    char list[LENGTHS_TEXT];
    const bool part = lengths->documents < facts->info.documents;
    cli_row(report, "document lengths", "%s%s%s%s%s", lengths_text(lengths, list), lengths->documents ? " tokens" : "",
            part ? ", of the first " : "", part ? CLI_COUNT(lengths->documents) : "", part ? " documents" : "");
    lengths_members(lengths, report);
}

static void tokenizer_report(const struct dataset_facts *facts, struct cli_report *report)
{
    cli_fact(report, "tokenizer_name", "tokenizer", cli_text(facts->tokenizer[0] ? facts->tokenizer : NULL), "%s",
             facts->title[0]      ? facts->title
             : facts->info.shards ? "not recorded"
                                  : "none");
}

static void text_report(const struct dataset_facts *facts, struct cli_report *report)
{
    const uint64_t tokens = facts->info.tokens, bytes = facts->text_bytes;
    char a_token[64];
    (void)bytes_a_token_text(bytes, tokens, a_token);
    cli_fact(report, "text_bytes", facts->text_known ? "text" : NULL, cli_number_if(facts->text_known, bytes),
             "%s%s%s%s", CLI_BYTES(bytes), tokens ? ", " : "", tokens ? a_token : "", tokens ? " a token" : "");
    cli_member(report, "text_bytes_a_token",
               cli_real(facts->text_known && tokens ? (double)bytes / (double)tokens : (double)NAN));
}

/* Reports what the files of the dataset take on disk. */
static void files_report(const struct dataset_facts *facts, struct cli_report *report)
{
    const struct tokmap_dataset_info *info = &facts->info;
    const uint64_t bytes = info->tokens * info->width;
    cli_fact(report, "token_bytes", "token files", cli_number(bytes), "%s",
             info->shards ? CLI_BYTES(bytes) : "none (computed)");
    cli_fact(report, "sealed_shards", facts->sealed ? "sealed" : NULL, cli_number(facts->sealed),
             "%s of %s, %s on disk", CLI_COUNT(facts->sealed), CLI_COUNTED(info->shards, "shard"),
             CLI_BYTES(facts->sealed_bytes));
    cli_fact(report, "index_bytes", info->shards ? "indexes" : NULL, cli_number(facts->index_bytes), "%s",
             info->identity == TOKMAP_IDENTITY_SAMPLED ? "none of tokmap" : CLI_BYTES(facts->index_bytes));
}

/* Lists the shards: for people one line per shard if there are several. */
static enum tokmap_status shards_report(const struct tokmap_dataset *dataset, uint64_t shards,
                                        struct cli_report *report, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (!report->as_json && shards < 2)
        return TOKMAP_OK;
    if (!report->as_json)
        putchar('\n');
    cli_report_list(report, "shards", ">shard|>tokens|>documents|file");
    for (uint64_t number = 0; number < shards && !status; number++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        status = tokmap_dataset_shard(dataset, number, &shard, error);
        const char *index;
        char *made = NULL;
        if (!status)
            status = index_name(&shard, &index, &made, error);
        if (status)
            break;
        cli_report_item(report);
        cli_fact_number(report, NULL, "shard", number);
        cli_fact_text(report, "tokens_path", "file", shard.tokens_path);
        cli_member(report, "index_path", cli_text(index));
        free(made);
        cli_member(report, "first_token", cli_number(shard.first_token));
        cli_fact_number(report, "tokens", "tokens", shard.tokens);
        cli_member(report, "first_document", cli_number(shard.first_document));
        cli_fact_number(report, "documents", "documents", shard.documents);
        cli_numbers(report, "index_bytes|blocks", shard.index_bytes, shard.blocks);
        fact_hex(report, "content", NULL, shard.content, "");
        cli_member(report, "about", cli_raw(shard.about, (size_t)shard.about_bytes));
        cli_report_close(report);
    }
    cli_report_close(report);
    return status;
}

/* Reports what describes a dataset. Its rows are those of DATASET_ROWS. */
static enum tokmap_status facts_report(const struct tokmap_dataset *dataset, const struct dataset_facts *facts,
                                       struct cli_report *report, struct tokmap_error *error)
{
    const struct tokmap_dataset_info *info = &facts->info;
    const bool recorded = info->documents || !info->tokens, foreign = info->identity == TOKMAP_IDENTITY_SAMPLED;
    const bool any_id = foreign && info->vocabulary >= (info->width == 2 ? UINT64_C(1) << 16 : UINT64_C(1) << 31);
    const bool plain = !strcmp(info->kind, "shards") || !strcmp(info->kind, "synthetic");
    cli_fact_number(report, "tokens", "tokens", info->tokens);
    cli_fact(report, "documents", "documents", cli_number_if(recorded, info->documents), "%s",
             recorded ? CLI_COUNT(info->documents) : "not recorded; `tokmap index` finds them");
    cli_row(report, "shards", "%s", CLI_COUNT(info->shards));
    cli_fact(report, "width", "width", cli_number(info->width), "%u bytes per token, '<u%u' in NumPy", info->width,
             info->width);
    fact_counted(report, "vocabulary", "vocabulary", info->vocabulary, "id",
                 any_id ? " at most; the files do not record it" : "");
    cli_fact(report, "largest_id", foreign ? NULL : "largest id", cli_number_if(!foreign, info->largest_id), "%s",
             CLI_COUNT(info->largest_id));
    fact_id(report, "eod_id", "eod id", info->eod_id);
    fact_id(report, "bos_id", "bos id", info->bos_id);
    files_report(facts, report);
    cli_fact(report, "reading", info->shards ? "read by" : NULL, cli_text(reading_name(info->reading)), "%s",
             info->reading == TOKMAP_READ_MAPPED ? "mmap" : reading_name(info->reading));
    char *folder = facts->cached ? path_folder(facts->cached) : NULL;
    if (facts->cached && !folder)
        return error_set_memory(error, "the name of a folder", 0);
    cli_fact_text(report, "cache", folder ? "cache" : NULL, folder);
    free(folder);
    fact_hex(report, "content", "content", info->content,
             info->identity == 2 ? " (of a sample; `tokmap index` makes it that of every byte)" : "");
    fact_hex(report, "tokenizer", "fingerprint", info->tokenizer, "");
    cli_fact_text(report, "kind", plain ? NULL : "files of", info->kind);
    cli_member(report, "identity", cli_text(info->identity == 1 ? "full" : "sampled"));
    cli_member(report, "masked", cli_bool(info->masked));
    cli_fact(report, "targets", info->masked ? "mask" : NULL, cli_number(facts->counted),
             "%s tokens count as targets (%.2f%%)", CLI_COUNT(facts->counted),
             cli_percent(facts->counted, info->tokens));
    cli_fact(report, "page_hashes", info->shards ? "page hashes" : NULL, cli_bool(info->page_hashes), "%s",
             info->page_hashes ? "compared as pages are read" : "some shard has none");
    tokenizer_report(facts, report);
    text_report(facts, report);
    lengths_report(facts, report);
    cli_member(report, "warning", cli_text(info->warning));
    enum tokmap_status status = columns_report(dataset, report, error);
    if (!status)
        status = values_report(program, dataset, report, error);
    if (status || !report->as_json)
        return status;
    return shards_report(dataset, info->shards, report, error);
}

/* Reports the rows of a dataset, or of a plan. batch: rows of a global batch, 0 if unknown. whole: windows follow one
 * another, so documents per row were counted. */
static void rows_report(const struct row_counts *rows, uint64_t seq_len, uint64_t lookahead, uint64_t batch,
                        const char *plan, bool whole, struct cli_report *report)
{
    const uint64_t steps = batch ? rows->windows / batch : 0, left = batch ? rows->windows % batch : 0;
    const bool part = rows->counted < rows->windows;
    if (plan) {
        cli_row(report, "plan", "%s", plan);
        cli_row(report, "an epoch", "%s of %" PRIu64 " tokens", CLI_COUNTED(rows->windows, "row"), seq_len);
    }
    cli_report_object(report, "rows");
    cli_numbers(report, "seq_len|lookahead", seq_len, lookahead);
    cli_fact(report, "windows", plan ? NULL : "windows", cli_number(rows->windows), "%s per epoch",
             CLI_COUNT(rows->windows));
    fact_counted(report, "tail", plan ? NULL : "tail", rows->tail, "token", " per epoch that no row shows");
    if (!whole) {
        cli_report_close(report);
        return;
    }
    cli_fact(report, "tokens", "tokens in rows", cli_number(rows->windows * seq_len), "%s per epoch",
             CLI_COUNT(rows->windows * seq_len));
    if (batch) {
        cli_fact(report, "steps", "an epoch", cli_number(steps), "%s%s%s%s", CLI_COUNTED(steps, "step"),
                 left ? " and " : "", left ? CLI_COUNTED(left, "window") : "", left ? " left over" : "");
        cli_member(report, "windows_left", cli_number(left));
    }
    cli_report_object(report, "documents_a_row");
    cli_numbers(report, "p50|p999|max", rows->p50, rows->p999, rows->largest);
    if (part)
        cli_member(report, "windows_counted", cli_number(rows->counted));
    if (rows->counted && rows->largest)
        cli_row(report, "documents per row", "p50 %s, p99.9 %s, max %s%s%s%s", CLI_COUNT(rows->p50),
                CLI_COUNT(rows->p999), CLI_COUNT(rows->largest), part ? ", of the first " : "",
                part ? CLI_COUNT(rows->counted) : "", part ? " windows" : "");
    else
        cli_row(report, "documents per row", "%s",
                !rows->windows   ? "none; a sequence is longer than the dataset"
                : !rows->counted ? "not counted; each row has many millions"
                                 : "not recorded; `tokmap index` finds documents");
    cli_report_close(report);
    cli_report_close(report);
}

/* ---- what an index says about itself ---- */

/* Writes a value of the about section for people. Returns false if there is nothing to say. */
static bool about_value(enum json_kind kind, const char *bytes, size_t count, char *text, size_t room)
{
    uint64_t number;
    char digits[32];
    if (kind == JSON_NULL)
        return false;
    if (kind == JSON_TRUE || kind == JSON_FALSE) {
        snprintf(text, room, "%s", kind == JSON_TRUE ? "yes" : "no");
        return true;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)min64(count, sizeof digits - 1), bytes);
    if (kind == JSON_NUMBER && count < sizeof digits && cli_parse_number(digits, &number)) {
        snprintf(text, room, "%s", CLI_COUNT(number));
        return true;
    }
    const size_t quote = kind == JSON_STRING;
    snprintf(text, room, "%.*s", (int)min64(count - 2 * quote, room - 1), bytes + quote);
    return true;
}

/* Returns whether the table above the section says the same. */
static bool about_said(const char *path, const struct json_string *name)
{
    static const char *const said[][2] = {
        {"  tokenizer ", "name"}, {"  tokenizer ", "path"},   {"  tokenizer ", "fingerprint"}, {"  options ", "eod"},
        {"  options ", "bos"},    {"  totals ", "documents"}, {"  totals ", "text_bytes"},     {"  totals ", "tokens"}};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        if (!strcmp(path, said[i][0]) && json_name_is(name, said[i][1]))
            return true;
    return false;
}

/* Adds one row for each value that is not an object: the keys that lead to it, with blanks between their words, and the
 * value. Keys without a value, and what the table above says already, are left out. */
static void about_rows(struct cli_report *report, const char *path, struct json_scan *scan, uint64_t *rows)
{
    struct json_string name;
    if (json_kind(scan) != JSON_OBJECT || !json_enter_object(scan))
        return;
    while (*rows <= ABOUT_ROWS && json_member(scan, &name)) {
        char key[128], value[512];
        const char *bytes;
        size_t count;
        int length = snprintf(key, sizeof key, "%s%.*s", path, (int)min64(name.count, sizeof key), name.bytes);
        for (char *at = key; *at; at++)
            *at = *at == '_' ? ' ' : *at;
        const enum json_kind kind = json_kind(scan);
        if (kind == JSON_OBJECT) {
            if (length < (int)sizeof key - 1)
                memcpy(key + length, " ", 2);
            about_rows(report, key, scan, rows);
        } else if (json_value(scan, &bytes, &count) && !about_said(path, &name) &&
                   about_value(kind, bytes, count, value, sizeof value) && ++*rows <= ABOUT_ROWS) {
            cli_row(report, key, "%s", value);
        }
    }
}

/* Prints nothing if the section is not JSON: a damaged or foreign file may contain any bytes. */
static void about_print(const struct tokmap_shard_info *shard)
{
    const size_t bytes = (size_t)shard->about_bytes;
    struct json_scan scan;
    if (!json_is_valid(shard->about, bytes, CLI_JSON_RAW_DEPTH))
        return;
    struct cli_report report;
    uint64_t rows = 0;
    json_begin(&scan, shard->about, bytes);
    cli_report_begin(&report, false, NULL);
    about_rows(&report, "  ", &scan, &rows);
    const char *index;
    char *made;
    (void)index_name(shard, &index, &made, NULL);
    cli_print("\nhow it was made, by the index %s:\n", index);
    free(made);
    cli_report_end(&report);
    if (rows > ABOUT_ROWS)
        printf("  (and more; these are the first %d values of %" PRIu64 " bytes)\n", ABOUT_ROWS, shard->about_bytes);
}

/* Prints the rows of a dataset, its shards, and what the index of the first one says about itself. */
static enum tokmap_status dataset_end(const struct tokmap_dataset *dataset, const struct dataset_facts *facts,
                                      struct cli_report *report, struct tokmap_error *error)
{
    if (report->as_json)
        return TOKMAP_OK;
    cli_report_rows(report, DATASET_ROWS);
    const enum tokmap_status status = shards_report(dataset, facts->info.shards, report, error);
    if (!status && facts->info.shards)
        about_print(&facts->first);
    return status;
}

struct info_arguments {
    struct run_arguments run;
    bool json, quiet, lengths;
    int progress; /* enum cli_progress_mode */
};

static int progress_mode(const struct info_arguments *given)
{
    return given->quiet ? CLI_PROGRESS_NONE : given->progress;
}

/* Describes the whole of which `name` is a part. Returns false if the name is not that of a part. */
static bool whole_of_part(const char *name, char *path, size_t room, struct tokmap_dataset_info *info)
{
    const char *mark = strrchr(name, '#');
    struct tokmap_dataset *whole = NULL;
    if (!mark || (strncmp(mark, "#docs=", 6) != 0 && strncmp(mark, "#tokens=", 8) != 0) ||
        (size_t)snprintf(path, room, "%.*s", (int)(mark - name), name) >= room)
        return false;
    const enum tokmap_status status = tokmap_dataset_open(&whole, path, NULL, NULL);
    if (status == TOKMAP_ERROR_MEMORY)
        cli_output_lost();
    if (status)
        return false;
    *info = info_of_dataset(whole);
    tokmap_dataset_close(whole);
    return true;
}

static void part_report(const char *name, const struct dataset_facts *facts, struct cli_report *report)
{
    struct tokmap_dataset_info whole;
    char path[4096];
    if (!whole_of_part(name, path, sizeof path, &whole)) {
        cli_member(report, "part_of", cli_null());
        return;
    }
    cli_row(report, "part", "%.2f%% of the %s, %s documents, of %s", cli_percent(facts->info.tokens, whole.tokens),
            CLI_COUNTED(whole.tokens, "token"), CLI_COUNT(whole.documents), path);
    cli_report_object(report, "part_of");
    cli_member(report, "dataset", cli_text(path));
    cli_numbers(report, "tokens|documents", whole.tokens, whole.documents);
    cli_report_close(report);
}

/* Prints the lengths of a dataset's documents alone, as `tokmap stats` prints them. */
static enum tokmap_status lengths_print(const struct target *target, const struct info_arguments *given,
                                        struct tokmap_error *error)
{
    struct document_report report;
    struct cli_report lengths;
    enum tokmap_status status = document_report_make(&report, target->dataset, 0, false, progress_mode(given), error);
    if (!status) {
        cli_report_begin(&lengths, given->json, NULL);
        cli_member(&lengths, "dataset", cli_text(target->name));
        document_report_add(&report, info_of_dataset(target->dataset).documents, &lengths);
        cli_report_end(&lengths);
    }
    document_report_free(&report);
    return status;
}

static enum tokmap_status dataset_print(const struct target *target, const struct info_arguments *given,
                                        struct tokmap_error *error)
{
    struct dataset_facts facts;
    struct row_counts rows = {0};
    const bool with_rows = given->run.seq_len_given;
    enum tokmap_status status = facts_gather(target->dataset, &facts, progress_mode(given), error);
    if (!status && with_rows)
        status =
            rows_count(target->dataset, given->run.seq_len, given->run.lookahead, &rows, progress_mode(given), error);
    if (status)
        return status;
    struct cli_report report;
    cli_report_begin(&report, given->json, DATASET_ROWS);
    cli_fact_text(&report, "dataset", "dataset", target->name);
    status = facts_report(target->dataset, &facts, &report, error);
    part_report(target->name, &facts, &report);
    if (with_rows)
        rows_report(&rows, given->run.seq_len, given->run.lookahead, 0, NULL, true, &report);
    if (!status)
        status = dataset_end(target->dataset, &facts, &report, error);
    cli_report_end(&report);
    return status;
}

/* ---- a run ---- */

static const char *order_name(enum tokmap_order_kind order)
{
    return order == TOKMAP_SHUFFLE  ? "shuffle"
           : order == TOKMAP_BLOCKS ? "blocks"
           : order == TOKMAP_EVEN   ? "even"
                                    : "sequential";
}

static void run_report(const struct tokmap_run_info *info, struct cli_report *report)
{
    const bool ends = info->steps != TOKMAP_FOREVER;
    fact_counted(report, "seq_len", "seq_len", info->seq_len, "token", "");
    fact_counted(report, "lookahead", "lookahead", info->lookahead, "token", "");
    fact_counted(report, "batch", "batch", info->batch, "row", "");
    cli_row(report, "tokens per step", "%s", CLI_COUNT(info->batch * info->seq_len));
    cli_fact_number(report, "seed", "seed", info->seed);
    if (info->span)
        cli_row(report, "order", "blocks of %s windows, %s in spans of %s", CLI_COUNT(info->blocks),
                info->order == TOKMAP_EVEN ? "in turn" : "permuted", CLI_COUNT(info->span));
    cli_fact_text(report, "order", info->span ? NULL : "order", order_name(info->order));
    cli_fact(report, "steps", "steps", cli_number_if(ends, info->steps), "%s",
             ends ? CLI_COUNT(info->steps) : "endless");
    cli_fact(report, "delivered", ends ? "steps skipped" : NULL, cli_number_if(ends, info->delivered), "%s",
             CLI_COUNT(info->steps - info->delivered));
    cli_fact(report, "remainder", ends ? "remainder" : NULL, cli_number_if(ends, info->remainder),
             "%s that no step shows", CLI_COUNTED(info->remainder, "window"));
}

/* Rows of a source in an epoch, at the length of the first phase that has it. Documents per row are counted for windows
 * that follow one another; of a plan, its own report tells them. */
static enum tokmap_status source_rows(const struct tokmap_source_info *source, const struct run_about *about,
                                      const struct tokmap_phase_info *phase, const struct tokmap_share_info *share,
                                      struct row_counts *rows, int mode, struct tokmap_error *error)
{
    const struct tokmap_run_info *run = &about->info;
    enum tokmap_status status = TOKMAP_OK;
    *rows = (struct row_counts){0};
    if (!source->plan && (!run->stride || run->stride == phase->seq_len))
        status = rows_count(source->dataset, phase->seq_len, run->lookahead, rows, mode, error);
    rows->windows = share->windows;
    rows->tail = run_about_tail(run, source, phase->seq_len, share->windows);
    return status;
}

static enum tokmap_status source_print(const struct run_about *about, uint64_t number,
                                       const struct info_arguments *given, struct cli_report *report,
                                       struct tokmap_error *error)
{
    const struct tokmap_source_info source = info_of_source(about->run, number);
    struct tokmap_phase_info phase;
    struct tokmap_share_info share;
    struct dataset_facts facts;
    struct row_counts rows = {0};
    const bool drawn = run_about_first(about, number, &phase, &share);
    enum tokmap_status status = facts_gather(source.dataset, &facts, progress_mode(given), error);
    if (!status && drawn)
        status = source_rows(&source, about, &phase, &share, &rows, progress_mode(given), error);
    if (status)
        return status;
    if (given->json)
        cli_report_item(report);
    else
        putchar('\n');
    cli_fact_text(report, "source", "source", source.name);
    if (about->info.sources > 1)
        cli_row(report, "dataset", "%s", source.data);
    status = facts_report(source.dataset, &facts, report, error);
    part_report(source.data, &facts, report);
    if (drawn)
        rows_report(&rows, phase.seq_len, about->info.lookahead,
                    about->info.sources == 1 && about->info.phases == 1 ? phase.batch : 0, source.plan,
                    !source.plan && !about->info.stride && !about->info.tail_pad, report);
    if (!status)
        status = dataset_end(source.dataset, &facts, report, error);
    if (given->json) {
        run_about_source(about, number, report);
        cli_report_close(report);
    }
    return status;
}

static enum tokmap_status run_print(const struct target *target, const struct info_arguments *given,
                                    struct tokmap_error *error)
{
    struct run_about about;
    struct cli_report report;
    enum tokmap_status status = run_about_make(&about, target->run, error);
    if (status) {
        run_about_free(&about);
        return status;
    }
    cli_report_begin(&report, given->json, RUN_ABOUT_ROWS);
    cli_fact_text(&report, target->is_run_file ? "run" : "dataset", target->is_run_file ? "run" : "dataset",
                  target->name);
    run_report(&about.info, &report);
    if (given->json) {
        cli_report_list(&report, "sources", NULL);
    } else {
        run_about_report(&about, &report);
        cli_report_rows(&report, DATASET_ROWS);
        run_about_lists(&about, &report);
    }
    const uint64_t described = given->json ? about.info.sources : min64(about.info.sources, RUN_ABOUT_LINES);
    for (uint64_t number = 0; number < described && !status; number++)
        status = source_print(&about, number, given, &report, error);
    if (described < about.info.sources && !status)
        printf("\n... and %" PRIu64 " more sources; --json describes all\n", about.info.sources - described);
    if (given->json) {
        cli_report_close(&report);
        if (!status) {
            run_about_lists(&about, &report);
            run_about_report(&about, &report);
        }
    }
    cli_report_end(&report);
    run_about_free(&about);
    return status;
}

/* ---- a plan ---- */

/* Reports what the header of a plan says. */
static enum tokmap_status plan_print(const char *path, bool as_json, struct tokmap_error *error)
{
    struct plan plan;
    struct cli_report report;
    const enum tokmap_status status = plan_open(&plan, path, error);
    if (status)
        return status;
    const struct plan_header *header = &plan.header;
    const uint64_t most = header->documents_most;
    const bool sampled = header->identity == 2;
    cli_report_begin(&report, as_json, "plan|rows|seq_len|holds|documents|segments|padded|*|file");
    cli_fact_text(&report, "plan", "plan", path);
    cli_fact_text(&report, "dataset", sampled ? "sampled id of its dataset" : "content id of its dataset",
                  id_hex(header->dataset, (char[33]){0}));
    cli_member(&report, "sampled", cli_bool(sampled));
    fact_counted(&report, "seq_len", "seq_len", header->seq_len, "token", "");
    cli_fact_number(&report, "rows", "rows", header->rows);
    cli_fact(&report, "tokens", "holds", cli_number(header->tokens), "%s, and %s", CLI_COUNTED(header->tokens, "token"),
             CLI_COUNTED(header->rows * header->seq_len - header->tokens, "padding token"));
    cli_fact(&report, "documents", "documents", cli_number(header->documents),
             "%s, of which %s longer than a row and cut", CLI_COUNT(header->documents), CLI_COUNT(header->cut));
    cli_member(&report, "documents_cut", cli_number(header->cut));
    cli_fact(&report, "segments", "segments", cli_number(header->segments), "%s, at most %s a row%s%s%s",
             CLI_COUNT(header->segments), CLI_COUNT(header->row_segments), most ? " (limit " : "",
             most ? CLI_COUNT(most) : "", most ? ")" : "");
    cli_member(&report, "row_segments", cli_number(header->row_segments));
    cli_member(&report, "max_documents", cli_number_if(most, most));
    if (header->pad)
        cli_fact(&report, "pad_documents", "padded", cli_number(header->pad), "each segment to a multiple of %s",
                 CLI_COUNTED(header->pad, "token"));
    cli_fact(&report, "bytes", "file", cli_number(header->file_bytes), "%s", CLI_BYTES(header->file_bytes));
    cli_report_end(&report);
    plan_close(&plan);
    return TOKMAP_OK;
}

static int name_info(const struct cli_command *command, const struct info_arguments *given, const char *name)
{
    const struct run_arguments *run = &given->run;
    struct target target = {0};
    struct tokmap_error error = {0};
    const bool make_run =
        run->batch_given || run->seed_given || run->ordering_given || run->steps_given || run->passes_given;
    if (given->lengths && (make_run || run->seq_len_given || run->lookahead_given || cli_names_run(name)))
        return cli_misused(command, "--lengths is for a dataset, without the arguments of a run");
    if (run->lookahead_given && !run->seq_len_given)
        return cli_misused(command, "--lookahead needs --seq-len");
    if (run->seq_len_given && run->seq_len == 0)
        return cli_misused(command, "--seq-len must be at least 1");
    if (run->steps_given && run->passes_given)
        return cli_misused(command, "--steps and --passes exclude each other");
    if (cli_names_run(name) && (run->steps_given || run->passes_given))
        return cli_misused(command, "--%s is only for datasets; the run file '%s' already sets its end",
                           run->steps_given ? "steps" : "passes", name);
    if (!make_run && !run->seq_len_given && folder_is_several(name)) {
        const enum tokmap_status failed = folder_list(name, given->json, &error);
        return cli_finish(program, failed ? command_failed(command, &error) : CLI_DONE);
    }
    int status = target_open(&target, command, name, run, make_run);
    if (status < 0) {
        const enum tokmap_status failed = target.run       ? run_print(&target, given, &error)
                                          : given->lengths ? lengths_print(&target, given, &error)
                                                           : dataset_print(&target, given, &error);
        if (failed && !error.status) /* from a function that takes no error */
            (void)error_set(&error, failed, name, TOKMAP_NO_OFFSET, "%s", tokmap_status_text(failed));
        status = failed ? command_failed(command, &error) : CLI_DONE;
    }
    target_close(&target);
    return cli_finish(program, status);
}

static int info(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    const struct info_arguments *given = user;
    if (operand_count != 1)
        return cli_misused(command, "expected one dataset, plan, or run file");
    struct tokmap_error error = {0};
    if (plan_is_file(operands[0])) {
        if (given->lengths)
            return cli_misused(command, "--lengths is for a dataset, and '%s' is a plan", operands[0]);
        const enum tokmap_status status = plan_print(operands[0], given->json, &error);
        return cli_finish(program, status ? command_failed(command, &error) : CLI_DONE);
    }
    return name_info(command, user, operands[0]);
}

int command_info(int argc, char **argv)
{
    struct info_arguments given = {.run = RUN_ARGUMENTS_INIT};
    const struct cli_option options[] = {
        CLI_HEADING("A run made from a dataset"),
        RUN_OPTIONS(given.run),
        {0, "steps", CLI_NUMBER, &given.run.steps, &given.run.steps_given, "N", "the run ends after N steps", NULL},
        {0, "passes", CLI_NUMBER, &given.run.passes, &given.run.passes_given, "P", "the run ends after P passes", NULL},
        CLI_HEADING("General"),
        {0, "lengths", CLI_FLAG, &given.lengths, NULL, NULL,
         "print the lengths of a dataset's documents only: percentiles and a histogram", NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print a JSON object", NULL},
        CLI_OPTION_PROGRESS(given.progress),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "the same as --progress none", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "DATASET [--seq-len S [--lookahead L]] [OPTION]...\n"
                 "       tokmap info RUN|PLAN|FOLDER [OPTION]...\n"
                 "       tokmap info DATASET --seq-len S --batch G [--seed N] [OPTION]...",
        .summary =
            "Describes a dataset or a run without reading its tokens. For a run, and with --seq-len for a dataset, it "
            "also prints the windows per epoch, the tail, and the documents per row, counted from the index.",
        .details =
            "With --batch it describes the run that these arguments make of the dataset. Of a folder whose "
            "shards have different tokenizers it lists the datasets. Of a plan it prints what its header says.\n\n"
            "Examples:\n"
            "  tokmap info data/web --seq-len 8192 --batch 64\n"
            "  tokmap info train.run --json\n"
            "  tokmap info data/web --lengths\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS | CLI_RUNS,
    };
    return cli_run(&command, argc, argv, info, &given);
}
