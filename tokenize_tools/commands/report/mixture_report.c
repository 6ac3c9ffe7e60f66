/* SPDX-License-Identifier: MIT */
#include "mixture_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "run/exclusion.h"
#include "run/run.h"

typedef unsigned __int128 wide;

#define PHASES_PRINTED 20u
#define SOURCES_PRINTED 40u
#define CUTS_PRINTED 8u

__attribute__((format(printf, 2, 3))) static void fault_set(char fault[MIXTURE_FAULT], const char *format, ...)
{
    va_list arguments;
    if (fault[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(fault, MIXTURE_FAULT, format, arguments);
    va_end(arguments);
}

struct part {
    uint64_t number;
    struct tokmap_phase_info about;
    uint64_t end_step;    /* at most the end of the audit */
    uint64_t rows, draws; /* draws: rows that are not padding */
};

bool mixture_phase(const struct mixture_report *report, uint64_t number, struct tokmap_phase_info *phase)
{
    *phase = (struct tokmap_phase_info){.size = sizeof *phase};
    return number < report->info.phases && !tokmap_run_phase(report->run, number, phase) &&
           (phase->first_step < report->steps || !number);
}

static bool part_get(const struct mixture_report *report, uint64_t number, struct part *part)
{
    part->number = number;
    if (!mixture_phase(report, number, &part->about))
        return false;
    part->end_step = min64(part->about.end_step, report->steps);
    part->rows = part->draws = (part->end_step - min64(part->about.first_step, part->end_step)) * part->about.batch;
    if (part->rows && report->info.tail_pad)
        part->draws -= part->about.batch - tokmap_run_real_rows(report->run, part->end_step - 1);
    return true;
}

/* Gets a share with its draws up to the end of the audit. */
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

/* ---- making ---- */

/* |draws * weights - all * weight| / weights, in draws. */
static double share_distance(const struct tokmap_share_info *share, uint64_t all)
{
    const wide has = (wide)share->draws * share->weights, exact = (wide)all * share->weight;
    return (double)(has > exact ? has - exact : exact - has) / (double)share->weights;
}

/* Finds out where a source continues. Each source of a phase begins where it ended, or at draw 0 of its next epoch
 * after a change of seq_len. */
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
    source->windows_first = source->seen ? source->windows_first : share->windows;
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
    if (sum != part->draws)
        fault_set(fault, "the sources get %" PRIu64 " of the %" PRIu64 " draws of phase %" PRIu64, sum, part->draws,
                  part->number);
    return TOKMAP_OK;
}

enum tokmap_status mixture_report_make(struct mixture_report *report, const struct tokmap_run *run, uint64_t steps,
                                       char fault[MIXTURE_FAULT], struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    *report = (struct mixture_report){.run = run, .steps = steps, .info = info_of_run(run)};
    fault[0] = '\0';
    report->skipped_counted = true;
    report->sources = calloc(report->info.sources, sizeof *report->sources);
    if (!report->sources)
        return error_set_memory(error, "the sources", report->info.sources * sizeof *report->sources);
    for (uint64_t i = 0; i < report->info.sources; i++) {
        const struct tokmap_source_info source = info_of_source(run, i);
        report->sources[i].name = source.name;
        report->sources[i].windows = report->sources[i].windows_first = source.windows;
        report->sources[i].epochs_most = source.epochs_most;
    }
    uint64_t lengths = 0, seq_len = 0;
    struct part part;
    for (uint64_t i = 0; !status && part_get(report, i, &part); i++) {
        lengths += seq_len != part.about.seq_len;
        seq_len = part.about.seq_len;
        report->rows += part.rows;
        report->tokens = add_capped(report->tokens, mul_capped(part.rows, seq_len));
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

/* ---- the report ---- */

static double percent(double part, double all)
{
    return all > 0 ? 100 * part / all : 0.0;
}

static double tokens_of_all(const struct mixture_report *mixture)
{
    double all = 0;
    for (uint64_t i = 0; i < mixture->info.sources; i++)
        all += (double)mixture->sources[i].tokens;
    return all;
}

static void sources_report(const struct mixture_report *mixture, struct cli_report *report)
{
    const double all = tokens_of_all(mixture);
    const uint64_t count = mixture->info.sources, most = report->as_json ? count : min64(count, SOURCES_PRINTED);
    if (!report->as_json)
        putchar('\n');
    cli_report_list(report, "sources", "source|>tokens|>share|>epochs|>after epoch 0|>windows of an epoch");
    for (uint64_t i = 0; i < most; i++) {
        const struct mixture_source *source = &mixture->sources[i];
        char limit[32] = "";
        if (source->epochs_most)
            (void)snprintf(limit, sizeof limit, " of %" PRIu64, source->epochs_most);
        cli_report_item(report);
        cli_fact_text(report, "source", "source", source->name);
        cli_member(report, "draws", cli_number(source->draws));
        cli_member(report, "draws_skipped", cli_number_if(mixture->skipped_counted, source->skipped));
        cli_fact_number(report, "tokens", "tokens", source->tokens);
        cli_row(report, "share", "%.4g%%", percent((double)source->tokens, all));
        cli_fact_number(report, "tokens_after_epoch_0", "after epoch 0", source->later_tokens);
        cli_fact(report, "epochs", "epochs", cli_real(source->epochs), "%.4g%s", source->epochs, limit);
        cli_numbers(report, "epochs_begun|epochs_most|epochs_cut", source->epochs_begun, source->epochs_most,
                    source->cuts);
        const bool same = source->windows == source->windows_first;
        cli_fact(report, "windows", "windows of an epoch", cli_number(source->windows_first), "%s%s%s",
                 CLI_COUNT(source->windows_first), same ? "" : ", later ", same ? "" : CLI_COUNT(source->windows));
        cli_report_close(report);
    }
    cli_report_close(report);
    if (most < count)
        printf("... and %" PRIu64 " more sources; --json lists all\n", count - most);
}

static void share_report(const struct mixture_report *mixture, const struct part *part,
                         const struct tokmap_share_info *share, struct cli_report *report)
{
    const double windows = (double)share->windows;
    cli_report_item(report);
    cli_fact_text(report, "source", "source", mixture->sources[share->source].name);
    cli_fact(report, "weight", "weight", cli_number(share->weight), "%.4g%%",
             percent((double)share->weight, (double)share->weights));
    cli_member(report, "weights", cli_number(share->weights));
    cli_row(report, "share", "%.4g%%", percent((double)share->draws, (double)part->draws));
    cli_fact_number(report, "draws", "draws", share->draws);
    cli_numbers(report, "windows|first_epoch", share->windows, share->first_epoch);
    cli_fact(report, "first_draw", "epochs", cli_number(share->first_draw), "%.4g..%.4g",
             (double)share->first_epoch + (double)share->first_draw / windows,
             (double)share->first_epoch + (double)(share->first_draw + share->draws) / windows);
    cli_report_close(report);
}

static void phases_report(const struct mixture_report *mixture, struct cli_report *report)
{
    const uint64_t most = report->as_json ? UINT64_MAX : PHASES_PRINTED;
    const uint64_t shares_most = report->as_json ? UINT64_MAX : SOURCES_PRINTED;
    struct part part;
    uint64_t i = 0;
    if (!report->as_json)
        putchar('\n');
    cli_report_list(report, "phases", ">phase|>steps|>batch|>seq_len|source|>weight|>share|>draws|>epochs");
    for (; i < most && part_get(mixture, i, &part); i++) {
        cli_report_item(report);
        cli_fact_number(report, NULL, "phase", part.number);
        cli_fact(report, "first_step", "steps", cli_number(part.about.first_step), "%s..%s",
                 CLI_COUNT(part.about.first_step), CLI_COUNT(part.end_step));
        cli_member(report, "end_step", cli_number(part.end_step));
        cli_fact_number(report, "batch", "batch", part.about.batch);
        cli_fact_number(report, "seq_len", "seq_len", part.about.seq_len);
        cli_numbers(report, "draws|mixture_step", part.draws, part.about.mixture_step);
        cli_report_list(report, "shares", NULL);
        for (uint64_t j = 0; j < part.about.shares && j < shares_most; j++) {
            struct tokmap_share_info share;
            if (!share_get(mixture, &part, j, &share))
                share_report(mixture, &part, &share, report);
        }
        cli_report_close(report);
        cli_report_close(report);
    }
    cli_report_close(report);
    if (i == most && part_get(mixture, i, &part))
        puts("... and more phases; --json lists all");
}

/* Reports the epochs that a new seq_len cut: for people, a line for each. */
static void cuts_report(const struct mixture_report *mixture, struct cli_report *report)
{
    const uint64_t most = min64(mixture->cut_count, report->as_json ? MIXTURE_CUTS_KEPT : CUTS_PRINTED);
    if (mixture->cut_count && !report->as_json)
        putchar('\n');
    cli_report_list(report, "cut_epochs", NULL);
    for (uint64_t i = 0; i < most; i++) {
        const struct mixture_cut *cut = &mixture->cuts[i];
        const char *name = mixture->sources[cut->source].name;
        cli_report_item(report);
        if (!report->as_json)
            cli_print("step %s: the new seq_len starts %s again in epoch %s; of epoch %s, %s of %s windows were "
                      "shown\n",
                      CLI_COUNT(cut->step), name, CLI_COUNT(cut->epoch + 1), CLI_COUNT(cut->epoch),
                      CLI_COUNT(cut->shown), CLI_COUNT(cut->windows));
        cli_member(report, "source", cli_text(name));
        cli_numbers(report, "step|epoch|windows_shown|windows|seq_len", cut->step, cut->epoch, cut->shown, cut->windows,
                    cut->seq_len);
        cli_report_close(report);
    }
    cli_report_close(report);
    if (mixture->cut_count > most && !report->as_json)
        printf("... and %s\n", CLI_COUNTED(mixture->cut_count - most, "more such epoch"));
}

void mixture_report_add(const struct mixture_report *mixture, struct cli_report *report)
{
    sources_report(mixture, report);
    phases_report(mixture, report);
    cuts_report(mixture, report);
}

/* ---- the run as a whole ---- */

static bool phase_get(const struct run_about *about, uint64_t number, struct tokmap_phase_info *phase)
{
    *phase = (struct tokmap_phase_info){.size = sizeof *phase};
    return number < about->info.phases && !tokmap_run_phase(about->run, number, phase);
}

static bool run_share_get(const struct run_about *about, uint64_t phase, uint64_t number,
                          struct tokmap_share_info *share)
{
    *share = (struct tokmap_share_info){.size = sizeof *share};
    return !tokmap_run_share(about->run, phase, number, share);
}

/* Finds the first phase of each source, in one pass: a run may have thousands of sources. */
static enum tokmap_status first_find(struct run_about *about, struct tokmap_error *error)
{
    struct tokmap_phase_info phase;
    struct tokmap_share_info share;
    const uint64_t sources = about->info.sources;
    about->first = calloc(sources, sizeof *about->first);
    if (!about->first)
        return error_set_memory(error, "a table of sources", sources * sizeof *about->first);
    for (uint64_t i = 0; i < sources; i++)
        about->first[i].phase = UINT64_MAX;
    for (uint64_t i = 0; phase_get(about, i, &phase); i++)
        for (uint64_t j = 0; j < phase.shares && run_share_get(about, i, j, &share); j++)
            if (about->first[share.source].phase == UINT64_MAX)
                about->first[share.source] = (struct run_about_place){i, j};
    return TOKMAP_OK;
}

enum tokmap_status run_about_make(struct run_about *about, const struct tokmap_run *run, struct tokmap_error *error)
{
    char fault[MIXTURE_FAULT];
    *about = (struct run_about){.run = run, .info = info_of_run(run)};
    about->ends = about->info.steps != TOKMAP_FOREVER;
    const enum tokmap_status status = first_find(about, error);
    if (status || !about->ends)
        return status;
    return mixture_report_make(&about->report, run, about->info.steps, fault, error);
}

void run_about_free(struct run_about *about)
{
    mixture_report_free(&about->report);
    free(about->first);
}

bool run_about_first(const struct run_about *about, uint64_t source, struct tokmap_phase_info *phase,
                     struct tokmap_share_info *share)
{
    const struct run_about_place first = about->first[source];
    return first.phase != UINT64_MAX && phase_get(about, first.phase, phase) &&
           run_share_get(about, first.phase, first.share, share);
}

bool run_about_padded(const struct tokmap_run *run, const struct tokmap_run_info *info)
{
    bool padded = info->tail_pad;
    for (uint64_t i = 0; i < info->sources && !padded; i++)
        padded = info_of_source(run, i).plan != NULL;
    return padded;
}

uint64_t run_about_tail(const struct tokmap_run_info *info, const struct tokmap_source_info *source, uint64_t seq_len,
                        uint64_t windows)
{
    if (source->plan || info->tail_pad)
        return 0;
    const uint64_t tokens = info_of_dataset(source->dataset).tokens;
    return windows ? tokens - (windows - 1) * (info->stride ? info->stride : seq_len) - seq_len : tokens;
}

/* ---- the report ---- */

/* Adds the lists of excluded documents. */
static void exclusion_rows(const struct tokmap_run *run, struct cli_report *report)
{
    const struct exclusions *exclusions = run_exclusions(run);
    cli_report_array(report, "excluded");
    for (uint64_t i = 0; i < exclusions->list_count; i++) {
        const struct exclusion_list *list = &exclusions->lists[i];
        cli_report_item(report);
        cli_row(report, "excluded", "%s with %s, from step %s on: %.200s", CLI_COUNTED(list->documents, "document"),
                CLI_COUNTED(list->tokens, "token"), CLI_COUNT(list->step), list->path);
        cli_member(report, "list", cli_text(list->path));
        cli_numbers(report, "step|documents|tokens", list->step, list->documents, list->tokens);
        cli_report_close(report);
    }
    cli_report_close(report);
}

void run_about_validations(const struct tokmap_run *run, struct cli_report *report)
{
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    struct tokmap_dataset_info data = TOKMAP_DATASET_INFO_INIT;
    uint64_t i = 0;
    cli_report_array(report, "validations");
    for (; !tokmap_run_info(run, &info) && i < info.validations && (report->as_json || i < RUN_ABOUT_LINES); i++) {
        if (tokmap_run_source(run, info.sources + i, &source) || tokmap_dataset_info(source.dataset, &data))
            break;
        cli_report_item(report);
        cli_row(report, "validation", "%.64s: %.60s, %s; the run trains on none of it", source.name, source.data,
                CLI_COUNTED(data.tokens, "token"));
        cli_member(report, "name", cli_text(source.name));
        cli_member(report, "data", cli_text(source.data));
        cli_numbers(report, "tokens|documents|windows", data.tokens, data.documents, source.windows);
        cli_report_close(report);
    }
    cli_report_close(report);
    if (i < info.validations)
        cli_row(report, "validation", "... and more; --json lists all");
}

void run_about_report(const struct run_about *about, struct cli_report *report)
{
    const struct tokmap_run_info *info = &about->info;
    const bool ends = about->ends, padded = run_about_padded(about->run, info);
    if (info->phases > 1)
        cli_row(report, "phases", "%s; batches of up to %s, sequences of up to %s", CLI_COUNT(info->phases),
                CLI_COUNTED(info->batch_most, "row"), CLI_COUNTED(info->seq_len_most, "token"));
    cli_fact(report, "rows", ends ? "rows of the run" : NULL, cli_number_if(ends, about->report.rows), "%s",
             CLI_COUNT(about->report.rows));
    struct tokmap_cursor end = {.tokens =
                                    about->report.tokens}; /* without those of skipped steps, as audit counts them */
    const bool skips = ends && info->delivered < info->steps && !tokmap_run_cursor(about->run, info->steps, &end, NULL);
    cli_fact(report, "tokens", ends ? "tokens of the run" : NULL, cli_number_if(ends, about->report.tokens), "%s%s%s%s",
             CLI_COUNT(about->report.tokens), skips ? ", of which " : "", skips ? CLI_COUNT(end.tokens) : "",
             skips ? " are delivered" : "");
    cli_member(report, "tokens_delivered", cli_number_if(ends, end.tokens));
    cli_numbers(report, "batch_most|seq_len_most", info->batch_most, info->seq_len_most);
    cli_fact(report, "stride", info->stride ? "stride" : NULL, cli_number_if(info->stride, info->stride),
             "%s; only targets that were not shown before count", CLI_COUNTED(info->stride, "token"));
    cli_fact(report, "tail_pad", info->tail_pad ? "tail" : NULL, cli_bool(info->tail_pad),
             "padded, so that each target counts once");
    cli_fact(report, "pad_id", padded ? "pad id" : NULL, cli_number(info->pad_id), "%s", CLI_COUNT(info->pad_id));
    cli_fact(report, "valid_last", info->tail_pad && ends ? "last step" : NULL,
             cli_number_if(ends, info->real_rows_last), "%s not padding", CLI_COUNTED(info->real_rows_last, "row"));
    cli_member(report, "blocks", cli_number_if(info->blocks, info->blocks));
    cli_member(report, "span", cli_number_if(info->span, info->span));
    cli_numbers(report, "vocabulary|width", info->vocabulary, info->width);
    cli_member(report, "warning", cli_text(info->warning));
    run_about_validations(about->run, report);
    exclusion_rows(about->run, report);
}

void run_about_source(const struct run_about *about, uint64_t number, struct cli_report *report)
{
    const struct tokmap_source_info source = info_of_source(about->run, number);
    const struct mixture_source none = {.epochs = (double)NAN};
    const struct mixture_source *drawn = about->ends ? &about->report.sources[number] : &none;
    const bool ends = about->ends, nowhere = about->first[number].phase == UINT64_MAX;
    cli_member(report, "data", cli_text(source.data));
    cli_member(report, "plan", cli_text(source.plan));
    cli_fact(report, "epochs_most", "limit", cli_number_if(source.epochs_most, source.epochs_most), "%s",
             source.epochs_most ? CLI_COUNT(source.epochs_most) : "none");
    cli_member(report, "draws", cli_number_if(ends, drawn->draws));
    cli_fact(report, "run_tokens", "tokens of the run", cli_number_if(ends, drawn->tokens), "%s",
             nowhere ? "0"
             : ends  ? CLI_COUNT(drawn->tokens)
                     : "endless");
    if (ends && !nowhere)
        cli_fact(report, "epochs", "epochs", cli_real(drawn->epochs), "%.4g", drawn->epochs);
    else
        cli_fact(report, "epochs", "epochs", cli_real(drawn->epochs), "%s", nowhere ? "0" : "endless");
}

static void sources_print(const struct run_about *about, struct cli_report *report)
{
    cli_report_list(report, NULL, "source|>tokens|kind|an epoch|>epochs|>limit|>tokens of the run");
    for (uint64_t i = 0; i < about->info.sources && i < RUN_ABOUT_LINES; i++) {
        const struct tokmap_source_info source = info_of_source(about->run, i);
        struct tokmap_dataset_info data = TOKMAP_DATASET_INFO_INIT;
        struct tokmap_phase_info phase;
        struct tokmap_share_info share;
        if (tokmap_dataset_info(source.dataset, &data))
            continue;
        cli_report_item(report);
        cli_row(report, "source", "%s", source.name);
        cli_row(report, "tokens", "%s", CLI_COUNT(data.tokens));
        cli_row(report, "kind", "%s", data.kind);
        cli_row(report, "an epoch", "%s",
                run_about_first(about, i, &phase, &share)
                    ? CLI_COUNTED(share.windows, source.plan ? "plan row" : "window")
                    : "not in any phase");
        run_about_source(about, i, report);
        cli_report_close(report);
    }
    cli_report_close(report);
    if (about->info.sources > RUN_ABOUT_LINES)
        printf("... and %" PRIu64 " more sources; --json lists all\n", about->info.sources - RUN_ABOUT_LINES);
}

/* For people, at most RUN_ABOUT_LINES shares. */
static void run_phases_report(const struct run_about *about, struct cli_report *report)
{
    struct tokmap_phase_info phase;
    struct tokmap_share_info share;
    const uint64_t most = report->as_json ? UINT64_MAX : RUN_ABOUT_LINES;
    uint64_t lines = 0;
    cli_report_list(report, "phases", ">phase|>steps|>batch|>seq_len|source|>share|>rows");
    for (uint64_t i = 0; lines < most && phase_get(about, i, &phase); i++) {
        const bool ends = phase.end_step != TOKMAP_FOREVER;
        cli_report_item(report);
        cli_fact_number(report, NULL, "phase", i);
        cli_fact(report, "first_step", "steps", cli_number(phase.first_step), "%s..%s", CLI_COUNT(phase.first_step),
                 ends ? CLI_COUNT(phase.end_step) : "");
        cli_member(report, "end_step", cli_number_if(ends, phase.end_step));
        cli_fact_number(report, "batch", "batch", phase.batch);
        cli_fact_number(report, "seq_len", "seq_len", phase.seq_len);
        cli_member(report, "mixture_step", cli_number(phase.mixture_step));
        cli_report_list(report, "shares", NULL);
        for (uint64_t j = 0; j < phase.shares && lines < most && run_share_get(about, i, j, &share); j++, lines++) {
            const double weight = (double)share.weight, weights = (double)share.weights;
            cli_report_item(report);
            cli_fact_text(report, "source", "source", info_of_source(about->run, share.source).name);
            cli_fact(report, "share", "share", cli_real(weight / weights), "%.4g%%", 100.0 * weight / weights);
            cli_numbers(report, "weight|weights|windows", share.weight, share.weights, share.windows);
            cli_fact(report, "draws", "rows", cli_number_if(ends, share.draws), "%s",
                     ends ? CLI_COUNT(share.draws) : "endless");
            cli_report_close(report);
        }
        cli_report_close(report);
        cli_report_close(report);
    }
    cli_report_close(report);
    if (lines == RUN_ABOUT_LINES && !report->as_json)
        puts("... and more; --json lists all");
}

void run_about_lists(const struct run_about *about, struct cli_report *report)
{
    if (!report->as_json && about->info.sources == 1 && about->info.phases == 1)
        return;
    if (!report->as_json) {
        putchar('\n');
        sources_print(about, report);
        putchar('\n');
    }
    run_phases_report(about, report);
}
