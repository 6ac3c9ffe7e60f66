/* SPDX-License-Identifier: MIT */
/* run_about.c - see run_about.h. */
#include "run_about.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "run/exclusion.h"
#include "run/run.h"

static bool phase_get(const struct run_about *about, uint64_t number, struct tokmap_phase_info *phase)
{
    *phase = (struct tokmap_phase_info){.size = sizeof *phase};
    return number < about->info.phases && !tokmap_run_phase(about->run, number, phase);
}

static bool share_get(const struct run_about *about, uint64_t phase, uint64_t number, struct tokmap_share_info *share)
{
    *share = (struct tokmap_share_info){.size = sizeof *share};
    return !tokmap_run_share(about->run, phase, number, share);
}

static struct tokmap_source_info source_get(const struct run_about *about, uint64_t number)
{
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    if (tokmap_run_source(about->run, number, &source))
        source.name = "";
    return source;
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
        for (uint64_t j = 0; j < phase.shares && share_get(about, i, j, &share); j++)
            if (about->first[share.source].phase == UINT64_MAX)
                about->first[share.source] = (struct run_about_place){i, j};
    return TOKMAP_OK;
}

enum tokmap_status run_about_make(struct run_about *about, const struct tokmap_run *run, struct tokmap_error *error)
{
    char fault[MIXTURE_FAULT];
    *about = (struct run_about){.run = run, .info = {.size = sizeof about->info}};
    enum tokmap_status status = tokmap_run_info(run, &about->info);
    about->ends = !status && about->info.steps != TOKMAP_FOREVER;
    if (!status)
        status = first_find(about, error);
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
           share_get(about, first.phase, first.share, share);
}

bool run_about_padded(const struct tokmap_run *run, const struct tokmap_run_info *info)
{
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    bool padded = info->tail_pad;
    for (uint64_t i = 0; i < info->sources && !padded && !tokmap_run_source(run, i, &source); i++)
        padded = source.plan != NULL;
    return padded;
}

uint64_t run_about_tail(const struct tokmap_run_info *info, const struct tokmap_source_info *source, uint64_t seq_len,
                        uint64_t windows)
{
    struct tokmap_dataset_info data = TOKMAP_DATASET_INFO_INIT;
    if (source->plan || info->tail_pad || tokmap_dataset_info(source->dataset, &data))
        return 0;
    return windows ? data.tokens - (windows - 1) * (info->stride ? info->stride : seq_len) - seq_len : data.tokens;
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
        cli_member(report, "step", cli_number(list->step));
        cli_member(report, "documents", cli_number(list->documents));
        cli_member(report, "tokens", cli_number(list->tokens));
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
        cli_member(report, "tokens", cli_number(data.tokens));
        cli_member(report, "documents", cli_number(data.documents));
        cli_member(report, "windows", cli_number(source.windows));
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
    cli_member(report, "batch_most", cli_number(info->batch_most));
    cli_member(report, "seq_len_most", cli_number(info->seq_len_most));
    cli_fact(report, "stride", info->stride ? "stride" : NULL, cli_number_if(info->stride, info->stride),
             "%s; only targets that were not shown before count", CLI_COUNTED(info->stride, "token"));
    cli_fact(report, "tail_pad", info->tail_pad ? "tail" : NULL, cli_bool(info->tail_pad),
             "padded, so that each target counts once");
    cli_fact(report, "pad_id", padded ? "pad id" : NULL, cli_number(info->pad_id), "%s", CLI_COUNT(info->pad_id));
    cli_fact(report, "valid_last", info->tail_pad && ends ? "last step" : NULL,
             cli_number_if(ends, info->real_rows_last), "%s not padding", CLI_COUNTED(info->real_rows_last, "row"));
    cli_member(report, "blocks", cli_number_if(info->blocks, info->blocks));
    cli_member(report, "span", cli_number_if(info->span, info->span));
    cli_member(report, "vocabulary", cli_number(info->vocabulary));
    cli_member(report, "width", cli_number(info->width));
    cli_member(report, "warning", cli_text(info->warning));
    run_about_validations(about->run, report);
    exclusion_rows(about->run, report);
}

void run_about_source(const struct run_about *about, uint64_t number, struct cli_report *report)
{
    const struct tokmap_source_info source = source_get(about, number);
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
        const struct tokmap_source_info source = source_get(about, i);
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
static void phases_report(const struct run_about *about, struct cli_report *report)
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
        for (uint64_t j = 0; j < phase.shares && lines < most && share_get(about, i, j, &share); j++, lines++) {
            const double weight = (double)share.weight, weights = (double)share.weights;
            cli_report_item(report);
            cli_fact_text(report, "source", "source", source_get(about, share.source).name);
            cli_fact(report, "share", "share", cli_real(weight / weights), "%.4g%%", 100.0 * weight / weights);
            cli_member(report, "weight", cli_number(share.weight));
            cli_member(report, "weights", cli_number(share.weights));
            cli_member(report, "windows", cli_number(share.windows));
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
    phases_report(about, report);
}
