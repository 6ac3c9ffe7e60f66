/* mixture_report.c - see mixture_report.h. */
#include "mixture_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"

typedef unsigned __int128 wide;

#define PHASES_PRINTED 20u
#define SOURCES_PRINTED 40u

static void fault_set(char fault[MIXTURE_FAULT], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fault_set(char fault[MIXTURE_FAULT], const char *format, ...)
{
    va_list arguments;
    if (fault[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(fault, MIXTURE_FAULT, format, arguments);
    va_end(arguments);
}

/* A phase as far as it is audited. */
struct part {
    uint64_t number;
    struct tokmap_phase_info about;
    uint64_t end_step; /* at most the end of the audit */
    uint64_t draws;    /* rows that are not padding */
};

/* Returns false from the first phase on that begins after the end of the audit. */
static bool part_get(const struct mixture_report *report, uint64_t number, struct part *part)
{
    *part = (struct part){.number = number, .about = {.size = sizeof part->about}};
    if (number >= report->info.phases || tokmap_run_phase(report->run, number, &part->about) ||
        (part->about.first_step >= report->steps && number))
        return false;
    part->end_step = min64(part->about.end_step, report->steps);
    const uint64_t steps = part->end_step - min64(part->about.first_step, part->end_step);
    part->draws = steps * part->about.batch;
    if (steps && report->info.tail_pad)
        part->draws -= part->about.batch - tokmap_run_valid(report->run, part->end_step - 1);
    return true;
}

/* A share with its draws up to the end of the audit. */
static enum tokmap_status share_get(const struct mixture_report *report, const struct part *part, uint64_t number,
                                    struct tokmap_share_info *share)
{
    uint64_t before, end;
    *share = (struct tokmap_share_info){.size = sizeof *share};
    enum tokmap_status status = tokmap_run_share(report->run, part->number, number, share);
    if (status || part->end_step == part->about.end_step)
        return status;
    status = tokmap_run_drawn(report->run, share->source, min64(part->about.first_step, part->end_step), &before);
    if (!status)
        status = tokmap_run_drawn(report->run, share->source, part->end_step, &end);
    share->draws = status ? 0 : end - before;
    return status;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return add_overflows(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t mul_capped(uint64_t a, uint64_t b)
{
    uint64_t product;
    return mul_overflows(a, b, &product) ? UINT64_MAX : product;
}

/* ---- making ---- */

/* |draws * weights - all * weight| / weights, in draws. */
static double share_distance(const struct tokmap_share_info *share, uint64_t all)
{
    const wide has = (wide)share->draws * share->weights, exact = (wide)all * share->weight;
    return (double)(has > exact ? has - exact : exact - has) / (double)share->weights;
}

/* Each source of a phase begins where it ended, or at draw 0 of its next epoch after a change of seq_len. */
static void share_continues(struct mixture_report *report, const struct part *part,
                            const struct tokmap_share_info *share, uint64_t lengths, char fault[MIXTURE_FAULT])
{
    struct mixture_source *source = &report->sources[share->source];
    const bool same = share->first_epoch == source->next_epoch && share->first_draw == source->next_draw;
    const bool cut = source->seen && source->lengths != lengths && share->first_draw == 0 &&
                     share->first_epoch == source->next_epoch + (source->next_draw != 0);
    if (!same && !cut)
        fault_set(fault,
                  "phase %" PRIu64 " begins source %s at draw %" PRIu64 " of epoch %" PRIu64 ", but draw %" PRIu64
                  " of epoch %" PRIu64 " is its next",
                  part->number, source->name, share->first_draw, share->first_epoch, source->next_draw,
                  source->next_epoch);
    if (same || !source->next_draw)
        return;
    source->cuts++;
    if (report->cut_count < MIXTURE_CUTS_KEPT)
        report->cuts[report->cut_count] =
            (struct mixture_cut){share->source,     part->about.first_step, source->next_epoch,
                                 source->next_draw, source->windows,        source->seq_len};
    report->cut_count++;
}

static void share_add(struct mixture_report *report, const struct part *part, const struct tokmap_share_info *share,
                      uint64_t lengths, char fault[MIXTURE_FAULT])
{
    struct mixture_source *source = &report->sources[share->source];
    share_continues(report, part, share, lengths, fault);
    const uint64_t tokens = mul_capped(share->draws, part->about.seq_len);
    const uint64_t in_first = share->first_epoch ? 0 : min64(share->draws, share->windows - share->first_draw);
    const uint64_t from = share->first_draw + share->draws;
    source->draws += share->draws;
    source->tokens = add_capped(source->tokens, tokens);
    source->later_tokens = add_capped(source->later_tokens, mul_capped(share->draws - in_first, part->about.seq_len));
    source->epochs += (double)share->draws / (double)share->windows;
    source->windows = share->windows;
    source->seq_len = part->about.seq_len;
    source->lengths = lengths;
    source->next_epoch = share->first_epoch + from / share->windows;
    source->next_draw = from % share->windows;
    source->seen = true;
    if (share->draws)
        source->epochs_begun = share->first_epoch + (from - 1) / share->windows + 1;
    if (source->epochs_most && source->epochs_begun > source->epochs_most)
        fault_set(fault,
                  "source %s begins epoch %" PRIu64 " in phase %" PRIu64 ", but epochs<=%" PRIu64 " allows fewer",
                  source->name, source->epochs_begun - 1, part->number, source->epochs_most);
}

static enum tokmap_status part_add(struct mixture_report *report, const struct part *part, uint64_t lengths,
                                   char fault[MIXTURE_FAULT])
{
    /* Counts since the mixture began are within ceil(log2 m) of the share, so those of a later phase within twice it.
     */
    const uint64_t m = part->about.shares, levels = m > 1 ? 64 - (uint64_t)__builtin_clzll(m - 1) : 0;
    const uint64_t bound = part->about.mixture_step == part->about.first_step ? levels : 2 * levels;
    uint64_t sum = 0;
    report->levels = max64(report->levels, bound);
    for (uint64_t i = 0; i < m; i++) {
        struct tokmap_share_info share;
        const enum tokmap_status status = share_get(report, part, i, &share);
        if (status)
            return status;
        const double distance = share_distance(&share, part->draws);
        if (distance > (double)bound + 1e-6)
            fault_set(fault,
                      "source %s gets %" PRIu64 " of the %" PRIu64 " draws of phase %" PRIu64
                      ", which is %.2f draws from its share; at most %" PRIu64 " is possible",
                      report->sources[share.source].name, share.draws, part->draws, part->number, distance, bound);
        report->worst = fmax(report->worst, distance);
        sum += share.draws;
        share_add(report, part, &share, lengths, fault);
    }
    report->shares += m;
    if (sum != part->draws)
        fault_set(fault, "the sources get %" PRIu64 " of the %" PRIu64 " draws of phase %" PRIu64, sum, part->draws,
                  part->number);
    return TOKMAP_OK;
}

enum tokmap_status mixture_report_make(struct mixture_report *report, const struct tokmap_run *run, uint64_t steps,
                                       char fault[MIXTURE_FAULT], struct tokmap_error *error)
{
    *report = (struct mixture_report){.run = run, .steps = steps, .info = {.size = sizeof report->info}};
    fault[0] = '\0';
    enum tokmap_status status = tokmap_run_info(run, &report->info);
    report->skipped_counted = true;
    report->sources = status ? NULL : calloc(report->info.sources, sizeof *report->sources);
    if (!status && !report->sources)
        return error_set_memory(error, "the sources", report->info.sources * sizeof *report->sources);
    for (uint64_t i = 0; i < report->info.sources && !status; i++) {
        struct tokmap_source_info source = {.size = sizeof source};
        status = tokmap_run_source(run, i, &source);
        report->sources[i].name = source.name;
        report->sources[i].windows = source.windows;
        report->sources[i].epochs_most = source.epochs_most;
    }
    uint64_t lengths = 0, seq_len = 0;
    struct part part;
    for (uint64_t i = 0; !status && part_get(report, i, &part); i++) {
        lengths += seq_len != part.about.seq_len;
        seq_len = part.about.seq_len;
        status = part_add(report, &part, lengths, fault);
    }
    return status ? error_set(error, status, NULL, TOKMAP_NO_OFFSET, "the phases of the run cannot be described")
                  : TOKMAP_OK;
}

void mixture_report_free(struct mixture_report *report)
{
    free(report->sources);
    report->sources = NULL;
}

void mixture_report_skip(struct mixture_report *report, uint64_t first, uint64_t end)
{
    for (uint64_t i = 0; i < report->info.sources; i++) {
        uint64_t before, after;
        if (tokmap_run_drawn(report->run, i, first, &before) || tokmap_run_drawn(report->run, i, end, &after))
            report->skipped_counted = false;
        else
            report->sources[i].skipped += after - before;
    }
}

/* ---- tables ---- */

static const char *percent(double part, double all, char text[32])
{
    (void)snprintf(text, 32, "%.4g%%", all > 0 ? 100 * part / all : 0.0);
    return text;
}

static double tokens_of_all(const struct mixture_report *report)
{
    double all = 0;
    for (uint64_t i = 0; i < report->info.sources; i++)
        all += (double)report->sources[i].tokens;
    return all;
}

static void sources_print(const struct mixture_report *report)
{
    static const char *const head[] = {"source", "tokens", "share", "epochs", "after epoch 0", "windows of an epoch"};
    static const bool right[] = {false, true, true, true, true, true};
    const double all = tokens_of_all(report);
    struct cli_table *table = cli_table_new(6);
    cli_table_row(table, head);
    for (uint64_t i = 0; i < report->info.sources && i < SOURCES_PRINTED; i++) {
        const struct mixture_source *source = &report->sources[i];
        char a[32], b[32], c[64], d[32], e[32];
        const int used = snprintf(c, sizeof c, "%.4g", source->epochs);
        if (source->epochs_most && used > 0)
            (void)snprintf(c + used, sizeof c - (size_t)used, " of %" PRIu64, source->epochs_most);
        const char *const cells[] = {source->name,
                                     cli_count(source->tokens, a),
                                     percent((double)source->tokens, all, b),
                                     c,
                                     cli_count(source->later_tokens, d),
                                     cli_count(source->windows, e)};
        cli_table_row(table, cells);
    }
    putchar('\n');
    cli_table_print(table, right, stdout);
    cli_table_free(table);
    if (report->info.sources > SOURCES_PRINTED)
        printf("... and %" PRIu64 " more sources; --json lists all\n", report->info.sources - SOURCES_PRINTED);
}

static void part_rows(const struct mixture_report *report, const struct part *part, struct cli_table *table)
{
    char steps[80], batch[32], seq_len[32], a[32], b[32];
    (void)snprintf(steps, sizeof steps, "%s..%s", cli_count(part->about.first_step, a), cli_count(part->end_step, b));
    for (uint64_t i = 0; i < part->about.shares && i < SOURCES_PRINTED; i++) {
        struct tokmap_share_info share;
        char asked[32], drawn[32], got[32], epochs[96], number[32];
        if (share_get(report, part, i, &share))
            continue;
        (void)snprintf(epochs, sizeof epochs, "%.4g..%.4g",
                       (double)share.first_epoch + (double)share.first_draw / (double)share.windows,
                       (double)share.first_epoch + (double)(share.first_draw + share.draws) / (double)share.windows);
        const char *const cells[] = {i ? NULL : cli_count(part->number, number),
                                     i ? NULL : steps,
                                     i ? NULL : cli_count(part->about.batch, batch),
                                     i ? NULL : cli_count(part->about.seq_len, seq_len),
                                     report->sources[share.source].name,
                                     percent((double)share.weight, (double)share.weights, asked),
                                     percent((double)share.draws, (double)part->draws, got),
                                     cli_count(share.draws, drawn),
                                     epochs};
        cli_table_row(table, cells);
    }
}

static void phases_print(const struct mixture_report *report)
{
    static const char *const head[] = {"phase",  "steps", "batch", "seq_len", "source",
                                       "weight", "share", "draws", "epochs"};
    static const bool right[] = {true, true, true, true, false, true, true, true, true};
    struct cli_table *table = cli_table_new(9);
    struct part part;
    uint64_t i = 0;
    cli_table_row(table, head);
    for (; i < PHASES_PRINTED && part_get(report, i, &part); i++)
        part_rows(report, &part, table);
    putchar('\n');
    cli_table_print(table, right, stdout);
    cli_table_free(table);
    if (i == PHASES_PRINTED && part_get(report, i, &part))
        puts("... and more phases; --json lists all");
}

static void cuts_print(const struct mixture_report *report)
{
    char a[32], b[32], c[32], d[32], e[32];
    if (report->cut_count)
        putchar('\n');
    for (uint64_t i = 0; i < report->cut_count && i < 8; i++) {
        const struct mixture_cut *cut = &report->cuts[i];
        cli_print("step %s: the new seq_len starts %s again in epoch %s; of epoch %s, %s of %s windows were shown\n",
                  cli_count(cut->step, a), report->sources[cut->source].name, cli_count(cut->epoch + 1, b),
                  cli_count(cut->epoch, c), cli_count(cut->shown, d), cli_count(cut->windows, e));
    }
    if (report->cut_count > 8)
        printf("... and %s\n", cli_counted(report->cut_count - 8, "more such epoch", (char[64]){0}));
}

void mixture_report_print(const struct mixture_report *report)
{
    sources_print(report);
    phases_print(report);
    cuts_print(report);
}

/* ---- JSON ---- */

static void sources_json(const struct mixture_report *report, struct cli_json *json)
{
    cli_json_array(json, "sources");
    for (uint64_t i = 0; i < report->info.sources; i++) {
        const struct mixture_source *source = &report->sources[i];
        cli_json_object(json, NULL);
        cli_json_text(json, "source", source->name);
        cli_json_number(json, "draws", source->draws);
        if (report->skipped_counted)
            cli_json_number(json, "draws_skipped", source->skipped);
        else
            cli_json_null(json, "draws_skipped");
        cli_json_number(json, "tokens", source->tokens);
        cli_json_number(json, "tokens_after_epoch_0", source->later_tokens);
        cli_json_real(json, "epochs", source->epochs);
        cli_json_number(json, "epochs_begun", source->epochs_begun);
        cli_json_number(json, "epochs_most", source->epochs_most);
        cli_json_number(json, "epochs_cut", source->cuts);
        cli_json_number(json, "windows", source->windows);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void part_json(const struct mixture_report *report, const struct part *part, struct cli_json *json)
{
    cli_json_object(json, NULL);
    cli_json_number(json, "first_step", part->about.first_step);
    cli_json_number(json, "end_step", part->end_step);
    cli_json_number(json, "batch", part->about.batch);
    cli_json_number(json, "seq_len", part->about.seq_len);
    cli_json_number(json, "draws", part->draws);
    cli_json_number(json, "mixture_step", part->about.mixture_step);
    cli_json_array(json, "shares");
    for (uint64_t i = 0; i < part->about.shares; i++) {
        struct tokmap_share_info share;
        if (share_get(report, part, i, &share))
            continue;
        cli_json_object(json, NULL);
        cli_json_text(json, "source", report->sources[share.source].name);
        cli_json_number(json, "weight", share.weight);
        cli_json_number(json, "weights", share.weights);
        cli_json_number(json, "draws", share.draws);
        cli_json_number(json, "windows", share.windows);
        cli_json_number(json, "first_epoch", share.first_epoch);
        cli_json_number(json, "first_draw", share.first_draw);
        cli_json_end(json);
    }
    cli_json_end(json);
    cli_json_end(json);
}

void mixture_report_json(const struct mixture_report *report, struct cli_json *json)
{
    struct part part;
    sources_json(report, json);
    cli_json_array(json, "phases");
    for (uint64_t i = 0; part_get(report, i, &part); i++)
        part_json(report, &part, json);
    cli_json_end(json);
    cli_json_array(json, "cut_epochs");
    for (uint64_t i = 0; i < report->cut_count && i < MIXTURE_CUTS_KEPT; i++) {
        const struct mixture_cut *cut = &report->cuts[i];
        cli_json_object(json, NULL);
        cli_json_text(json, "source", report->sources[cut->source].name);
        cli_json_number(json, "step", cut->step);
        cli_json_number(json, "epoch", cut->epoch);
        cli_json_number(json, "windows_shown", cut->shown);
        cli_json_number(json, "windows", cut->windows);
        cli_json_number(json, "seq_len", cut->seq_len);
        cli_json_end(json);
    }
    cli_json_end(json);
}
