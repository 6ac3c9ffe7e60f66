/*
 * command_info.c - tokmap info: describes a dataset or a run without reading its tokens.
 *
 * The number of documents per row comes from the document index, in one pass and in memory that does not grow with the
 * dataset. Each document is visited once, and the windows that are entirely inside one document are counted together.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "folder_list.h"
#include "plan_about.h"
#include "stored_files.h"
#include "commands/options/field_options.h"
#include "commands/options/target.h"
#include "commands/report/column_report.h"
#include "commands/report/dataset_about.h"
#include "commands/report/document_lengths.h"
#include "commands/report/run_about.h"
#include "commands/report/token_counts.h"
#include "common/bytes.h"
#include "common/error.h"
#include "format/plan_file.h"
#include "text/json_scan.h"

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
    cli_progress_start(&progress, "counting documents", documents, mode);
    progress.unit = "documents";
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
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct histogram counts;
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status)
        return status;
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
    struct stored_files files;
    struct tokmap_shard_info first; /* shard 0, if the dataset has shards */
    char tokenizer[ABOUT_NAME];     /* of shard 0; "": unknown */
    char title[ABOUT_TITLE];        /* the same for people */
    bool text_known;                /* the index of every shard records the bytes of its text */
    uint64_t text_bytes;
    struct lengths lengths; /* of documents */
    uint64_t counted;       /* tokens that count as targets */
};

/* Reads what all indexes say. mode: enum cli_progress_mode. */
static enum tokmap_status facts_gather(const struct tokmap_dataset *dataset, struct dataset_facts *facts, int mode,
                                       struct tokmap_error *error)
{
    memset(facts, 0, sizeof *facts);
    facts->info.size = sizeof facts->info;
    enum tokmap_status status = tokmap_dataset_info(dataset, &facts->info);
    for (uint64_t shard = facts->info.shards; !status && shard-- > 0;) {
        facts->first.size = sizeof facts->first;
        status = tokmap_dataset_shard(dataset, shard, &facts->first, error);
        stored_files_add(&facts->files, &facts->first);
        struct about_facts about;
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

static void row_add(struct cli_table *table, const char *name, const char *value)
{
    const char *const cells[] = {name, value};
    cli_table_row(table, cells);
}

static void row_number(struct cli_table *table, const char *name, uint64_t number, const char *unit)
{
    char count[32], text[64];
    snprintf(text, sizeof text, "%s%s%s", cli_count(number, count), *unit ? " " : "", unit);
    row_add(table, name, text);
}

/* Adds "2 tokens per epoch": the count, the noun (given in the singular), and the rest. */
static void row_counted(struct cli_table *table, const char *name, uint64_t number, const char *noun, const char *of_it)
{
    char counted[64], text[128];
    snprintf(text, sizeof text, "%s%s", cli_counted(number, noun, counted), of_it);
    row_add(table, name, text);
}

static void row_id(struct cli_table *table, const char *name, uint64_t id)
{
    if (id == TOKMAP_NO_ID)
        row_add(table, name, "none");
    else
        row_number(table, name, id, "");
}

static void lengths_row(const struct dataset_facts *facts, struct cli_table *table)
{
    const struct lengths *lengths = &facts->lengths;
    char text[LENGTHS_TEXT + 64], list[LENGTHS_TEXT], count[32];
    const bool part = lengths->documents < facts->info.documents;
    snprintf(text, sizeof text, "%s%s%s%s%s", lengths_text(lengths, list), lengths->documents ? " tokens" : "",
             part ? ", of the first " : "", part ? cli_count(lengths->documents, count) : "", part ? " documents" : "");
    row_add(table, "document lengths", text);
}

static void facts_table(const struct dataset_facts *facts, struct cli_table *table)
{
    const struct tokmap_dataset_info *info = &facts->info;
    char text[192], bytes[32], hex[33], a_token[64];
    const bool foreign = info->identity == TOKMAP_IDENTITY_SAMPLED;
    const bool any_id = foreign && info->vocabulary >= (info->width == 2 ? UINT64_C(1) << 16 : UINT64_C(1) << 31);
    row_number(table, "tokens", info->tokens, "");
    if (info->documents || !info->tokens)
        row_number(table, "documents", info->documents, "");
    else
        row_add(table, "documents", "not recorded; `tokmap index` finds them");
    lengths_row(facts, table);
    if (facts->text_known) {
        snprintf(text, sizeof text, "%s, %s a token", cli_bytes(facts->text_bytes, bytes),
                 bytes_a_token_text(facts->text_bytes, info->tokens, a_token));
        row_add(table, "text", info->tokens ? text : bytes);
    }
    if (strcmp(info->kind, "shards") != 0 && strcmp(info->kind, "synthetic") != 0)
        row_add(table, "files of", info->kind);
    row_number(table, "shards", info->shards, "");
    snprintf(text, sizeof text, "%u bytes per token, '<u%u' in NumPy", info->width, info->width);
    row_add(table, "width", text);
    row_add(table, "tokenizer", facts->title[0] ? facts->title : info->shards ? "not recorded" : "none");
    row_counted(table, "vocabulary", info->vocabulary, "id", any_id ? " at most; the files do not record it" : "");
    if (!foreign)
        row_number(table, "largest id", info->largest_id, "");
    row_id(table, "eod id", info->eod_id);
    row_id(table, "bos id", info->bos_id);
    if (info->masked) {
        snprintf(text, sizeof text, "%s tokens count as targets (%.2f%%)", cli_count(facts->counted, bytes),
                 info->tokens ? 100.0 * (double)facts->counted / (double)info->tokens : 0.0);
        row_add(table, "mask", text);
    }
    stored_files_rows(&facts->files, info, table);
    if (info->shards) {
        row_add(table, "page hashes", info->page_hashes ? "compared as pages are read" : "some shard has none");
        row_add(table, "read by", info->reading == TOKMAP_READ_MAPPED ? "mmap" : reading_name(info->reading));
    }
    snprintf(text, sizeof text, "%s%s", id_hex(info->content, hex),
             info->identity == 2 ? " (of a sample; `tokmap index` makes it that of every byte)" : "");
    row_add(table, "content", text);
    row_add(table, "fingerprint", id_hex(info->tokenizer, hex));
}

/* batch: rows of a global batch, 0 if unknown. */
static void rows_table(const struct row_counts *rows, uint64_t seq_len, uint64_t batch, struct cli_table *table)
{
    char a[64], b[64], c[32], d[32], text[192];
    row_number(table, "windows", rows->windows, "per epoch");
    row_number(table, "tokens in rows", rows->windows * seq_len, "per epoch");
    if (batch) {
        const uint64_t left = rows->windows % batch;
        snprintf(text, sizeof text, "%s%s%s%s", cli_counted(rows->windows / batch, "step", a), left ? " and " : "",
                 left ? cli_counted(left, "window", b) : "", left ? " left over" : "");
        row_add(table, "an epoch", text);
    }
    row_counted(table, "tail", rows->tail, "token", " per epoch that no row shows");
    const bool part = rows->counted < rows->windows;
    snprintf(text, sizeof text, "p50 %s, p99.9 %s, max %s%s%s%s", cli_count(rows->p50, a), cli_count(rows->p999, b),
             cli_count(rows->largest, c), part ? ", of the first " : "", part ? cli_count(rows->counted, d) : "",
             part ? " windows" : "");
    row_add(table, "documents per row",
            !rows->windows   ? "none; a sequence is longer than the dataset"
            : !rows->counted ? "not counted; each row has many millions"
            : rows->largest  ? text
                             : "not recorded; `tokmap index` finds documents");
}

static void id_json(struct cli_json *json, const char *key, uint64_t id)
{
    if (id == TOKMAP_NO_ID)
        cli_json_null(json, key);
    else
        cli_json_number(json, key, id);
}

static void hex_json(struct cli_json *json, const char *key, const uint8_t id[16])
{
    char hex[33];
    if (strcmp(id_hex(id, hex), "unknown") == 0)
        cli_json_null(json, key);
    else
        cli_json_text(json, key, hex);
}

/* Writes the members that describe a dataset into an open object. */
static enum tokmap_status facts_json(const struct tokmap_dataset *dataset, const struct dataset_facts *facts,
                                     struct cli_json *json, struct tokmap_error *error)
{
    const struct tokmap_dataset_info *info = &facts->info;
    enum tokmap_status status = TOKMAP_OK;
    cli_json_number(json, "tokens", info->tokens);
    if (info->documents || !info->tokens)
        cli_json_number(json, "documents", info->documents);
    else
        cli_json_null(json, "documents");
    cli_json_number(json, "width", info->width);
    cli_json_number(json, "vocabulary", info->vocabulary);
    if (info->identity == TOKMAP_IDENTITY_SAMPLED)
        cli_json_null(json, "largest_id");
    else
        cli_json_number(json, "largest_id", info->largest_id);
    id_json(json, "eod_id", info->eod_id);
    id_json(json, "bos_id", info->bos_id);
    cli_json_number(json, "token_bytes", info->tokens * info->width);
    stored_files_json(&facts->files, json);
    cli_json_text(json, "reading", reading_name(info->reading));
    hex_json(json, "content", info->content);
    hex_json(json, "tokenizer", info->tokenizer);
    cli_json_text(json, "kind", info->kind);
    cli_json_text(json, "identity", info->identity == 1 ? "full" : "sampled");
    cli_json_bool(json, "masked", info->masked);
    cli_json_number(json, "targets", facts->counted);
    cli_json_bool(json, "page_hashes", info->page_hashes);
    if (facts->tokenizer[0])
        cli_json_text(json, "tokenizer_name", facts->tokenizer);
    else
        cli_json_null(json, "tokenizer_name");
    if (facts->text_known)
        cli_json_number(json, "text_bytes", facts->text_bytes);
    else
        cli_json_null(json, "text_bytes");
    if (facts->text_known && info->tokens)
        cli_json_real(json, "text_bytes_a_token", (double)facts->text_bytes / (double)info->tokens);
    else
        cli_json_null(json, "text_bytes_a_token");
    lengths_json(&facts->lengths, json);
    if (info->warning)
        cli_json_bytes(json, "warning", info->warning, strlen(info->warning));
    else
        cli_json_null(json, "warning");
    status = columns_json(dataset, json, error);
    cli_json_array(json, "shards");
    for (uint64_t number = 0; number < info->shards && !status; number++) {
        struct tokmap_shard_info shard = {.size = sizeof shard};
        status = tokmap_dataset_shard(dataset, number, &shard, error);
        if (status)
            break;
        cli_json_object(json, NULL);
        cli_json_text(json, "tokens_path", shard.tokens_path);
        cli_json_text(json, "index_path", shard.index_path);
        cli_json_number(json, "first_token", shard.first_token);
        cli_json_number(json, "tokens", shard.tokens);
        cli_json_number(json, "first_document", shard.first_document);
        cli_json_number(json, "documents", shard.documents);
        cli_json_number(json, "index_bytes", shard.index_bytes);
        cli_json_number(json, "blocks", shard.blocks);
        hex_json(json, "content", shard.content);
        cli_json_raw(json, "about", shard.about, (size_t)shard.about_bytes);
        cli_json_end(json);
    }
    cli_json_end(json);
    return status;
}

static void rows_json(const struct row_counts *rows, uint64_t seq_len, uint64_t lookahead, uint64_t batch,
                      struct cli_json *json)
{
    cli_json_object(json, "rows");
    cli_json_number(json, "seq_len", seq_len);
    cli_json_number(json, "lookahead", lookahead);
    cli_json_number(json, "windows", rows->windows);
    cli_json_number(json, "tail", rows->tail);
    cli_json_number(json, "tokens", rows->windows * seq_len);
    if (batch) {
        cli_json_number(json, "steps", rows->windows / batch);
        cli_json_number(json, "windows_left", rows->windows % batch);
    }
    cli_json_object(json, "documents_a_row");
    cli_json_number(json, "p50", rows->p50);
    cli_json_number(json, "p999", rows->p999);
    cli_json_number(json, "max", rows->largest);
    if (rows->counted < rows->windows)
        cli_json_number(json, "windows_counted", rows->counted);
    cli_json_end(json);
    cli_json_end(json);
}

/* ---- what an index says about itself ---- */

/* Writes a value of the about section for people. Returns false if there is nothing to say. */
static bool about_value(enum json_kind kind, const char *bytes, size_t count, char *text, size_t room)
{
    uint64_t number;
    char digits[32], counted[32];
    if (kind == JSON_NULL)
        return false;
    if (kind == JSON_TRUE || kind == JSON_FALSE) {
        snprintf(text, room, "%s", kind == JSON_TRUE ? "yes" : "no");
        return true;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)min64(count, sizeof digits - 1), bytes);
    if (kind == JSON_NUMBER && count < sizeof digits && cli_parse_number(digits, &number)) {
        snprintf(text, room, "%s", cli_count(number, counted));
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
static void about_rows(struct cli_table *table, const char *path, struct json_scan *scan, uint64_t *rows)
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
            about_rows(table, key, scan, rows);
        } else if (json_value(scan, &bytes, &count) && !about_said(path, &name) &&
                   about_value(kind, bytes, count, value, sizeof value) && ++*rows <= ABOUT_ROWS) {
            row_add(table, key, value);
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
    struct cli_table *table = cli_table_new(2);
    json_begin(&scan, shard->about, bytes);
    uint64_t rows = 0;
    about_rows(table, "  ", &scan, &rows);
    cli_print("\nhow it was made, by the index %s:\n", shard->index_path);
    cli_table_print(table, NULL, stdout);
    if (rows > ABOUT_ROWS)
        printf("  (and more; these are the first %d values of %" PRIu64 " bytes)\n", ABOUT_ROWS, shard->about_bytes);
    cli_table_free(table);
}

/* Prints one line per shard if there are several, then what the index of the first one says about itself. */
static enum tokmap_status shards_print(const struct tokmap_dataset *dataset, const struct dataset_facts *facts,
                                       struct tokmap_error *error)
{
    static const bool right[] = {true, true, true, false};
    static const char *const head[] = {"shard", "tokens", "documents", "file"};
    struct cli_table *table = facts->info.shards > 1 ? cli_table_new(4) : NULL;
    enum tokmap_status status = TOKMAP_OK;
    if (table)
        cli_table_row(table, head);
    for (uint64_t number = 0; table && number < facts->info.shards && !status; number++) {
        struct tokmap_shard_info shard = {.size = sizeof shard};
        char a[32], b[32], c[32];
        status = tokmap_dataset_shard(dataset, number, &shard, error);
        if (status)
            break;
        const char *const cells[] = {cli_count(number, a), cli_count(shard.tokens, b), cli_count(shard.documents, c),
                                     shard.tokens_path};
        cli_table_row(table, cells);
    }
    if (table) {
        putchar('\n');
        cli_table_print(table, right, stdout);
    }
    cli_table_free(table);
    if (!status && facts->info.shards)
        about_print(&facts->first);
    return status;
}

struct info_arguments {
    struct run_arguments run;
    bool json, quiet, lengths;
    const char *plot, *line; /* a picture of the lengths, or NULL; the command line, for its caption */
    int progress;            /* enum cli_progress_mode */
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
    *info = (struct tokmap_dataset_info){.size = sizeof *info};
    const bool known = !tokmap_dataset_info(whole, info);
    tokmap_dataset_close(whole);
    return known;
}

static void part_row(const char *name, const struct dataset_facts *facts, struct cli_table *table)
{
    struct tokmap_dataset_info whole;
    char path[4096], text[4300], a[64], b[32];
    if (!whole_of_part(name, path, sizeof path, &whole))
        return;
    snprintf(text, sizeof text, "%.2f%% of the %s, %s documents, of %s",
             whole.tokens ? 100.0 * (double)facts->info.tokens / (double)whole.tokens : 0.0,
             cli_counted(whole.tokens, "token", a), cli_count(whole.documents, b), path);
    row_add(table, "part", text);
}

static void part_json(const char *name, struct cli_json *json)
{
    struct tokmap_dataset_info whole;
    char path[4096];
    if (!whole_of_part(name, path, sizeof path, &whole)) {
        cli_json_null(json, "part_of");
        return;
    }
    cli_json_object(json, "part_of");
    cli_json_text(json, "dataset", path);
    cli_json_number(json, "tokens", whole.tokens);
    cli_json_number(json, "documents", whole.documents);
    cli_json_end(json);
}

/* The lengths of a dataset's documents alone, as `tokmap stats` prints them. */
static enum tokmap_status lengths_print(const struct target *target, const struct info_arguments *given,
                                        struct tokmap_error *error)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct document_report report;
    struct cli_json json;
    enum tokmap_status status = tokmap_dataset_info(target->dataset, &info);
    if (status)
        return status;
    status = document_report_make(&report, target->dataset, 0, false, progress_mode(given), error);
    if (!status && given->json) {
        cli_json_begin(&json, stdout);
        cli_json_object(&json, NULL);
        target_json(target, &json);
        document_report_json(&report, &json);
        cli_json_end(&json);
    } else if (!status) {
        document_report_print(&report, info.documents);
    }
    if (!status && given->plot)
        status = document_report_plot(&report, info.documents, target->name, given->line, given->plot, error);
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
    if (given->json) {
        struct cli_json json;
        cli_json_begin(&json, stdout);
        cli_json_object(&json, NULL);
        target_json(target, &json);
        status = facts_json(target->dataset, &facts, &json, error);
        part_json(target->name, &json);
        if (with_rows)
            rows_json(&rows, given->run.seq_len, given->run.lookahead, 0, &json);
        cli_json_end(&json);
        return status;
    }
    struct cli_table *table = cli_table_new(2);
    row_add(table, "dataset", target->name);
    part_row(target->name, &facts, table);
    facts_table(&facts, table);
    status = columns_table(target->dataset, table, error);
    if (with_rows)
        rows_table(&rows, given->run.seq_len, 0, table);
    cli_table_print(table, NULL, stdout);
    cli_table_free(table);
    return status ? status : shards_print(target->dataset, &facts, error);
}

/* ---- a run ---- */

static const char *order_name(enum tokmap_ordering ordering)
{
    return ordering == TOKMAP_SHUFFLE ? "shuffle" : ordering == TOKMAP_BLOCKS ? "blocks" : "sequential";
}

static void run_table(const struct tokmap_run_info *info, struct cli_table *table)
{
    char order[128], a[32], b[32];
    row_counted(table, "seq_len", info->seq_len, "token", "");
    row_counted(table, "lookahead", info->lookahead, "token", "");
    row_counted(table, "batch", info->batch, "row", "");
    row_number(table, "tokens per step", info->batch * info->seq_len, "");
    row_number(table, "seed", info->seed, "");
    snprintf(order, sizeof order, "blocks of %s windows, permuted in spans of %s", cli_count(info->blocks, a),
             cli_count(info->span, b));
    row_add(table, "order", info->ordering == TOKMAP_BLOCKS ? order : order_name(info->ordering));
    if (info->steps == TOKMAP_FOREVER) {
        row_add(table, "steps", "endless");
        return;
    }
    row_number(table, "steps", info->steps, "");
    row_number(table, "steps skipped", info->steps - info->delivered, "");
    row_counted(table, "remainder", info->remainder, "window", " that no step shows");
}

static void run_json(const struct tokmap_run_info *info, struct cli_json *json)
{
    cli_json_number(json, "seq_len", info->seq_len);
    cli_json_number(json, "lookahead", info->lookahead);
    cli_json_number(json, "batch", info->batch);
    cli_json_number(json, "seed", info->seed);
    cli_json_text(json, "order", order_name(info->ordering));
    const bool ends = info->steps != TOKMAP_FOREVER;
    id_json(json, "steps", info->steps); /* TOKMAP_FOREVER is TOKMAP_NO_ID: null */
    id_json(json, "delivered", info->delivered);
    if (ends)
        cli_json_number(json, "remainder", info->remainder);
    else
        cli_json_null(json, "remainder");
}
_Static_assert(TOKMAP_FOREVER == TOKMAP_NO_ID, "id_json writes both as null");

/* Rows of a source in an epoch, at the length of the first phase that has it. Documents per row are counted for windows
 * that follow one another; of a plan, its own report tells them. */
static enum tokmap_status source_rows(const struct tokmap_source_info *source, const struct run_about *about,
                                      const struct tokmap_phase_info *phase, const struct tokmap_share_info *share,
                                      struct row_counts *rows, int mode, struct tokmap_error *error)
{
    struct tokmap_dataset_info data = {.size = sizeof data};
    const struct tokmap_run_info *run = &about->info;
    enum tokmap_status status = TOKMAP_OK;
    *rows = (struct row_counts){0};
    if (!source->plan && (!run->stride || run->stride == phase->seq_len))
        status = rows_count(source->dataset, phase->seq_len, run->lookahead, rows, mode, error);
    if (!status)
        status = tokmap_dataset_info(source->dataset, &data);
    rows->windows = share->windows;
    rows->tail = 0;
    if (!source->plan && !run->tail_pad) { /* each window but the last shows `stride` tokens of its own */
        const uint64_t stride = run->stride ? run->stride : phase->seq_len;
        rows->tail = share->windows ? data.tokens - ((share->windows - 1) * stride + phase->seq_len) : data.tokens;
    }
    return status;
}

static void source_table(const struct tokmap_source_info *source, const struct run_about *about,
                         const struct tokmap_phase_info *phase, const struct row_counts *rows, struct cli_table *table)
{
    char text[128], count[64];
    const bool alone = about->info.sources == 1 && about->info.phases == 1;
    if (source->plan) {
        snprintf(text, sizeof text, "%s of %" PRIu64 " tokens", cli_counted(rows->windows, "row", count),
                 phase->seq_len);
        row_add(table, "plan", source->plan);
        row_add(table, "an epoch", text);
    } else if (about->info.stride || about->info.tail_pad) {
        row_number(table, "windows", rows->windows, "per epoch");
        row_counted(table, "tail", rows->tail, "token", " per epoch that no row shows");
    } else {
        rows_table(rows, phase->seq_len, alone ? phase->batch : 0, table);
    }
}

static void source_rows_json(const struct tokmap_source_info *source, const struct run_about *about,
                             const struct tokmap_phase_info *phase, const struct row_counts *rows,
                             struct cli_json *json)
{
    const bool alone = about->info.sources == 1 && about->info.phases == 1;
    if (!source->plan && !about->info.stride && !about->info.tail_pad) {
        rows_json(rows, phase->seq_len, about->info.lookahead, alone ? phase->batch : 0, json);
        return;
    }
    cli_json_object(json, "rows");
    cli_json_number(json, "seq_len", phase->seq_len);
    cli_json_number(json, "lookahead", about->info.lookahead);
    cli_json_number(json, "windows", rows->windows);
    cli_json_number(json, "tail", rows->tail);
    cli_json_end(json);
}

static enum tokmap_status source_print(const struct run_about *about, uint64_t number,
                                       const struct info_arguments *given, struct cli_json *json,
                                       struct tokmap_error *error)
{
    struct tokmap_source_info source = {.size = sizeof source};
    struct tokmap_phase_info phase;
    struct tokmap_share_info share;
    struct dataset_facts facts;
    struct row_counts rows = {0};
    enum tokmap_status status = tokmap_run_source(about->run, number, &source);
    const bool drawn = run_about_first(about, number, &phase, &share);
    if (!status)
        status = facts_gather(source.dataset, &facts, progress_mode(given), error);
    if (!status && drawn)
        status = source_rows(&source, about, &phase, &share, &rows, progress_mode(given), error);
    if (status)
        return status;
    if (given->json) {
        cli_json_object(json, NULL);
        cli_json_text(json, "source", source.name);
        status = facts_json(source.dataset, &facts, json, error);
        part_json(source.data, json);
        if (drawn)
            source_rows_json(&source, about, &phase, &rows, json);
        run_about_source_json(about, number, json);
        cli_json_end(json);
        return status;
    }
    struct cli_table *table = cli_table_new(2);
    row_add(table, "source", source.name);
    if (about->info.sources > 1)
        row_add(table, "dataset", source.data);
    part_row(source.data, &facts, table);
    facts_table(&facts, table);
    status = columns_table(source.dataset, table, error);
    if (drawn)
        source_table(&source, about, &phase, &rows, table);
    putchar('\n');
    cli_table_print(table, NULL, stdout);
    cli_table_free(table);
    return status ? status : shards_print(source.dataset, &facts, error);
}

static enum tokmap_status run_print(const struct target *target, const struct info_arguments *given,
                                    struct tokmap_error *error)
{
    struct run_about about;
    struct cli_json json;
    enum tokmap_status status = run_about_make(&about, target->run, error);
    if (status) {
        run_about_free(&about);
        return status;
    }
    if (given->json) {
        cli_json_begin(&json, stdout);
        cli_json_object(&json, NULL);
        target_json(target, &json);
        run_json(&about.info, &json);
        cli_json_array(&json, "sources");
    } else {
        struct cli_table *table = cli_table_new(2);
        row_add(table, target->is_run_file ? "run" : "dataset", target->name);
        run_table(&about.info, table);
        run_about_table(&about, table);
        cli_table_print(table, NULL, stdout);
        cli_table_free(table);
        run_about_print(&about);
    }
    const uint64_t described = given->json ? about.info.sources : min64(about.info.sources, RUN_ABOUT_LINES);
    for (uint64_t number = 0; number < described && !status; number++)
        status = source_print(&about, number, given, &json, error);
    if (described < about.info.sources && !status)
        printf("\n... and %" PRIu64 " more sources; --json describes all\n", about.info.sources - described);
    if (given->json) {
        cli_json_end(&json);
        if (!status)
            run_about_json(&about, &json);
        cli_json_end(&json);
    }
    run_about_free(&about);
    return status;
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
    enum cli_plot_format format;
    if (given->plot && !given->lengths)
        return cli_misused(command, "--plot draws the lengths of documents; use it with --lengths");
    if (given->plot && !cli_plot_format_of(given->plot, &format))
        return cli_misused(command, "--plot takes a name that ends in .svg or .png, not '%s'", given->plot);
    if (plan_is_file(operands[0])) {
        if (given->lengths)
            return cli_misused(command, "--lengths is for a dataset, and '%s' is a plan", operands[0]);
        const enum tokmap_status status = plan_about_print(operands[0], given->json, &error);
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
        {0, "plot", CLI_TEXT, &given.plot, NULL, "FILE", "with --lengths: also draw FILE.svg or FILE.png", NULL},
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
            "  tokmap info data/web --lengths --plot lengths.svg\n",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands = CLI_DATASETS | CLI_RUNS,
    };
    given.line = cli_command_line(program, argc, argv, (char[2048]){0}, 2048);
    return cli_run(&command, argc, argv, info, &given);
}
