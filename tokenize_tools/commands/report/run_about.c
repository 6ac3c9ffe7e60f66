/* run_about.c - see run_about.h. */
#include "run_about.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"

static uint64_t sum_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return add_overflows(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t product_capped(uint64_t a, uint64_t b)
{
    uint64_t product;
    return mul_overflows(a, b, &product) ? UINT64_MAX : product;
}

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
    struct tokmap_source_info source = {.size = sizeof source};
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
    struct tokmap_phase_info phase;
    *about = (struct run_about){.run = run, .info = {.size = sizeof about->info}};
    enum tokmap_status status = tokmap_run_info(run, &about->info);
    about->ends = !status && about->info.steps != TOKMAP_FOREVER;
    if (!status)
        status = first_find(about, error);
    if (status || !about->ends)
        return status;
    for (uint64_t i = 0; phase_get(about, i, &phase); i++) {
        if (phase.end_step <= phase.first_step)
            continue;
        const uint64_t rows = product_capped(phase.end_step - phase.first_step, phase.batch);
        about->rows = sum_capped(about->rows, rows);
        about->tokens = sum_capped(about->tokens, product_capped(rows, phase.seq_len));
    }
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

/* ---- for people ---- */

static void row_add(struct cli_table *table, const char *name, const char *value)
{
    const char *const cells[] = {name, value};
    cli_table_row(table, cells);
}

void run_about_table(const struct run_about *about, struct cli_table *table)
{
    const struct tokmap_run_info *info = &about->info;
    char text[192], a[64], b[64];
    if (info->phases > 1) {
        (void)snprintf(text, sizeof text, "%s; batches of up to %s, sequences of up to %s",
                       cli_count(info->phases, (char[32]){0}), cli_counted(info->batch_most, "row", a),
                       cli_counted(info->seq_len_most, "token", b));
        row_add(table, "phases", text);
    }
    if (info->stride) {
        (void)snprintf(text, sizeof text, "%s; only targets that were not shown before count",
                       cli_counted(info->stride, "token", a));
        row_add(table, "stride", text);
    }
    if (info->tail_pad)
        row_add(table, "tail", "padded, so that each target counts once");
    if (info->tail_pad && about->ends) {
        (void)snprintf(text, sizeof text, "%s not padding", cli_counted(info->valid_last, "row", a));
        row_add(table, "last step", text);
    }
    bool padded = info->tail_pad;
    for (uint64_t i = 0; i < info->sources && !padded; i++)
        padded = source_get(about, i).plan != NULL;
    if (padded)
        row_add(table, "pad id", cli_count(info->pad_id, a));
    for (uint64_t i = 0; i < info->validations && i < RUN_ABOUT_LINES; i++) {
        const struct tokmap_source_info held_out = source_get(about, info->sources + i);
        struct tokmap_dataset_info data = {.size = sizeof data};
        if (tokmap_dataset_info(held_out.dataset, &data))
            continue;
        (void)snprintf(text, sizeof text, "%.64s: %.60s, %s; the run trains on none of it", held_out.name,
                       held_out.data, cli_counted(data.tokens, "token", a));
        row_add(table, "validation", text);
    }
    if (info->validations > RUN_ABOUT_LINES)
        row_add(table, "validation", "... and more; --json lists all");
    if (!about->ends)
        return;
    row_add(table, "rows of the run", cli_count(about->rows, a));
    row_add(table, "tokens of the run", cli_count(about->tokens, a));
}

static void sources_print(const struct run_about *about)
{
    static const char *const head[] = {"source", "tokens", "kind", "an epoch", "epochs", "limit", "tokens of the run"};
    static const bool right[] = {false, true, false, false, true, true, true};
    struct cli_table *table = cli_table_new(7);
    cli_table_row(table, head);
    for (uint64_t i = 0; i < about->info.sources && i < RUN_ABOUT_LINES; i++) {
        const struct tokmap_source_info source = source_get(about, i);
        struct tokmap_dataset_info data = {.size = sizeof data};
        struct tokmap_phase_info phase;
        struct tokmap_share_info share;
        char tokens[32], rows[64], epochs[32] = "endless", limit[32] = "none", all[32] = "endless";
        if (tokmap_dataset_info(source.dataset, &data))
            continue;
        const bool drawn = run_about_first(about, i, &phase, &share);
        if (about->ends) {
            (void)snprintf(epochs, sizeof epochs, "%.4g", about->report.sources[i].epochs);
            (void)cli_count(about->report.sources[i].tokens, all);
        }
        const char *const cells[] = {source.name,
                                     cli_count(data.tokens, tokens),
                                     data.kind,
                                     drawn ? cli_counted(share.windows, source.plan ? "plan row" : "window", rows)
                                           : "not in any phase",
                                     drawn ? epochs : "0",
                                     source.epochs_most ? cli_count(source.epochs_most, limit) : limit,
                                     drawn ? all : "0"};
        cli_table_row(table, cells);
    }
    putchar('\n');
    cli_table_print(table, right, stdout);
    cli_table_free(table);
    if (about->info.sources > RUN_ABOUT_LINES)
        printf("... and %" PRIu64 " more sources; --json lists all\n", about->info.sources - RUN_ABOUT_LINES);
}

static void phases_print(const struct run_about *about)
{
    static const char *const head[] = {"phase", "steps", "batch", "seq_len", "source", "share", "rows"};
    static const bool right[] = {true, true, true, true, false, true, true};
    struct cli_table *table = cli_table_new(7);
    struct tokmap_phase_info phase;
    struct tokmap_share_info share;
    uint64_t lines = 0;
    cli_table_row(table, head);
    for (uint64_t i = 0; lines < RUN_ABOUT_LINES && phase_get(about, i, &phase); i++) {
        char number[32], steps[80], batch[32], seq_len[32], a[32], b[32], percent[32], rows[32];
        const bool open = phase.end_step == TOKMAP_FOREVER;
        (void)snprintf(steps, sizeof steps, "%s..%s", cli_count(phase.first_step, a),
                       open ? "" : cli_count(phase.end_step, b));
        for (uint64_t j = 0; j < phase.shares && lines < RUN_ABOUT_LINES && share_get(about, i, j, &share);
             j++, lines++) {
            (void)snprintf(percent, sizeof percent, "%.4g%%", 100.0 * (double)share.weight / (double)share.weights);
            const char *const cells[] = {j ? NULL : cli_count(i, number),
                                         j ? NULL : steps,
                                         j ? NULL : cli_count(phase.batch, batch),
                                         j ? NULL : cli_count(phase.seq_len, seq_len),
                                         source_get(about, share.source).name,
                                         percent,
                                         open ? "endless" : cli_count(share.draws, rows)};
            cli_table_row(table, cells);
        }
    }
    putchar('\n');
    cli_table_print(table, right, stdout);
    cli_table_free(table);
    if (lines == RUN_ABOUT_LINES)
        puts("... and more; --json lists all");
}

void run_about_print(const struct run_about *about)
{
    if (about->info.sources == 1 && about->info.phases == 1)
        return;
    sources_print(about);
    phases_print(about);
}

/* ---- JSON ---- */

static void number_or_null(struct cli_json *json, const char *name, uint64_t number, bool known)
{
    if (known)
        cli_json_number(json, name, number);
    else
        cli_json_null(json, name);
}

static void text_or_null(struct cli_json *json, const char *name, const char *text)
{
    if (text)
        cli_json_bytes(json, name, text, strlen(text));
    else
        cli_json_null(json, name);
}

static void phases_json(const struct run_about *about, struct cli_json *json)
{
    struct tokmap_phase_info phase;
    struct tokmap_share_info share;
    cli_json_array(json, "phases");
    for (uint64_t i = 0; phase_get(about, i, &phase); i++) {
        const bool ends = phase.end_step != TOKMAP_FOREVER;
        cli_json_object(json, NULL);
        cli_json_number(json, "first_step", phase.first_step);
        number_or_null(json, "end_step", phase.end_step, ends);
        cli_json_number(json, "batch", phase.batch);
        cli_json_number(json, "seq_len", phase.seq_len);
        cli_json_number(json, "mixture_step", phase.mixture_step);
        cli_json_array(json, "shares");
        for (uint64_t j = 0; j < phase.shares && share_get(about, i, j, &share); j++) {
            cli_json_object(json, NULL);
            cli_json_text(json, "source", source_get(about, share.source).name);
            cli_json_real(json, "share", (double)share.weight / (double)share.weights);
            cli_json_number(json, "weight", share.weight);
            cli_json_number(json, "weights", share.weights);
            cli_json_number(json, "windows", share.windows);
            number_or_null(json, "draws", share.draws, ends);
            cli_json_end(json);
        }
        cli_json_end(json);
        cli_json_end(json);
    }
    cli_json_end(json);
}

void run_about_validations_json(const struct tokmap_run *run, struct cli_json *json)
{
    struct tokmap_run_info info = {.size = sizeof info};
    struct tokmap_source_info source = {.size = sizeof source};
    struct tokmap_dataset_info data = {.size = sizeof data};
    cli_json_array(json, "validations");
    for (uint64_t i = 0; !tokmap_run_info(run, &info) && i < info.validations; i++) {
        if (tokmap_run_source(run, info.sources + i, &source) || tokmap_dataset_info(source.dataset, &data))
            break;
        cli_json_object(json, NULL);
        cli_json_text(json, "name", source.name);
        text_or_null(json, "data", source.data);
        cli_json_number(json, "tokens", data.tokens);
        cli_json_number(json, "documents", data.documents);
        cli_json_number(json, "windows", source.windows);
        cli_json_end(json);
    }
    cli_json_end(json);
}

void run_about_json(const struct run_about *about, struct cli_json *json)
{
    const struct tokmap_run_info *info = &about->info;
    phases_json(about, json);
    number_or_null(json, "rows", about->rows, about->ends);
    number_or_null(json, "tokens", about->tokens, about->ends);
    cli_json_number(json, "batch_most", info->batch_most);
    cli_json_number(json, "seq_len_most", info->seq_len_most);
    number_or_null(json, "stride", info->stride, info->stride != 0);
    cli_json_bool(json, "tail_pad", info->tail_pad);
    cli_json_number(json, "pad_id", info->pad_id);
    number_or_null(json, "valid_last", info->valid_last, about->ends);
    number_or_null(json, "blocks", info->blocks, info->blocks != 0);
    number_or_null(json, "span", info->span, info->span != 0);
    cli_json_number(json, "vocabulary", info->vocabulary);
    cli_json_number(json, "width", info->width);
    text_or_null(json, "warning", info->warning);
    run_about_validations_json(about->run, json);
}

void run_about_source_json(const struct run_about *about, uint64_t number, struct cli_json *json)
{
    const struct tokmap_source_info source = source_get(about, number);
    text_or_null(json, "data", source.data);
    text_or_null(json, "plan", source.plan);
    number_or_null(json, "epochs_most", source.epochs_most, source.epochs_most != 0);
    number_or_null(json, "draws", about->ends ? about->report.sources[number].draws : 0, about->ends);
    number_or_null(json, "run_tokens", about->ends ? about->report.sources[number].tokens : 0, about->ends);
    if (about->ends)
        cli_json_real(json, "epochs", about->report.sources[number].epochs);
    else
        cli_json_null(json, "epochs");
}
