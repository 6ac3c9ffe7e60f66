/* SPDX-License-Identifier: MIT */
/* pack_report.c - see pack_report.h. */
#include "pack_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pack_arguments.h"
#include "commands/report/document_lengths.h"
#include "common/bytes.h"
#include "common/hash.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "tokenizer/text_cuts.h"

/* The row length that the next command shows: that of GPT-2. A smaller dataset has no such row. */
#define SEQ_LEN 1024
#define PATH_TEXT 4200 /* bytes of the name of an output */

/* Tokens of the text alone, without those that begin and end documents, or are between their parts. */
static uint64_t text_tokens(const struct pack_result *result)
{
    return result->tokens - result->eod_tokens - result->bos_tokens - result->fim.tokens;
}

/* Returns the size of a file of the shard PREFIX, 0 if it cannot be determined. */
static uint64_t output_bytes(const char *prefix, enum shard_file file)
{
    struct os_stat stat = {0};
    char *path = shard_file_path(prefix, file, SHARD_FINAL);
    if (!path) {
        cli_output_lost();
        return 0;
    }
    const uint64_t bytes = os_stat(path, &stat) ? 0 : stat.bytes;
    free(path);
    return bytes;
}

/* ---- for people ---- */

static void fact(const char *name, const char *text)
{
    cli_print("  %-12s %s\n", name, text);
}

/* "<|endoftext|> (50256)", or the id alone if it has no name. */
static const char *token_text(const struct tokenizer *tokenizer, uint64_t id, char text[128])
{
    struct tokenizer_info info = {0};
    struct tokmap_added_token added;
    if (tokenizer)
        tokenizer_info(tokenizer, &info);
    for (uint64_t i = 0; i < info.added; i++) {
        tokenizer_added_at(tokenizer, i, &added);
        if (added.id == id && added.bytes <= 64 && !memchr(added.text, '\n', added.bytes)) {
            (void)snprintf(text, 128, "%.*s (%" PRIu64 ")", (int)added.bytes, added.text, id);
            return text;
        }
    }
    (void)snprintf(text, 128, "%" PRIu64, id);
    return text;
}

static void tokenizer_print(const struct pack_report *report)
{
    struct tokenizer_info info;
    char text[512], a[32];
    if (!report->tokenizer) {
        (void)snprintf(text, sizeof text, "unknown: ready-made ids below %s, %" PRIu32 " bytes a token",
                       cli_count(report->vocabulary, a), pack_width(report->vocabulary));
        fact("tokenizer", text);
        return;
    }
    tokenizer_info(report->tokenizer, &info);
    (void)snprintf(text, sizeof text, "%s%s%s%s, %s ids, %" PRIu32 " bytes a token", info.name,
                   strcmp(info.name, info.form) ? " (" : "", strcmp(info.name, info.form) ? info.form : "",
                   strcmp(info.name, info.form) ? ")" : "", cli_count(info.vocabulary, a), info.width);
    fact("tokenizer", text);
    if (report->tokenizer_path)
        fact("", report->tokenizer_path);
    if (!report->tokenizer_given)
        fact("", "no -t FILE was given: each byte of the text is a token");
}

static bool is_learn_given(const struct pack_report *report)
{
    return report->chat && chat_template_learned(report->chat)->given;
}

/* Returns true if a role is one of --learn (the assistant without it), or has tokens that count. */
static bool role_is_reported(const struct pack_report *report, enum chat_role role)
{
    return report->result->roles[role].counted || chat_template_learned(report->chat)->roles & 1U << role ||
           (!is_learn_given(report) && role == CHAT_ROLE_ASSISTANT);
}

/* Prints how many tokens count as targets. */
static void mask_print(const struct pack_report *report)
{
    const struct pack_result *result = report->result;
    char text[96], a[64], b[32];
    (void)snprintf(text, sizeof text, "%s, %.1f%%; masked: %s", cli_count(result->counted_tokens, a),
                   result->tokens ? 100.0 * (double)result->counted_tokens / (double)result->tokens : 0.0,
                   cli_count(result->tokens - result->counted_tokens, b));
    fact("  targets", text);
    for (unsigned role = 0; role < CHAT_ROLES && is_learn_given(report); role++)
        if (role_is_reported(report, (enum chat_role)role)) {
            (void)snprintf(text, sizeof text, "%s: %s", chat_role_name((enum chat_role)role),
                           cli_counted(result->roles[role].counted, "token", a));
            fact("", text);
        }
    if (!result->untaught)
        return;
    (void)snprintf(text, sizeof text, "none in %s", cli_counted(result->untaught, "conversation", a));
    fact("", text);
}

/* Prints how many texts are rearranged. */
static void fim_print(const struct pack_report *report)
{
    const struct fim_counts *fim = &report->result->fim;
    char text[160], a[64], b[32], c[32];
    if (!report->fim)
        return;
    (void)snprintf(text, sizeof text, "%s: %s prefix-suffix-middle, %s suffix-prefix-middle",
                   cli_counted(fim->psm + fim->spm, report->fim->unit ? "piece" : "document", a),
                   cli_count(fim->psm, b), cli_count(fim->spm, c));
    fact("  rearranged", text);
    if (!fim->left)
        return;
    (void)snprintf(text, sizeof text, "and %s not, whose text has these tokens already",
                   cli_counted(fim->left, "document", a));
    fact("", text);
}

/* Says of how many documents the token that ends or begins them was there already. */
static void present_print(uint64_t present, uint64_t added)
{
    char text[128], a[32], b[32];
    if (!present)
        return;
    (void)snprintf(text, sizeof text, "there already in %s, added to %s", cli_count(present, a), cli_count(added, b));
    fact("", text);
}

/* Says what the file's post-processor would put around each document. */
static void frame_print(const struct pack_report *report)
{
    struct tokenizer_info info = {0};
    char text[320];
    if (report->tokenizer)
        tokenizer_info(report->tokenizer, &info);
    if (!info.frame)
        return;
    (void)snprintf(text, sizeof text, "(the file's post-processor puts %s a text; here --bos and --eod choose)",
                   info.frame);
    fact("", text);
}

/* Says of how many documents the ids may be others than with --cut-as. */
static void cuts_print(const struct pack_report *report)
{
    struct tokenizer_info info = {0};
    char text[320], a[64], b[32];
    if (report->tokenizer)
        tokenizer_info(report->tokenizer, &info);
    const struct text_cuts *cuts = text_cuts_named(info.code_cuts ? info.code_cuts : "");
    if (info.cut_as) {
        (void)snprintf(text, sizeof text, "as by the code of %s", info.cut_as);
        fact("  cut", text);
    } else if (cuts && report->result->uncut) {
        (void)snprintf(text, sizeof text,
                       "%s of more than %s bytes as a whole: the code of %s may cut such texts, and --cut-as %s gives "
                       "its ids",
                       cli_counted(report->result->uncut, "document", a), cli_count(cuts->run, b), cuts->name,
                       cuts->name);
        fact("  encoded", text);
    }
}

/* Prints how many documents have a value in each column. */
static void columns_print(const struct pack_report *report)
{
    const struct pack_result *result = report->result;
    for (size_t i = 0; i < report->corpus->column_count; i++) {
        char text[160], a[32];
        (void)snprintf(text, sizeof text, "%.80s, of %s documents", report->corpus->columns[i],
                       cli_count(result->with_value[i], a));
        fact(i ? "" : "columns", text);
    }
}

static void tokens_print(const struct pack_report *report)
{
    const struct pack_result *result = report->result;
    char text[LENGTHS_TEXT + 64], a[LENGTHS_TEXT], b[64];
    (void)snprintf(text, sizeof text, "%s, a token is %s", cli_count(result->tokens, a),
                   bytes_a_token_text(result->counts.text_bytes, text_tokens(result), b));
    const bool text_known = text_tokens(result) && report->corpus->content != CORPUS_CONTENT_IDS;
    fact("tokens", text_known ? text : cli_count(result->tokens, a));
    if (result->has_mask)
        mask_print(report);
    (void)snprintf(text, sizeof text, "%s%s%s", cli_count(result->counts.documents, b),
                   result->counts.empty_documents ? ", of which empty: " : "",
                   result->counts.empty_documents ? cli_count(result->counts.empty_documents, a) : "");
    fact("documents", text);
    fact("  in tokens", lengths_text(&result->lengths, a));
    if (report->shuffle) {
        (void)snprintf(text, sizeof text, "with seed %" PRIu64, report->shuffle->seed);
        fact("  shuffled", text);
    }
    fim_print(report);
    if (report->bos_id != TOKMAP_NO_ID)
        fact("  begin with", token_text(report->tokenizer, report->bos_id, a));
    present_print(result->bos_present, result->bos_tokens);
    fact("  end with", report->eod_id == TOKMAP_NO_ID ? "no token: nothing marks where the next one begins"
                                                      : token_text(report->tokenizer, report->eod_id, a));
    present_print(result->eod_present, result->eod_tokens);
    frame_print(report);
    cuts_print(report);
    if (report->chat)
        fact("  written as", chat_template_name(report->chat));
    columns_print(report);
}

static void oversized_print(const struct pack_report *report)
{
    char a[64], b[32], text[160];
    if (!report->result->oversized)
        return;
    (void)snprintf(text, sizeof text, "%s longer than %s tokens, each in a shard of its own",
                   cli_counted(report->result->oversized, "document", a), cli_count(report->shard_tokens, b));
    fact("", text);
}

/* Bytes of the sealed tokens of all shards. */
static uint64_t sealed_bytes(const struct pack_report *report)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < (report->split ? report->split->count : 1); i++)
        bytes += report->result->sets[i].sealed_bytes;
    return bytes;
}

static void sealed_print(const struct pack_report *report)
{
    struct tokenizer_info info = {.width = pack_width(report->vocabulary)};
    char text[96], a[32], b[32];
    if (!report->sealed)
        return;
    if (report->tokenizer)
        tokenizer_info(report->tokenizer, &info);
    const uint64_t tokens = report->result->tokens * info.width, sealed = sealed_bytes(report);
    (void)snprintf(text, sizeof text, "%s of tokens in %s, ratio %.2f", cli_bytes(tokens, a), cli_bytes(sealed, b),
                   sealed ? (double)tokens / (double)sealed : 0.0);
    fact("  sealed", text);
}

/* Prints the sets of a split. */
static void sets_print(const struct pack_report *report)
{
    const uint64_t all = report->result->counts.documents;
    for (uint32_t i = 0; i < report->split->count; i++) {
        const struct shard_set_result *set = &report->result->sets[i];
        char a[64], b[64], c[64], text[64], hex[33];
        cli_print("  %-12s %s.%s: %s (%.4f%%) with %s in %s\n", i ? "" : "output", report->shown,
                  report->split->sets[i].name, cli_counted(set->documents, "document", a),
                  all ? 100.0 * (double)set->documents / (double)all : 0.0, cli_counted(set->tokens, "token", b),
                  cli_counted(set->shards, "shard", c));
        hash128_hex(set->content, hex);
        (void)snprintf(text, sizeof text, "content id %s", hex);
        fact("", text);
    }
    sealed_print(report);
    oversized_print(report);
}

/* Prints the shards of a set, of which the names count, and the manifest. */
static void set_print(const struct pack_report *report)
{
    const struct pack_result *result = report->result;
    char a[64], hex[33];
    cli_print("  %-12s %s (the manifest of %s)\n", "output", report->shown, cli_counted(result->shards, "shard", a));
    cli_print("  %-12s %s-00000.bin%s%s\n", "", report->shown, report->sealed ? ".zst" : "",
              result->shards > 1 ? " and so on" : "");
    sealed_print(report);
    oversized_print(report);
    hash128_hex(result->content, hex);
    fact("content id", hex);
}

static void output_print(const struct pack_report *report)
{
    char a[32], b[32], hex[33];
    if (report->split) {
        sets_print(report);
        return;
    }
    if (report->sets) {
        set_print(report);
        return;
    }
    const enum shard_file file = report->sealed ? SHARD_SEALED : SHARD_TOKENS;
    const uint64_t tokens = output_bytes(report->prefix, file), index = output_bytes(report->prefix, SHARD_INDEX);
    hash128_hex(report->result->content, hex);
    cli_print("  %-12s %s%s (%s)\n", "output", report->shown, shard_file_ending(file, SHARD_FINAL),
              cli_bytes(tokens, a));
    sealed_print(report);
    cli_print("  %-12s %s.tmx (%s)\n", "", report->shown, cli_bytes(index, b));
    if (report->result->has_mask)
        cli_print("  %-12s %s.mask (%s)\n", "", report->shown, cli_bytes(output_bytes(report->prefix, SHARD_MASK), a));
    fact("content id", hex);
}

static void row(const char *name, uint64_t number, const char *remark)
{
    char text[32];
    printf("  %-20s %20s%s%s\n", name, cli_count(number, text), *remark ? "  " : "", remark);
}

static void row_if(const char *name, uint64_t number, const char *remark)
{
    if (number)
        row(name, number, remark);
}

/* The formats of the inputs, in the order in which they are printed. */
static const struct format_name {
    enum corpus_format format;
    const char *word, *text, *remark; /* of --json, and of the report */
} format_names[] = {{CORPUS_TEXT, "text", "text", "one document per file"},
                    {CORPUS_SEPARATED, "separated", "text with separators", ""},
                    {CORPUS_JSONL, "jsonl", "JSONL", ""},
                    {CORPUS_JSON, "json", "JSON", ""},
                    {CORPUS_CSV, "csv", "CSV", ""},
                    {CORPUS_TSV, "tsv", "TSV", ""},
                    {CORPUS_PARQUET, "parquet", "Parquet", ""},
                    {CORPUS_WARC, "warc", "WARC", ""}};
#define FORMAT_NAMES (sizeof format_names / sizeof format_names[0])

/* Prints the files, in one row if all have one format. */
static void files_print(const struct corpus_counts *counts)
{
    for (size_t i = 0; i < FORMAT_NAMES; i++) {
        const struct format_name *name = &format_names[i];
        char remark[64];
        if (!counts->files_of[name->format] || counts->files_of[name->format] != counts->files)
            continue;
        (void)snprintf(remark, sizeof remark, "%s%s%s", name->text, *name->remark ? ", " : "", name->remark);
        row("files", counts->files, remark);
        return;
    }
    row("files", counts->files, counts->files ? "of which:" : "");
    for (size_t i = 0; i < FORMAT_NAMES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "  %s", format_names[i].text);
        row_if(name, counts->files_of[format_names[i].format], format_names[i].remark);
    }
}

/* Accounts for every byte that was read. */
static void input_print(const struct pack_report *report)
{
    const struct corpus_counts *counts = &report->result->counts;
    (void)puts("\nread:");
    files_print(counts);
    row("bytes as stored", counts->stored_bytes, "");
    /* No byte of Parquet was decompressed here: it is counted as it is stored. */
    const bool some = counts->files_of[CORPUS_PARQUET], all = counts->files_of[CORPUS_PARQUET] == counts->files && some;
    row("input bytes", counts->stream_bytes,
        all    ? "as stored, of which:"
        : some ? "after decompression, but Parquet as stored, of which:"
               : "after decompression, of which:");
    row("  document bytes", counts->document_bytes,
        all    ? "compressed pages of the texts"
        : some ? "of Parquet, compressed pages of the texts"
               : "");
    row_if("  structure bytes", counts->structure_bytes,
           all    ? "dictionaries, which can have the texts, other columns, headers"
           : some ? "around the texts, and line ends; dictionaries and other columns of Parquet"
                  : "around the texts, and line ends");
    row_if("  skipped bytes", counts->skipped_bytes, "");
    row_if("blank lines", counts->blank_lines, "");
    row_if("WARC records", counts->about_records, "about others, so they are structure: warcinfo, metadata, request");
    row_if("sequences replaced", counts->replaced, "invalid UTF-8, now U+FFFD");
    row_if("NaN, Infinity", counts->not_finite, "values that JSON does not have, in fields that are not read");
    row_if("byte order marks", counts->marks, "kept, since texts begin with them");
    row_if("files undivided", counts->undivided, "the separator does not occur in them");
    if (report->corpus->content == CORPUS_CONTENT_IDS)
        return;
    row("text bytes", counts->text_bytes, counts->text_bytes == counts->document_bytes ? "" : "after decoding");
}

static void next_print(const struct pack_report *report)
{
    char given[PATH_TEXT], seq_len[32] = "";
    (void)snprintf(given, sizeof given, "%s%s%s", report->shown, report->split ? "." : "",
                   report->split ? report->split->sets[0].name : "");
    char *name = cli_shell_quote(given);
    if (report->result->tokens > SEQ_LEN)
        (void)snprintf(seq_len, sizeof seq_len, " --seq-len %d", SEQ_LEN);
    if (name)
        printf("\nnext:\n  tokmap info %s%s\n  tokmap show %s --document 0%s\n", name, seq_len, name,
               report->tokenizer ? "" : " --ids");
    free(name);
}

void pack_report_print(const struct pack_report *report)
{
    const struct corpus_counts *counts = &report->result->counts;
    const bool ids = report->corpus->content == CORPUS_CONTENT_IDS;
    const uint64_t bytes = ids ? counts->stream_bytes : counts->text_bytes;
    const uint64_t before = ids ? report->result->stream_before : report->result->text_before;
    const double rate = report->seconds > 0 ? (double)(bytes - before) / report->seconds : 0;
    char a[32], b[32], c[32];
    printf("%s %s of %s in %s (%s/s)\n", report->dry_run ? "would pack" : "packed", cli_bytes(bytes - before, a),
           ids ? "records" : "text", cli_seconds(report->seconds, b), cli_bytes(rate < 9e18 ? (uint64_t)rate : 0, c));
    if (before)
        printf("continued after %s that were packed before; all numbers below are those of the whole\n",
               cli_bytes(before, a));
    printf("\n");
    tokenizer_print(report);
    tokens_print(report);
    if (!report->dry_run)
        output_print(report);
    input_print(report);
    skip_report_print(counts);
    drop_report_print(&report->result->dropped, report->dry_run ? NULL : report->prefix);
    listed_report_print(report->listed, &report->result->listed);
    also_print(report->also, report->result->also, "tokmap pack");
    if (!report->dry_run)
        next_print(report);
}

/* ---- JSON ---- */

static void tokenizer_json(const struct pack_report *report, struct cli_json *json)
{
    struct tokenizer_info info = {.vocabulary = report->vocabulary, .width = pack_width(report->vocabulary)};
    char hex[33];
    if (report->tokenizer)
        tokenizer_info(report->tokenizer, &info);
    hash128_hex(info.fingerprint, hex);
    cli_json_object(json, "tokenizer");
    if (report->tokenizer) {
        cli_json_text(json, "name", info.name);
        cli_json_text(json, "form", info.form);
    }
    if (report->tokenizer_path)
        cli_json_bytes(json, "path", report->tokenizer_path, strlen(report->tokenizer_path));
    cli_json_text(json, "fingerprint", hex);
    cli_json_number(json, "vocabulary", info.vocabulary);
    cli_json_number(json, "width", info.width);
    cli_json_id(json, "eod_id", report->eod_id);
    cli_json_id(json, "bos_id", report->bos_id);
    if (info.frame)
        cli_json_text(json, "post_processor", info.frame);
    if (info.cut_as)
        cli_json_text(json, "cut_as", info.cut_as);
    if (info.code_cuts && !info.cut_as) {
        cli_json_text(json, "code_cuts", info.code_cuts);
        cli_json_number(json, "documents_uncut", report->result->uncut);
    }
    if (report->chat)
        cli_json_text(json, "chat_template", chat_template_name(report->chat));
    cli_json_end(json);
}

/* Prints what other content than text adds. */
static void content_json(const struct pack_report *report, struct cli_json *json)
{
    const struct pack_result *result = report->result;
    if (report->corpus->content == CORPUS_CONTENT_IDS) {
        cli_json_number(json, "eod_present", result->eod_present);
        cli_json_number(json, "bos_present", result->bos_present);
    }
    if (result->has_mask) {
        cli_json_number(json, "counted_tokens", result->counted_tokens);
        cli_json_number(json, "masked_tokens", result->tokens - result->counted_tokens);
        if (report->chat)
            cli_json_number(json, "documents_without_targets", result->untaught);
        if (report->chat) {
            cli_json_object(json, "counted_tokens_of");
            for (unsigned role = 0; role < CHAT_ROLES; role++)
                if (role_is_reported(report, (enum chat_role)role))
                    cli_json_number(json, chat_role_name((enum chat_role)role), result->roles[role].counted);
            cli_json_end(json);
        }
    }
    if (report->fim) {
        cli_json_object(json, "fim");
        cli_json_number(json, "psm", result->fim.psm);
        cli_json_number(json, "spm", result->fim.spm);
        cli_json_number(json, "left", result->fim.left);
        cli_json_number(json, "tokens", result->fim.tokens);
        cli_json_end(json);
    }
    if (!report->corpus->column_count)
        return;
    cli_json_object(json, "columns");
    for (size_t i = 0; i < report->corpus->column_count; i++)
        cli_json_number(json, report->corpus->columns[i], result->with_value[i]);
    cli_json_end(json);
}

static void counts_json(const struct corpus_counts *counts, struct cli_json *json)
{
    cli_json_number(json, "files", counts->files);
    cli_json_object(json, "files_by_format");
    for (size_t i = 0; i < FORMAT_NAMES; i++)
        if (counts->files_of[format_names[i].format])
            cli_json_number(json, format_names[i].word, counts->files_of[format_names[i].format]);
    cli_json_end(json);
    cli_json_number(json, "files_skipped", counts->files_skipped);
    cli_json_number(json, "stored_bytes", counts->stored_bytes);
    cli_json_number(json, "input_bytes", counts->stream_bytes);
    cli_json_number(json, "document_bytes", counts->document_bytes);
    cli_json_number(json, "structure_bytes", counts->structure_bytes);
    cli_json_number(json, "skipped_bytes", counts->skipped_bytes);
    cli_json_number(json, "documents", counts->documents);
    cli_json_number(json, "empty_documents", counts->empty_documents);
    cli_json_number(json, "records_skipped", counts->records_skipped);
    cli_json_number(json, "blank_lines", counts->blank_lines);
    cli_json_number(json, "about_records", counts->about_records);
    cli_json_number(json, "sequences_replaced", counts->replaced);
    cli_json_number(json, "not_finite_values", counts->not_finite);
    cli_json_number(json, "byte_order_marks", counts->marks);
    cli_json_number(json, "files_undivided", counts->undivided);
    cli_json_number(json, "text_bytes", counts->text_bytes);
}

/* Prints the sets of a split. */
static void sets_json(const struct pack_report *report, struct cli_json *json)
{
    char hex[33];
    if (!report->split)
        return;
    cli_json_object(json, "sets");
    for (uint32_t i = 0; i < report->split->count; i++) {
        const struct shard_set_result *set = &report->result->sets[i];
        hash128_hex(set->content, hex);
        cli_json_object(json, report->split->sets[i].name);
        cli_json_number(json, "documents", set->documents);
        cli_json_number(json, "tokens", set->tokens);
        cli_json_number(json, "shards", set->shards);
        cli_json_text(json, "content", hex);
        cli_json_end(json);
    }
    cli_json_end(json);
}

void pack_report_json(const struct pack_report *report)
{
    const struct pack_result *result = report->result;
    const uint64_t tokens = text_tokens(result);
    struct cli_json json;
    char hex[33];
    hash128_hex(result->content, hex);
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    if (!report->dry_run)
        cli_json_bytes(&json, "output", report->shown, strlen(report->shown));
    cli_json_bool(&json, "dry_run", report->dry_run);
    if (!report->dry_run && !report->split)
        cli_json_text(&json, "content", hex);
    if (report->sets && !report->dry_run) {
        cli_json_number(&json, "shards", result->shards);
        cli_json_number(&json, "oversized_documents", result->oversized);
        sets_json(report, &json);
    }
    if (report->sealed && !report->dry_run)
        cli_json_number(&json, "sealed_bytes", sealed_bytes(report));
    if (report->shuffle)
        cli_json_number(&json, "shuffle", report->shuffle->seed);
    tokenizer_json(report, &json);
    counts_json(&result->counts, &json);
    cli_json_number(&json, "tokens", result->tokens);
    cli_json_number(&json, "eod_tokens", result->eod_tokens);
    cli_json_number(&json, "bos_tokens", result->bos_tokens);
    cli_json_number(&json, "largest_id", result->largest_id);
    content_json(report, &json);
    if (tokens && report->corpus->content != CORPUS_CONTENT_IDS)
        cli_json_real(&json, "bytes_per_token", (double)result->counts.text_bytes / (double)tokens);
    else
        cli_json_null(&json, "bytes_per_token");
    lengths_json(&result->lengths, &json);
    drop_report_json(&result->dropped, &json);
    listed_report_json(report->listed, &result->listed, &json);
    skip_report_json(report->skips, &result->counts, &json);
    also_json(report->also, result->also, &json);
    cli_json_real(&json, "seconds", report->seconds);
    cli_json_number(&json, "text_bytes_before", report->result->text_before);
    cli_json_end(&json);
}
