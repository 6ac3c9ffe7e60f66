/* SPDX-License-Identifier: MIT */
#include "pack_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands/report/document_lengths.h"
#include "common/hash.h"
#include "engine/cut_tokenizer.h"
#include "format/shard_file.h"
#include "pack_arguments.h"
#include "platform/os.h"
#include "remote/remote_http.h"

/* The row length that the next command shows: that of GPT-2. A smaller dataset has no such row. */
#define SEQ_LEN 1024
#define PATH_TEXT 4200         /* bytes of the name of an output */
#define MORE "               " /* before a line that continues the one above */

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

/* "<|endoftext|> (50256)", or the id alone if it has no name. */
static const char *token_text(const struct tokenizer *tokenizer, uint64_t id, char text[128])
{
    struct tokenizer_info info = {0};
    struct tokmap_added_token added;
    if (tokenizer)
        info = info_of_tokenizer(tokenizer);
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

static bool is_learn_given(const struct pack_report *report)
{
    return report->options->chat && chat_template_learned(report->options->chat)->given;
}

/* Returns true if a role is one of --learn (the assistant without it), or has tokens that count. */
static bool role_is_reported(const struct pack_report *report, enum chat_role role)
{
    return report->result->roles[role].counted || chat_template_learned(report->options->chat)->roles & 1U << role ||
           (!is_learn_given(report) && role == CHAT_ROLE_ASSISTANT);
}

/* Prints how many tokens count as targets. */
static void mask_print(const struct pack_report *report)
{
    const struct pack_result *result = report->result;
    cli_print("    targets    %s, %.1f%%; masked: %s\n", CLI_COUNT(result->counted_tokens),
              cli_percent(result->counted_tokens, result->tokens), CLI_COUNT(result->tokens - result->counted_tokens));
    for (unsigned role = 0; role < CHAT_ROLES && is_learn_given(report); role++)
        if (role_is_reported(report, (enum chat_role)role))
            cli_print(MORE "%s: %s\n", chat_role_name((enum chat_role)role),
                      CLI_COUNTED(result->roles[role].counted, "token"));
    if (result->untaught)
        cli_print(MORE "none in %s\n", CLI_COUNTED(result->untaught, "conversation"));
}

/* Prints how many texts are rearranged. */
static void fim_print(const struct pack_report *report)
{
    const struct fim_counts *fim = &report->result->fim;
    if (report->options->fim)
        cli_print("    rearranged %s: %s prefix-suffix-middle, %s suffix-prefix-middle\n",
                  CLI_COUNTED(fim->psm + fim->spm, report->options->fim->unit ? "piece" : "document"),
                  CLI_COUNT(fim->psm), CLI_COUNT(fim->spm));
    if (report->options->fim && fim->left)
        cli_print(MORE "and %s not, whose text has these tokens already\n", CLI_COUNTED(fim->left, "document"));
}

/* Says of how many documents the token that ends or begins them was there already. */
static void present_print(uint64_t present, uint64_t added)
{
    if (present)
        cli_print(MORE "there already in %s, added to %s\n", CLI_COUNT(present), CLI_COUNT(added));
}

/* Says what the file's post-processor would put around each document, and of how many documents the ids may be others
 * than with --cut-as. */
static void choices_print(const struct pack_report *report)
{
    const struct tokenizer_info info = pack_tokenizer(report->options->tokenizer, report->options->vocabulary);
    if (info.frame)
        cli_print(MORE "(the file's post-processor puts %s a text; here --bos and --eod choose)\n", info.frame);
    const struct text_cuts *cuts = text_cuts_named(info.code_cuts ? info.code_cuts : "");
    if (info.cut_as)
        cli_print("    cut        as by the code of %s\n", info.cut_as);
    else if (cuts && report->result->uncut)
        cli_print(
            "    encoded    %s of more than %s bytes as a whole: the code of %s may cut such texts, and --cut-as %s "
            "gives its ids\n",
            CLI_COUNTED(report->result->uncut, "document"), CLI_COUNT(cuts->run), cuts->name, cuts->name);
}

static void tokens_print(const struct pack_report *report)
{
    const struct pack_result *result = report->result;
    char text[LENGTHS_TEXT];
    const bool text_known = text_tokens(result) && report->options->corpus.content != CORPUS_CONTENT_IDS;
    cli_print("  tokens       %s%s%s\n", CLI_COUNT(result->tokens), text_known ? ", a token is " : "",
              text_known ? bytes_a_token_text(result->counts.text_bytes, text_tokens(result), (char[64]){0}) : "");
    if (result->has_mask)
        mask_print(report);
    cli_print("  documents    %s%s%s\n", CLI_COUNT(result->counts.documents),
              result->counts.empty_documents ? ", of which empty: " : "",
              result->counts.empty_documents ? CLI_COUNT(result->counts.empty_documents) : "");
    cli_print("    in tokens  %s\n", lengths_text(&result->lengths, text));
    if (report->options->shuffle)
        cli_print("    shuffled   with seed %" PRIu64 "\n", report->options->shuffle->seed);
    fim_print(report);
    if (report->options->bos_id != TOKMAP_NO_ID)
        cli_print("    begin with %s\n", token_text(report->options->tokenizer, report->options->bos_id, text));
    present_print(result->bos_present, result->bos_tokens);
    cli_print("    end with   %s\n", report->options->eod_id == TOKMAP_NO_ID
                                         ? "no token: nothing marks where the next one begins"
                                         : token_text(report->options->tokenizer, report->options->eod_id, text));
    present_print(result->eod_present, result->eod_tokens);
    choices_print(report);
    if (report->options->chat)
        cli_print("    written as %s\n", chat_template_name(report->options->chat));
    for (size_t i = 0; i < report->options->corpus.column_count; i++)
        cli_print("%s%.80s, of %s documents\n", i ? MORE : "  columns      ", report->options->corpus.columns[i],
                  CLI_COUNT(result->with_value[i]));
}

static void oversized_print(const struct pack_report *report)
{
    if (report->result->oversized)
        cli_print(MORE "%s longer than %s tokens, each in a shard of its own\n",
                  CLI_COUNTED(report->result->oversized, "document"), CLI_COUNT(report->options->shard_tokens));
}

/* Bytes of the sealed tokens of all shards. */
static uint64_t sealed_bytes(const struct pack_report *report)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < (report->options->split ? report->options->split->count : 1); i++)
        bytes += report->result->sets[i].sealed_bytes;
    return bytes;
}

static void sealed_print(const struct pack_report *report)
{
    const struct tokenizer_info info = pack_tokenizer(report->options->tokenizer, report->options->vocabulary);
    if (!report->options->seal)
        return;
    const uint64_t tokens = report->result->tokens * info.width, sealed = sealed_bytes(report);
    cli_print("    sealed     %s of tokens in %s, ratio %.2f\n", CLI_BYTES(tokens), CLI_BYTES(sealed),
              sealed ? (double)tokens / (double)sealed : 0.0);
}

/* Prints the sets of a split. */
static void sets_print(const struct pack_report *report)
{
    for (uint32_t i = 0; i < report->options->split->count; i++) {
        const struct shard_set_result *set = &report->result->sets[i];
        cli_print("  %-12s %s.%s: %s (%.4f%%) with %s in %s\n", i ? "" : "output", report->shown,
                  report->options->split->sets[i].name, CLI_COUNTED(set->documents, "document"),
                  cli_percent(set->documents, report->result->counts.documents), CLI_COUNTED(set->tokens, "token"),
                  CLI_COUNTED(set->shards, "shard"));
        cli_print(MORE "content id %s\n", HASH128_HEX(set->content));
    }
    sealed_print(report);
    oversized_print(report);
}

static void output_print(const struct pack_report *report)
{
    const struct pack_result *result = report->result;
    const char *shown = report->shown;
    const enum shard_file file = report->options->seal ? SHARD_SEALED : SHARD_TOKENS;
    if (report->options->split) {
        sets_print(report);
        return;
    }
    if (report->sets) {
        cli_print("  output       %s (the manifest of %s)\n", shown, CLI_COUNTED(result->shards, "shard"));
        cli_print(MORE "%s-00000.bin%s%s\n", shown, report->options->seal ? ".zst" : "",
                  result->shards > 1 ? " and so on" : "");
        sealed_print(report);
        oversized_print(report);
    } else {
        cli_print("  output       %s%s (%s)\n", shown, shard_file_ending(file, SHARD_FINAL),
                  CLI_BYTES(output_bytes(report->options->prefix, file)));
        sealed_print(report);
        cli_print(MORE "%s.tmx (%s)\n", shown, CLI_BYTES(output_bytes(report->options->prefix, SHARD_INDEX)));
        if (result->has_mask)
            cli_print(MORE "%s.mask (%s)\n", shown, CLI_BYTES(output_bytes(report->options->prefix, SHARD_MASK)));
    }
    cli_print("  content id   %s\n", HASH128_HEX(result->content));
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

static void next_print(const struct pack_report *report)
{
    char given[PATH_TEXT], seq_len[32] = "";
    (void)snprintf(given, sizeof given, "%s%s%s", report->shown, report->options->split ? "." : "",
                   report->options->split ? report->options->split->sets[0].name : "");
    char *name = cli_shell_quote(given);
    if (report->result->tokens > SEQ_LEN)
        (void)snprintf(seq_len, sizeof seq_len, " --seq-len %d", SEQ_LEN);
    if (name)
        printf("\nnext:\n  tokmap info %s%s\n  tokmap show %s --document 0%s\n", name, seq_len, name,
               report->options->tokenizer ? "" : " --ids");
    free(name);
}

static void head_print(const struct pack_report *report)
{
    const struct corpus_counts *counts = &report->result->counts;
    const bool ids = report->options->corpus.content == CORPUS_CONTENT_IDS;
    const uint64_t bytes = ids ? counts->stream_bytes : counts->text_bytes;
    const uint64_t before = ids ? report->result->stream_before : report->result->text_before;
    const double rate = report->seconds > 0 ? (double)(bytes - before) / report->seconds : 0;
    printf("%s %s of %s in %s (%s/s)\n", report->options->dry_run ? "would pack" : "packed", CLI_BYTES(bytes - before),
           ids ? "records" : "text", CLI_SECONDS(report->seconds), CLI_BYTES(rate < 9e18 ? (uint64_t)rate : 0));
    if (before)
        printf("continued after %s that were packed before; all numbers below are those of the whole\n",
               CLI_BYTES(before));
    printf("\n");
}

/* ---- for both ---- */

static void tokenizer_report(const struct pack_report *report, struct cli_report *out)
{
    const struct tokenizer_info info = pack_tokenizer(report->options->tokenizer, report->options->vocabulary);
    const bool formed = report->options->tokenizer && strcmp(info.name, info.form) != 0;
    cli_report_object(out, "tokenizer");
    if (report->options->tokenizer) {
        cli_member(out, "name", cli_text(info.name));
        cli_member(out, "form", cli_text(info.form));
    }
    cli_member_text_if(out, "path", report->options->tokenizer_path);
    cli_member(out, "fingerprint", cli_text(HASH128_HEX(info.fingerprint)));
    cli_numbers(out, "vocabulary|width", info.vocabulary, info.width);
    cli_member(out, "eod_id", cli_id(report->options->eod_id));
    cli_member(out, "bos_id", cli_id(report->options->bos_id));
    cli_member_text_if(out, "post_processor", info.frame);
    cli_member_text_if(out, "cut_as", info.cut_as);
    if (info.code_cuts && !info.cut_as) {
        cli_member(out, "code_cuts", cli_text(info.code_cuts));
        cli_member(out, "documents_uncut", cli_number(report->result->uncut));
    }
    cli_member_text_if(out, "chat_template", report->options->chat ? chat_template_name(report->options->chat) : NULL);
    cli_report_close(out);
    if (out->as_json)
        return;
    if (report->options->tokenizer)
        cli_print("  tokenizer    %s%s%s%s, %s ids, %" PRIu32 " bytes a token\n", info.name, formed ? " (" : "",
                  formed ? info.form : "", formed ? ")" : "", CLI_COUNT(info.vocabulary), info.width);
    else
        cli_print("  tokenizer    unknown: ready-made ids below %s, %" PRIu32 " bytes a token\n",
                  CLI_COUNT(info.vocabulary), info.width);
    if (report->options->tokenizer && report->options->tokenizer_path)
        cli_print(MORE "%s\n", report->options->tokenizer_path);
    if (report->options->tokenizer && !report->tokenizer_given)
        cli_print(MORE "no -t FILE was given: each byte of the text is a token\n");
}

/* Adds the files: for people in one line, if all have one format. */
static void files_report(const struct corpus_counts *counts, struct cli_report *out)
{
    const struct format_name *only = NULL;
    char text[64] = "";
    for (size_t i = 0; i < FORMAT_NAMES; i++)
        if (counts->files && counts->files_of[format_names[i].format] == counts->files)
            only = &format_names[i];
    if (only)
        (void)snprintf(text, sizeof text, "%s%s%s", only->text, *only->remark ? ", " : "", only->remark);
    cli_line(out, "files", "files", counts->files, only || !counts->files ? text : "of which:");
    cli_report_object(out, "files_by_format");
    for (size_t i = 0; i < FORMAT_NAMES; i++) {
        const struct format_name *name = &format_names[i];
        (void)snprintf(text, sizeof text, "  %s", name->text);
        if (counts->files_of[name->format])
            cli_line(out, name->word, only ? NULL : text, counts->files_of[name->format], name->remark);
    }
    cli_report_close(out);
}

/* Adds a number; for people, only if it is not 0. */
static void line_if(struct cli_report *out, const char *name, const char *label, uint64_t number, const char *remark)
{
    cli_line(out, name, number ? label : NULL, number, remark);
}

/* Accounts for every byte that was read. */
static void input_report(const struct pack_report *report, struct cli_report *out)
{
    const struct corpus_counts *counts = &report->result->counts;
    const bool ids = report->options->corpus.content == CORPUS_CONTENT_IDS;
    files_report(counts, out);
    cli_member(out, "files_skipped", cli_number(counts->files_skipped));
    cli_line(out, "stored_bytes", "bytes as stored", counts->stored_bytes, "");
    line_if(out, "fetched_bytes", "bytes fetched", http_fetched(), "from servers, by this process");
    /* No byte of Parquet was decompressed here: it is counted as it is stored. */
    const bool some = counts->files_of[CORPUS_PARQUET], all = counts->files_of[CORPUS_PARQUET] == counts->files && some;
    cli_line(out, "input_bytes", "input bytes", counts->stream_bytes,
             all    ? "as stored, of which:"
             : some ? "after decompression, but Parquet as stored, of which:"
                    : "after decompression, of which:");
    cli_line(out, "document_bytes", "  document bytes", counts->document_bytes,
             all    ? "compressed pages of the texts"
             : some ? "of Parquet, compressed pages of the texts"
                    : "");
    line_if(out, "structure_bytes", "  structure bytes", counts->structure_bytes,
            all    ? "dictionaries, which can have the texts, other columns, headers"
            : some ? "around the texts, and line ends; dictionaries and other columns of Parquet"
                   : "around the texts, and line ends");
    line_if(out, "skipped_bytes", "  skipped bytes", counts->skipped_bytes, "");
    cli_numbers(out, "documents|empty_documents|records_skipped", counts->documents, counts->empty_documents,
                counts->records_skipped);
    line_if(out, "blank_lines", "blank lines", counts->blank_lines, "");
    line_if(out, "about_records", "WARC records", counts->about_records,
            "about others, so they are structure: warcinfo, metadata, request");
    line_if(out, "sequences_replaced", "sequences replaced", counts->replaced, "invalid UTF-8, now U+FFFD");
    line_if(out, "not_finite_values", "NaN, Infinity", counts->not_finite,
            "values that JSON does not have, in fields that are not read");
    line_if(out, "byte_order_marks", "byte order marks", counts->marks, "kept, since texts begin with them");
    line_if(out, "files_undivided", "files undivided", counts->undivided, "the separator does not occur in them");
    cli_line(out, "text_bytes", ids ? NULL : "text bytes", counts->text_bytes,
             counts->text_bytes == counts->document_bytes ? "" : "after decoding");
}

/* ---- JSON ---- */

/* Adds what was made. */
static void output_members(const struct pack_report *report, struct cli_report *out)
{
    const struct pack_result *result = report->result;
    cli_member_text_if(out, "output", report->options->dry_run ? NULL : report->shown);
    cli_member(out, "dry_run", cli_bool(report->options->dry_run));
    if (!report->options->dry_run && !report->options->split)
        cli_member(out, "content", cli_text(HASH128_HEX(result->content)));
    if (report->sets && !report->options->dry_run)
        cli_numbers(out, "shards|oversized_documents", result->shards, result->oversized);
    if (report->options->split && !report->options->dry_run) {
        cli_report_object(out, "sets");
        for (uint32_t i = 0; i < report->options->split->count; i++) {
            const struct shard_set_result *set = &result->sets[i];
            cli_report_object(out, report->options->split->sets[i].name);
            cli_numbers(out, "documents|tokens|shards", set->documents, set->tokens, set->shards);
            cli_member(out, "content", cli_text(HASH128_HEX(set->content)));
            cli_report_close(out);
        }
        cli_report_close(out);
    }
    if (report->options->seal && !report->options->dry_run)
        cli_member(out, "sealed_bytes", cli_number(sealed_bytes(report)));
    if (report->options->shuffle)
        cli_member(out, "shuffle", cli_number(report->options->shuffle->seed));
}

/* Adds what other content than text has. */
static void content_members(const struct pack_report *report, struct cli_report *out)
{
    const struct pack_result *result = report->result;
    if (report->options->corpus.content == CORPUS_CONTENT_IDS)
        cli_numbers(out, "eod_present|bos_present", result->eod_present, result->bos_present);
    if (result->has_mask) {
        cli_member(out, "counted_tokens", cli_number(result->counted_tokens));
        cli_member(out, "masked_tokens", cli_number(result->tokens - result->counted_tokens));
    }
    if (result->has_mask && report->options->chat) {
        cli_member(out, "documents_without_targets", cli_number(result->untaught));
        cli_report_object(out, "counted_tokens_of");
        for (unsigned role = 0; role < CHAT_ROLES; role++)
            if (role_is_reported(report, (enum chat_role)role))
                cli_member(out, chat_role_name((enum chat_role)role), cli_number(result->roles[role].counted));
        cli_report_close(out);
    }
    if (report->options->fim) {
        cli_report_object(out, "fim");
        cli_numbers(out, "psm|spm|left|tokens", result->fim.psm, result->fim.spm, result->fim.left, result->fim.tokens);
        cli_report_close(out);
    }
    if (!report->options->corpus.column_count)
        return;
    cli_report_object(out, "columns");
    for (size_t i = 0; i < report->options->corpus.column_count; i++)
        cli_member(out, report->options->corpus.columns[i], cli_number(result->with_value[i]));
    cli_report_close(out);
}

static void tokens_members(const struct pack_report *report, struct cli_report *out)
{
    const struct pack_result *result = report->result;
    const uint64_t tokens = report->options->corpus.content == CORPUS_CONTENT_IDS ? 0 : text_tokens(result);
    cli_numbers(out, "tokens|eod_tokens|bos_tokens|largest_id", result->tokens, result->eod_tokens, result->bos_tokens,
                result->largest_id);
    content_members(report, out);
    cli_member(out, "bytes_per_token",
               tokens ? cli_real((double)result->counts.text_bytes / (double)tokens) : cli_null());
    lengths_members(&result->lengths, out);
}

/* ---- the whole ---- */

void pack_report(const struct pack_report *report, bool json)
{
    const struct pack_result *result = report->result;
    const char *list = report->options->dry_run ? NULL : report->options->prefix;
    struct cli_report out;
    cli_report_begin(&out, json, NULL);
    if (json)
        output_members(report, &out);
    else
        head_print(report);
    tokenizer_report(report, &out);
    if (!json) {
        tokens_print(report);
        if (!report->options->dry_run)
            output_print(report);
        (void)puts("\nread:");
    }
    input_report(report, &out);
    if (json) {
        tokens_members(report, &out);
        drop_report_to(&result->dropped, list, &out);
        listed_report_to(report->options->listed, &result->listed, &out);
    }
    skip_report_to(report->skips, &result->counts, &out);
    if (!json) {
        drop_report_to(&result->dropped, list, &out);
        listed_report_to(report->options->listed, &result->listed, &out);
    }
    also_report_to(report->also, result->also, "tokmap pack", &out);
    cli_member(&out, "seconds", cli_real(report->seconds));
    cli_member(&out, "text_bytes_before", cli_number(result->text_before));
    cli_report_end(&out);
    if (!json && !report->options->dry_run)
        next_print(report);
}
