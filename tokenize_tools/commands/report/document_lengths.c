/* SPDX-License-Identifier: MIT */
#include "document_lengths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/data/range_share.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"

#define LOT ((uint64_t)1 << 16) /* documents that a thread takes at a time */

/* ---- bins ---- */

unsigned length_bin_of(uint64_t tokens)
{
    return tokens ? 64u - (unsigned)__builtin_clzll(tokens) : 0;
}

uint64_t length_bin_from(unsigned bin)
{
    return bin ? (uint64_t)1 << (bin - 1) : 0;
}

uint64_t length_bin_to(unsigned bin)
{
    return bin ? length_bin_from(bin) + (length_bin_from(bin) - 1) : 0;
}

static void bin_add(struct length_bin *bin, uint64_t documents, uint64_t tokens)
{
    bin->documents += documents;
    bin->tokens += tokens;
}

/* ---- the pass over the documents ---- */

struct measuring {
    const struct tokmap_dataset *dataset;
    bool origins;
    struct document_report *parts; /* one for each thread */
};

static enum tokmap_status origin_count(const struct measuring *measuring, struct document_report *part,
                                       const struct tokmap_document *document, struct tokmap_error *error)
{
    struct tokmap_origin origin;
    /* Without origins every document fails with NOT_FOUND, whose message nobody reads. */
    enum tokmap_status status = tokmap_dataset_origin(measuring->dataset, document->number, &origin, NULL);
    if (status == TOKMAP_ERROR_NOT_FOUND) {
        bin_add(&part->unknown, 1, document->tokens);
        return TOKMAP_OK;
    }
    if (status)
        return tokmap_dataset_origin(measuring->dataset, document->number, &origin, error);
    const struct origin_share one = {origin.path, origin.path_bytes, 1, document->tokens};
    return origin_shares_add(&part->files, &one) ? TOKMAP_OK : error_set_memory(error, "the list of input files", 0);
}

static enum tokmap_status documents_count(void *user, uint32_t thread, uint64_t first, uint64_t count,
                                          struct tokmap_error *error)
{
    const struct measuring *measuring = user;
    struct document_report *part = &measuring->parts[thread];
    for (uint64_t number = first; number < first + count; number++) {
        struct tokmap_document document;
        enum tokmap_status status = tokmap_dataset_document(measuring->dataset, number, &document, error);
        if (!status && measuring->origins)
            status = origin_count(measuring, part, &document, error);
        if (status)
            return status;
        part->smallest = part->lengths.count ? min64(part->smallest, document.tokens) : document.tokens;
        histogram_add(&part->lengths, document.tokens, 1);
        bin_add(&part->bins[length_bin_of(document.tokens)], 1, document.tokens);
    }
    return TOKMAP_OK;
}

static bool part_merge(struct document_report *report, const struct document_report *part)
{
    if (part->lengths.count)
        report->smallest = report->lengths.count ? min64(report->smallest, part->smallest) : part->smallest;
    histogram_merge(&report->lengths, &part->lengths);
    for (unsigned bin = 0; bin < LENGTH_BINS; bin++)
        bin_add(&report->bins[bin], part->bins[bin].documents, part->bins[bin].tokens);
    bin_add(&report->unknown, part->unknown.documents, part->unknown.tokens);
    for (uint64_t i = 0; i < part->files.count; i++)
        if (!origin_shares_add(&report->files, &part->files.files[i]))
            return false;
    return true;
}

enum tokmap_status document_report_make(struct document_report *report, const struct tokmap_dataset *dataset,
                                        uint64_t threads, bool origins, int progress, struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    enum tokmap_status status = TOKMAP_OK;
    memset(report, 0, sizeof *report);
    report->counted = info.shards ? info.documents : min64(info.documents, SYNTHETIC_DOCUMENTS);
    const uint32_t wanted = range_threads(threads, report->counted, LOT);
    struct measuring measuring = {dataset, origins && info.shards, calloc(wanted, sizeof *report)};
    bool memory = histogram_new(&report->lengths) && measuring.parts;
    for (uint32_t i = 0; i < wanted && memory; i++)
        memory = histogram_new(&measuring.parts[i].lengths);
    const struct range_share share = {"measuring documents", "documents", report->counted, LOT, wanted, progress,
                                      documents_count,       &measuring};
    if (memory)
        status = range_share_run(&share, error);
    for (uint32_t i = 0; i < wanted && measuring.parts; i++) {
        if (memory && !status)
            memory = part_merge(report, &measuring.parts[i]);
        document_report_free(&measuring.parts[i]);
    }
    free(measuring.parts);
    origin_shares_sort(&report->files);
    return status || memory ? status : error_set_memory(error, "the lengths of documents", 0);
}

void document_report_free(struct document_report *report)
{
    histogram_free(&report->lengths);
    origin_shares_free(&report->files);
}

enum tokmap_status dataset_lengths(const struct tokmap_dataset *dataset, int mode, struct lengths *lengths,
                                   struct tokmap_error *error)
{
    struct document_report report;
    const enum tokmap_status status = document_report_make(&report, dataset, 0, false, mode, error);
    if (status)
        memset(lengths, 0, sizeof *lengths);
    else
        lengths_of(&report.lengths, lengths);
    document_report_free(&report);
    return status;
}

/* ---- tables, JSON ---- */

static const struct percentile {
    const char *name;
    uint64_t per_thousand;
} percentiles[] = {
    {"p1", 10},   {"p5", 50},   {"p10", 100}, {"p25", 250}, {"p50", 500},
    {"p75", 750}, {"p90", 900}, {"p95", 950}, {"p99", 990}, {"p999", 999},
};
#define PERCENTILES (sizeof percentiles / sizeof percentiles[0])

/* Prints the mean with one decimal. It is at most the largest length, which fits in 64 bits. */
static const char *mean_text(double mean, char text[32])
{
    const uint64_t whole = (uint64_t)mean;
    const unsigned tenths = (unsigned)((mean - (double)whole) * 10 + 0.5); /* 10: rounded up to a whole */
    (void)snprintf(text, 32, "%s.%u", CLI_COUNT(whole + tenths / 10), tenths % 10);
    return text;
}

static void percentiles_report(const struct document_report *lengths, struct cli_report *report)
{
    const struct histogram *all = &lengths->lengths;
    if (!all->count) {
        cli_member(report, "document_tokens", cli_null());
        return;
    }
    const double mean = (double)all->sum / (double)all->count;
    cli_report_object(report, "document_tokens");
    cli_numbers(report, "documents|min", all->count, lengths->smallest);
    if (!report->as_json)
        cli_print("  min %s", CLI_COUNT(lengths->smallest));
    for (size_t i = 0; i < PERCENTILES; i++) {
        const uint64_t tokens = histogram_percentile(all, percentiles[i].per_thousand);
        cli_member(report, percentiles[i].name, cli_number(tokens));
        /* Two lines: the quartiles and what is below them, and the long end. */
        if (!report->as_json)
            printf("%s%s %s", percentiles[i].per_thousand == 750 ? "\n  " : ", ", percentiles[i].name,
                   CLI_COUNT(tokens));
    }
    cli_member(report, "max", cli_number(all->largest));
    cli_member(report, "mean", cli_real(mean));
    if (!report->as_json)
        cli_print(", max %s\n  mean %s\n", CLI_COUNT(all->largest), mean_text(mean, (char[32]){0}));
    cli_report_close(report);
}

/* Writes a bar of the length that `part` has beside `most`, which has BAR characters. What is not 0 has at least one.
 */
#define BAR 30
static void bar_text(uint64_t part, uint64_t most, char text[BAR + 1])
{
    const uint64_t length = part ? max64(1, mul_div(part, BAR, most)) : 0;
    memset(text, '#', length);
    text[length] = '\0';
}

/* Lists the bins: in JSON those that have documents, and for people all from the first to the last of them. */
static void bins_report(const struct document_report *lengths, struct cli_report *report)
{
    uint64_t most = 0, tokens = 0;
    unsigned first = LENGTH_BINS, last = 0;
    for (unsigned bin = 0; bin < LENGTH_BINS; bin++) {
        most = max64(most, lengths->bins[bin].documents);
        tokens += lengths->bins[bin].tokens;
        if (lengths->bins[bin].documents) {
            first = first == LENGTH_BINS ? bin : first;
            last = bin;
        }
    }
    cli_report_list(report, "lengths", ">  tokens|>documents|>%|>% of tokens|");
    for (unsigned bin = first; bin <= last; bin++) {
        const struct length_bin *one = &lengths->bins[bin];
        const uint64_t from = length_bin_from(bin), to = length_bin_to(bin);
        char bar[BAR + 1];
        if (report->as_json && !one->documents)
            continue;
        bar_text(one->documents, most, bar);
        cli_report_item(report);
        cli_fact(report, "from", "  tokens", cli_number(from), "  %s%s%s", CLI_COUNT(from), from == to ? "" : " to ",
                 from == to ? "" : CLI_COUNT(to));
        cli_member(report, "to", cli_number(to));
        cli_fact_number(report, "documents", "documents", one->documents);
        cli_member(report, "tokens", cli_number(one->tokens));
        cli_row(report, "%", "%.2f", cli_percent(one->documents, lengths->lengths.count));
        cli_row(report, "% of tokens", "%.2f", cli_percent(one->tokens, tokens));
        cli_row(report, "", "%s", bar);
        cli_report_close(report);
    }
    cli_report_close(report);
}

void document_report_add(const struct document_report *lengths, uint64_t documents, struct cli_report *report)
{
    const bool part = lengths->counted < documents;
    if (!report->as_json)
        cli_print("lengths of documents in tokens%s%s\n", part ? ", of the first " : "",
                  part ? CLI_COUNTED(lengths->counted, "document") : "");
    percentiles_report(lengths, report);
    if (report->as_json || lengths->lengths.count)
        bins_report(lengths, report);
    else
        cli_print("  none\n");
}

const char *lengths_text(const struct lengths *lengths, char text[LENGTHS_TEXT])
{
    char e[32];
    if (!lengths->documents)
        return memcpy(text, "none", sizeof "none");
    (void)snprintf(text, LENGTHS_TEXT, "p50 %s, p90 %s, p99 %s, max %s, mean %s", CLI_COUNT(lengths->p50),
                   CLI_COUNT(lengths->p90), CLI_COUNT(lengths->p99), CLI_COUNT(lengths->largest),
                   mean_text(lengths->mean, e));
    return text;
}

void lengths_members(const struct lengths *lengths, struct cli_report *report)
{
    if (!lengths->documents) {
        cli_member(report, "document_tokens", cli_null());
        return;
    }
    cli_report_object(report, "document_tokens");
    cli_numbers(report, "p50|p90|p99|max", lengths->p50, lengths->p90, lengths->p99, lengths->largest);
    cli_member(report, "mean", cli_real(lengths->mean));
    cli_report_close(report);
}

const char *bytes_a_token_text(uint64_t text_bytes, uint64_t tokens, char text[64])
{
    if (tokens)
        (void)snprintf(text, 64, "%.2f bytes of text", (double)text_bytes / (double)tokens);
    else
        (void)snprintf(text, 64, "unknown");
    return text;
}

/* ---- input files ---- */

static bool same_path(const struct origin_share *a, const struct origin_share *b)
{
    return a->path_bytes == b->path_bytes && (a->path == b->path || !memcmp(a->path, b->path, a->path_bytes));
}

/* Returns the slot of a path, or the empty slot where it belongs. */
static uint64_t *slot_find(const struct origin_shares *shares, const struct origin_share *wanted)
{
    uint64_t at = table_hash(shares->key, (const uint8_t *)wanted->path, wanted->path_bytes) & (shares->slot_count - 1);
    while (shares->slots[at] && !same_path(&shares->files[shares->slots[at] - 1], wanted))
        at = (at + 1) & (shares->slot_count - 1);
    return &shares->slots[at];
}

static bool shares_grow(struct origin_shares *shares)
{
    if (shares->count < shares->capacity)
        return true;
    const uint64_t capacity = shares->capacity ? 2 * shares->capacity : 16;
    if (!shares->capacity)
        shares->key = table_key_new();
    struct origin_share *files = realloc(shares->files, capacity * sizeof *files);
    if (!files)
        return false;
    shares->files = files;
    uint64_t *slots = calloc(2 * capacity, sizeof *slots);
    if (!slots)
        return false;
    free(shares->slots);
    shares->slots = slots;
    shares->capacity = capacity;
    shares->slot_count = 2 * capacity;
    for (uint64_t i = 0; i < shares->count; i++)
        *slot_find(shares, &files[i]) = i + 1;
    return true;
}

bool origin_shares_add(struct origin_shares *shares, const struct origin_share *more)
{
    if (!shares->count || !same_path(&shares->files[shares->last], more)) {
        if (!shares_grow(shares))
            return false;
        uint64_t *slot = slot_find(shares, more);
        if (!*slot) {
            shares->files[shares->count] = (struct origin_share){.path = more->path, .path_bytes = more->path_bytes};
            *slot = ++shares->count;
        }
        shares->last = *slot - 1;
    }
    shares->files[shares->last].documents += more->documents;
    shares->files[shares->last].tokens += more->tokens;
    return true;
}

static int share_order(const void *a, const void *b)
{
    const struct origin_share *left = a, *right = b;
    if (left->tokens != right->tokens)
        return left->tokens < right->tokens ? 1 : -1;
    if (left->documents != right->documents)
        return left->documents < right->documents ? 1 : -1;
    const int order = memcmp(left->path, right->path, min64(left->path_bytes, right->path_bytes));
    if (order)
        return order;
    return left->path_bytes == right->path_bytes ? 0 : left->path_bytes < right->path_bytes ? -1 : 1;
}

void origin_shares_sort(struct origin_shares *shares)
{
    free(shares->slots);
    shares->slots = NULL;
    if (shares->count)
        qsort(shares->files, shares->count, sizeof *shares->files, share_order);
}

void origin_shares_free(struct origin_shares *shares)
{
    free(shares->files);
    free(shares->slots);
    memset(shares, 0, sizeof *shares);
}
