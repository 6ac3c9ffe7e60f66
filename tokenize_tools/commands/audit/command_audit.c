/* SPDX-License-Identifier: MIT */
/*
 * command_audit.c - tokmap audit: proves, before a run is started, that it will deliver every window to exactly one
 * rank, and what each source contributes.
 *
 * Computed, exact for the whole run: what each source gets in each phase, epochs, repeats, tokens (mixture_report.h),
 * and the slices of the ranks.
 * Counted: the rows of the first --draws draws, one by one, as coverage.h describes.
 * Sampled: rows after those; real loaders for some ranks at some steps (loader_trial.h); the documents and masks in the
 * rows of some steps (loader_trial.h). Each line says which of these it is.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/options/target.h"
#include "commands/report/mixture_report.h"
#include "common/bytes.h"
#include "common/error.h"
#include "coverage.h"
#include "loader_trial.h"
#include "platform/os.h"
#include "platform/process.h"
#include "run/exclusion.h"
#include "run/row_cost.h"
#include "run/run.h"
#include "run/run_spec.h"

static const char program[] = "tokmap audit";

#define COUNT_DRAWS ((uint64_t)1 << 28)  /* default of --draws */
#define SAMPLES 100000u                  /* rows that are sampled if not all are counted */
#define SAMPLE_STEPS 16u                 /* default of --sample-steps */
#define LOADER_BYTES ((uint64_t)1 << 28) /* no loader is opened if a call would hold more */
#define EPOCHS_KEPT 1000u                /* epochs whose skipped windows are counted */
#define EPOCHS_PRINTED 8u
#define PHASES_TRIED 16u /* phases after the first at whose beginning loaders are tried */
#define SKIPS_KEPT 16u   /* ranges of skipped steps that are printed */
#define VALIDATIONS_PRINTED 16u
#define SKIP_WORK                                                                                                      \
    ((uint64_t)1 << 20) /* ranges times sources up to which the skipped draws of each source are counted */
#define CHECKS 8

struct audit_arguments {
    struct run_arguments run;
    uint64_t ranks, rows, draws, threads, sample_steps;
    double balance; /* q */
    uint64_t nodes;
    bool sample_given;
    bool json, quiet;
    int progress; /* enum cli_progress_mode */
};

struct check {
    const char *name;
    bool good;
    char text[320];
};

struct audit {
    const struct audit_arguments *given;
    struct target *target;
    struct tokmap_run *run;
    struct tokmap_run_info info;
    struct tokmap_source_info source;         /* the first */
    bool plain;                               /* one source and one phase: the steps of each epoch can be listed */
    uint64_t steps, draws;                    /* steps that are audited, and their rows */
    uint64_t delivered;                       /* of the steps, those that are not skipped */
    uint64_t tokens;                          /* in the delivered steps; UINT64_MAX: more */
    uint64_t counted_steps;                   /* of the steps, those whose rows are counted */
    uint64_t calls_least, calls_most;         /* per step, on every rank; they differ between phases */
    uint64_t rows_least, rows_most;           /* of a rank */
    uint64_t call_rows_least, call_rows_most; /* of a call */
    bool calls_wrong;                         /* some calls do not deliver the slice of their rank */
    struct check checks[CHECKS];
    size_t check_count;
    uint64_t epoch_count;    /* epochs that the draws reach; plain runs only */
    uint64_t *epoch_skipped; /* for each of the first EPOCHS_KEPT epochs, its windows in skipped steps */
    struct cli_range skips[SKIPS_KEPT];
    uint64_t skip_count; /* ranges of skipped steps */
    struct mixture_report report;
    struct row_samples samples;
    bool sampled, remote; /* remote: no row is read, because that would fetch tokens */
    uint64_t scale;       /* of row_cost.h; 0 without --balance */
};

static void check_add(struct audit *audit, const char *name, bool good, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void check_add(struct audit *audit, const char *name, bool good, const char *format, ...)
{
    struct check *check = &audit->checks[audit->check_count++];
    va_list arguments;
    va_start(arguments, format);
    check->name = name;
    check->good = good;
    (void)vsnprintf(check->text, sizeof check->text, format, arguments);
    va_end(arguments);
}

/* ---- skipped steps and epochs ---- */

/* Records that the steps [first, end) are skipped. */
static void skip_add(struct audit *audit, uint64_t first, uint64_t end)
{
    if (audit->skip_count < SKIPS_KEPT)
        audit->skips[audit->skip_count] = (struct cli_range){first, end, true};
    audit->skip_count++;
    if (!audit->plain)
        return;
    /* Their draws, split at the ends of epochs. */
    const uint64_t windows = audit->source.windows, draws_end = end * audit->info.batch;
    for (uint64_t draw = first * audit->info.batch; draw < draws_end && draw / windows < EPOCHS_KEPT;) {
        const uint64_t part = min64(draws_end, (draw / windows + 1) * windows) - draw;
        audit->epoch_skipped[draw / windows] += part;
        draw += part;
    }
}

static void skips_find(struct audit *audit)
{
    const struct skips *skips = run_skips(audit->run);
    const bool by_source = skips->count * audit->info.sources <= SKIP_WORK;
    audit->report.skipped_counted = audit->report.skipped_counted && by_source;
    for (size_t i = 0; i < skips->count && skips->ranges[i].first < audit->steps; i++) {
        const uint64_t first = skips->ranges[i].first, end = min64(skips->ranges[i].end, audit->steps);
        skip_add(audit, first, end);
        if (by_source)
            mixture_report_skip(&audit->report, first, end);
    }
}

struct epoch {
    uint64_t number, first_step, end_step;
    uint64_t windows; /* that are drawn */
    uint64_t skipped; /* of them, those in skipped steps */
};

static struct epoch epoch_of(const struct audit *audit, uint64_t number)
{
    const uint64_t first = number * audit->source.windows;
    const uint64_t end = min64(first + audit->source.windows, audit->draws);
    return (struct epoch){number, first / audit->info.batch, div_ceil(end, audit->info.batch), end - first,
                          number < EPOCHS_KEPT ? audit->epoch_skipped[number] : 0};
}

/* ---- phases ---- */

/* Rows of the steps before `step`, which may be beyond the end of the run, without padding. Returns false if they are
 * 2^63 or more. */
static bool draws_before(const struct audit *audit, uint64_t step, uint64_t *draws)
{
    const struct tokmap_phase_info phase = info_of_phase(audit->run, tokmap_run_phase_at(audit->run, step));
    if (mul_overflows(step - phase.first_step, phase.batch, draws) || add_overflows(*draws, phase.first_draw, draws) ||
        *draws >> 63)
        return false;
    if (audit->info.tail_pad && step && step == audit->info.steps)
        *draws -= tokmap_run_rows(audit->run, step - 1) - tokmap_run_real_rows(audit->run, step - 1);
    return true;
}

/* ---- shares ---- */

static enum tokmap_status shares_check(struct audit *audit, struct tokmap_error *error)
{
    char fault[MIXTURE_FAULT];
    const enum tokmap_status status = mixture_report_make(&audit->report, audit->run, audit->steps, fault, error);
    if (status)
        return status;
    if (fault[0])
        check_add(audit, "shares", false, "%s", fault);
    else if (!audit->plain)
        check_add(audit, "shares", true,
                  "computed for all steps, %s in %s: no source is more than %.3g draws from its exact share (the limit "
                  "is %" PRIu64 "), no gap or repetition between phases, and no epochs<= exceeded",
                  CLI_COUNTED(audit->info.sources, "source"), CLI_COUNTED(audit->info.phases, "phase"),
                  audit->report.worst, audit->report.levels);
    return TOKMAP_OK;
}

/* ---- coverage ---- */

static void counted_text(struct audit *audit, uint64_t counted, uint64_t samples)
{
    const uint64_t windows = audit->source.windows, full = counted / windows;
    if (counted == audit->draws && full && audit->plain)
        check_add(audit, "coverage", true, "counted all %s: each of the %s appears once in %s%s%s",
                  CLI_COUNTED(audit->draws, "draw"), CLI_COUNTED(windows, "window"), full > 1 ? "each of " : "the ",
                  full > 1 ? CLI_COUNTED(full, "full epoch") : "full epoch",
                  counted % windows ? "; in the unfinished epoch after them, none appears twice" : "");
    else if (counted == audit->draws && audit->plain)
        check_add(audit, "coverage", true, "counted all %s: none of the %s appears twice in the unfinished epoch",
                  CLI_COUNTED(audit->draws, "draw"), CLI_COUNTED(windows, "window"));
    else if (counted == audit->draws)
        check_add(audit, "coverage", true,
                  "counted all %s of %s: each window appears once in each full epoch of its source, and in unfinished "
                  "ones at most once",
                  CLI_COUNTED(audit->draws, "draw"), CLI_COUNTED(audit->info.sources, "source"));
    else
        check_add(
            audit, "coverage", true,
            "counted the first %s of %s: no window appears twice in an epoch; sampled %s of the rest: each leads back "
            "to its row",
            CLI_COUNT(counted), CLI_COUNTED(audit->draws, "draw"), CLI_COUNT(samples));
}

/* Returns the largest number of steps whose rows are at most --draws. */
static uint64_t countable_steps(const struct audit *audit)
{
    uint64_t low = 0, high = audit->steps; /* the result is in [low, high] */
    while (low < high) {
        const uint64_t middle = low + (high - low + 1) / 2;
        uint64_t draws;
        if (draws_before(audit, middle, &draws) && draws <= audit->given->draws)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static enum tokmap_status coverage_check(struct audit *audit, struct tokmap_error *error)
{
    const struct coverage coverage = {audit->run, audit->info.seed,
                                      audit->given->quiet ? CLI_PROGRESS_NONE : audit->given->progress,
                                      (uint32_t)audit->given->threads};
    char fault[COVERAGE_FAULT] = "";
    uint64_t samples = 0, counted = 0;
    enum tokmap_status status = TOKMAP_OK;
    audit->counted_steps = countable_steps(audit);
    if (audit->counted_steps)
        status = coverage_count(&coverage, audit->counted_steps, fault, error);
    if (!status && !fault[0] && audit->counted_steps < audit->steps)
        status = coverage_sample(&coverage, audit->counted_steps, audit->steps, SAMPLES, &samples, fault, error);
    if (status)
        return status;
    if (fault[0])
        check_add(audit, "coverage", false, "%s", fault);
    else if (draws_before(audit, audit->counted_steps, &counted))
        counted_text(audit, counted, samples);
    return TOKMAP_OK;
}

/* ---- ranks ---- */

/* Writes "1 row", or "1 to 3 rows". */
static const char *range_text(uint64_t least, uint64_t most, const char *between, const char *noun, char text[128])
{
    (void)snprintf(text, 128, "%s%s%s", least == most ? "" : CLI_COUNT(least), least == most ? "" : between,
                   CLI_COUNTED(most, noun));
    return text;
}

/* Checks that the slices of a batch follow each other. Returns false after a fault. */
static bool slices_check(struct audit *audit, uint64_t batch)
{
    const uint64_t ranks = audit->given->ranks;
    uint64_t reached = 0, first, count;
    for (uint64_t rank = 0; rank < ranks; rank++, reached += count) {
        run_rank_rows(batch, rank, ranks, &first, &count);
        if (first != reached || !count) {
            check_add(audit, "ranks", false,
                      "rank %" PRIu64 " owns %" PRIu64 " rows from row %" PRIu64
                      " on, but the rank before it ends at %" PRIu64,
                      rank, count, first, reached);
            return false;
        }
        audit->rows_least = min64(audit->rows_least, count);
        audit->rows_most = max64(audit->rows_most, count);
    }
    if (reached != batch)
        check_add(audit, "ranks", false, "the rows of the ranks end at %" PRIu64 " of %" PRIu64, reached, batch);
    return reached == batch;
}

/* For every size of a slice of a batch: each call delivers at most --rows rows, and all calls together deliver the
 * slice. */
static void calls_check(struct audit *audit, uint64_t batch)
{
    const uint64_t ranks = audit->given->ranks, calls = run_calls(batch, ranks, audit->given->rows);
    for (uint64_t rows = batch / ranks; rows <= div_ceil(batch, ranks); rows++) {
        uint64_t reached = 0, first, count;
        for (uint64_t call = 0; call < calls; call++, reached += count) {
            run_call_rows(rows, call, calls, &first, &count);
            audit->calls_wrong |= first != reached || (audit->given->rows && count > audit->given->rows);
            audit->call_rows_most = max64(audit->call_rows_most, count);
            audit->call_rows_least = min64(audit->call_rows_least, count);
        }
        audit->calls_wrong |= reached != rows;
    }
    audit->calls_least = min64(audit->calls_least, calls);
    audit->calls_most = max64(audit->calls_most, calls);
}

/* Checks the slices of ranks for each batch; they depend on it only, and it differs between phases. */
static void ranks_check(struct audit *audit)
{
    const uint64_t ranks = audit->given->ranks;
    char d[128], e[128];
    uint64_t batch = 0, least = UINT64_MAX, most = 0;
    struct tokmap_phase_info phase;
    audit->rows_least = audit->calls_least = audit->call_rows_least = UINT64_MAX;
    for (uint64_t i = 0; mixture_phase(&audit->report, i, &phase); i++) {
        if (phase.batch == batch)
            continue;
        batch = phase.batch;
        least = min64(least, batch);
        most = max64(most, batch);
        if (ranks > batch) {
            const bool later = phase.line && audit->info.phases > 1;
            check_add(audit, "ranks", false,
                      "%s cannot share %s global batch of %s%s%s; use fewer ranks or a larger batch",
                      CLI_COUNTED(ranks, "rank"), later ? "the" : "a", CLI_COUNTED(batch, "row"),
                      later ? " from step " : "", later ? CLI_COUNT(phase.first_step) : "");
            return;
        }
        if (!slices_check(audit, batch))
            return;
        calls_check(audit, batch);
    }
    check_add(audit, "ranks", true, "%s with %s each, disjoint, together the %s of a step", CLI_COUNTED(ranks, "rank"),
              range_text(audit->rows_least, audit->rows_most, least == most ? " or " : " to ", "row", d),
              range_text(least, most, " to ", "row", e));
}

/* ---- excluded documents ---- */

#define EXCLUDED_STEPS 4
#define EXCLUDED_PLACES_MOST ((uint64_t)1 << 20) /* that are counted */

struct excluded_place {
    uint64_t step, row;
};

/* The rows that show the documents that the run excludes before the step of their list, and those in which they would
 * come from that step on, of which some are chosen to be read by real loaders. */
struct excluded_places {
    uint64_t documents, tokens; /* of the lists; tokens of several lists count once */
    uint64_t first_step;        /* from which anything is excluded */
    uint64_t before, after;     /* a place is a row and a stretch of excluded tokens */
    bool more;                  /* there are more than were counted */
    struct excluded_place chosen[EXCLUDED_STEPS];
    uint64_t chosen_count;
};

static int place_before(void *user, const struct tokmap_place *place)
{
    struct excluded_places *places = user;
    (void)place;
    places->more = places->before + places->after == EXCLUDED_PLACES_MOST;
    places->before += !places->more;
    return places->more;
}

/* Keeps the first place, and later ones that are far from each other. */
static int place_after(void *user, const struct tokmap_place *place)
{
    struct excluded_places *places = user;
    places->more = places->before + places->after == EXCLUDED_PLACES_MOST;
    if (places->more)
        return 1;
    const uint64_t number = places->after++;
    if ((number & (number + 1)) == 0) /* 0, 1, 3, 7, ...: the last ones replace each other */
        places->chosen[min64(places->chosen_count, EXCLUDED_STEPS - 1)] =
            (struct excluded_place){place->step, place->row};
    if ((number & (number + 1)) == 0 && places->chosen_count < EXCLUDED_STEPS)
        places->chosen_count++;
    return 0;
}

/* Counts the places in the audited steps. */
static enum tokmap_status excluded_places_find(struct excluded_places *places, const struct audit *audit,
                                               struct tokmap_error *error)
{
    const struct exclusions *exclusions = run_exclusions(audit->run);
    enum tokmap_status status = TOKMAP_OK;
    *places = (struct excluded_places){.first_step = exclusions->event_count ? exclusions->events[0].step : 0};
    for (uint64_t i = 0; i < exclusions->list_count; i++)
        places->documents += exclusions->lists[i].documents;
    for (uint64_t source = 0; exclusions->of && source < exclusions->sources->count; source++)
        for (uint64_t i = 0; i < exclusions->of[source].count; i++) {
            const struct exclusion_range *range = &exclusions->of[source].of[i];
            const uint64_t count = range->end - range->first, from = min64(range->from, audit->steps);
            places->tokens += count;
            if (!status && !places->more)
                status = tokmap_run_find(audit->run, source, range->first, count, 0, from, place_before, places, error);
            if (!status && !places->more)
                status = tokmap_run_find(audit->run, source, range->first, count, from, audit->steps, place_after,
                                         places, error);
            status = status == TOKMAP_ERROR_INTERRUPTED ? TOKMAP_OK : status;
        }
    return status;
}

/* ---- real loaders ---- */

/* Moves *step on to the next delivered step. Returns false if no step from *step on is delivered. */
static bool step_delivered(const struct audit *audit, uint64_t *step)
{
    *step = run_next_step(audit->run, *step);
    return *step < audit->steps;
}

/* Tries all ranks at a step, or 16 of them, among them the first and the last. */
static enum tokmap_status step_try(struct audit *audit, struct loader_trial *trial, uint64_t step,
                                   struct tokmap_error *error)
{
    const uint64_t ranks = audit->given->ranks, tried = min64(ranks, 16);
    enum tokmap_status status = TOKMAP_OK;
    if (!step_delivered(audit, &step))
        return TOKMAP_OK;
    for (uint64_t k = 0; k < tried && !status && !trial->fault[0]; k++)
        status = loader_trial_step(trial, tried == 1 ? 0 : mul_div(k, ranks - 1, tried - 1), step, error);
    return status;
}

/* Tries the rank that has a row. */
static enum tokmap_status place_try(struct audit *audit, struct loader_trial *trial, const struct excluded_place *place,
                                    struct tokmap_error *error)
{
    uint64_t rank = 0, first, count;
    for (;; rank++) {
        run_rank_rows(tokmap_run_rows(audit->run, place->step), rank, audit->given->ranks, &first, &count);
        if (place->row < first + count)
            return trial->fault[0] ? TOKMAP_OK : loader_trial_step(trial, rank, place->step, error);
    }
}

/* Says where excluded documents are. That no row has them is the comparison of the trial. */
static void excluded_check(struct audit *audit, const struct loader_trial *trial, const struct excluded_places *places)
{
    check_add(audit, "excluded", !trial->fault[0],
              "from step %" PRIu64
              " on, the pad id replaces %s of %s: computed, in %s%s; compared in rows of real loaders, %s; "
              "%s%s showed them before (a place is a row and a stretch of neighboring documents, each of which "
              "`tokmap show --exposures` counts)",
              places->first_step, CLI_COUNTED(places->tokens, "token"), CLI_COUNTED(places->documents, "document"),
              places->more ? "at least " : "", CLI_COUNTED(places->after, "place"),
              CLI_COUNTED(trial->excluded, "token"), places->more ? "at least " : "",
              cli_counted(places->before, "place", (char[64]){0}));
}

static enum tokmap_status loader_check(struct audit *audit, struct tokmap_error *error)
{
    const uint64_t row_bytes = (audit->info.seq_len_most + audit->info.lookahead) * audit->info.width;
    struct loader_trial trial;
    char a[64];
    if (!audit->delivered)
        return TOKMAP_OK;
    const bool large = row_bytes > LOADER_BYTES || audit->call_rows_most > LOADER_BYTES / row_bytes;
    if (large || audit->remote) {
        check_add(audit, "loader", true, "not tried, because %s%s",
                  large ? "a call would deliver more than " : "it would fetch tokens from object storage; ",
                  large ? cli_bytes(LOADER_BYTES, a) : "--sample-steps 16 allows that");
        return TOKMAP_OK;
    }
    const struct assignment_rule rule = {audit->given->ranks, audit->given->rows, audit->scale, audit->given->nodes};
    enum tokmap_status status = loader_trial_begin(&trial, audit->run, &rule, audit->given->balance, error);
    /* The first step, the step in which the first epoch ends, one in the middle, and the last one. */
    const uint64_t steps[] = {0, (audit->source.windows - 1) / audit->info.batch, audit->steps / 2, audit->steps - 1};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && !status; i++)
        if (audit->plain || i != 1)
            status = step_try(audit, &trial, steps[i], error);
    /* The first steps of some phases, in which a source, a batch, or a length can be new. */
    struct tokmap_phase_info phase;
    for (uint64_t i = 1; i <= PHASES_TRIED && !status && mixture_phase(&audit->report, i, &phase); i++)
        status = step_try(audit, &trial, phase.first_step, error);
    struct excluded_places places = {0};
    if (!status && exclusions_any(run_exclusions(audit->run)))
        status = excluded_places_find(&places, audit, error);
    for (uint64_t i = 0; i < places.chosen_count && !status; i++)
        status = place_try(audit, &trial, &places.chosen[i], error);
    if (!status && exclusions_any(run_exclusions(audit->run)))
        excluded_check(audit, &trial, &places);
    if (!status && trial.fault[0])
        check_add(audit, "loader", false, "%s", trial.fault);
    else if (!status)
        check_add(audit, "loader", true, "%s with %s from real loaders: places and tokens are as computed",
                  cli_counted(trial.batches, "batch", a), CLI_COUNTED(trial.delivered, "row"));
    loader_trial_end(&trial);
    return status;
}

/* Reads the rows of some steps. */
static enum tokmap_status samples_check(struct audit *audit, struct tokmap_error *error)
{
    const uint64_t row_tokens = audit->info.seq_len_most + audit->info.lookahead;
    if (!audit->delivered || !audit->given->sample_steps || audit->remote || row_tokens > LOADER_BYTES / 16)
        return TOKMAP_OK;
    const enum tokmap_status status = row_samples_take(&audit->samples, audit->run, audit->steps, audit->given->ranks,
                                                       audit->given->sample_steps, audit->info.seed, error);
    if (status)
        return status;
    audit->sampled = audit->samples.rows != 0;
    if (audit->sampled)
        check_add(audit, "capacity", audit->samples.documents_most <= audit->samples.documents_bound,
                  "cu_seqlens: computed, no row has more than %s%s, so %s elements suffice for a call; of the sampled "
                  "rows, none has more than %s",
                  CLI_COUNTED(audit->samples.documents_bound, "document"),
                  run_about_padded(audit->run, &audit->info) ? " (padding counts as one)" : "",
                  CLI_COUNT(audit->call_rows_most * audit->samples.documents_bound + 1),
                  CLI_COUNT(audit->samples.documents_most));
    return TOKMAP_OK;
}

/* ---- report ---- */

static bool audit_good(const struct audit *audit)
{
    for (size_t i = 0; i < audit->check_count; i++)
        if (!audit->checks[i].good)
            return false;
    return true;
}

static void epoch_report(const struct audit *audit, uint64_t number, struct cli_report *report)
{
    const struct epoch epoch = epoch_of(audit, number);
    cli_report_item(report);
    cli_fact_number(report, "epoch", "epoch", epoch.number);
    cli_fact(report, "first_step", "steps", cli_number(epoch.first_step), "%s..%s", CLI_COUNT(epoch.first_step),
             CLI_COUNT(epoch.end_step));
    cli_member(report, "end_step", cli_number(epoch.end_step));
    cli_fact_number(report, "windows", "windows", epoch.windows);
    cli_fact_number(report, "windows_skipped", number < EPOCHS_KEPT ? "in skipped steps" : NULL, epoch.skipped);
    cli_report_close(report);
}

/* Lists the epochs: in JSON the first EPOCHS_KEPT, for people the first ones and the last two, of which the last may be
 * unfinished. */
static void epochs_report(const struct audit *audit, struct cli_report *report)
{
    const uint64_t count = audit->epoch_count, most = report->as_json ? min64(count, EPOCHS_KEPT) : count;
    if (!report->as_json && !count)
        return;
    if (!report->as_json)
        putchar('\n');
    cli_report_list(report, "epochs", ">epoch|>steps|>windows|>in skipped steps");
    for (uint64_t i = 0; i < most; i++) {
        if (i == EPOCHS_PRINTED && count > EPOCHS_PRINTED + 2 && !report->as_json) {
            cli_report_item(report);
            cli_row(report, "epoch", "...");
            cli_report_close(report);
            i = count - 2;
        }
        epoch_report(audit, i, report);
    }
    cli_report_close(report);
}

static void facts_print(const struct audit *audit)
{
    cli_print("%s: %s (last: %s), %s skipped%s; %s delivered\n", audit->target->name, CLI_COUNTED(audit->steps, "step"),
              audit->steps ? CLI_COUNT(audit->steps - 1) : "none", CLI_COUNT(audit->steps - audit->delivered),
              audit->steps > audit->delivered && !audit->plain ? ", which the tables below count, too" : "",
              audit->tokens == UINT64_MAX ? "more than 2^64 tokens" : CLI_COUNTED(audit->tokens, "token"));
    for (uint64_t i = 0; i < audit->skip_count && i < SKIPS_KEPT; i++)
        printf("%s%" PRIu64 "..%" PRIu64 "%s", i ? ", " : "skipped: ", audit->skips[i].first, audit->skips[i].end,
               i + 1 == audit->skip_count ? "\n"
               : i + 1 == SKIPS_KEPT      ? ", ...\n"
                                          : "");
    if (audit->plain)
        printf("epoch: %s of %s; tail: %s that no row shows\n", CLI_COUNTED(audit->source.windows, "window"),
               CLI_COUNTED(audit->info.seq_len, "token"), CLI_COUNTED(audit->source.tail, "token"));
    if (audit->info.tail_pad && audit->steps) {
        const uint64_t rows = tokmap_run_rows(audit->run, audit->steps - 1);
        printf("padding: %s at the end of the last step\n",
               CLI_COUNTED(rows - tokmap_run_real_rows(audit->run, audit->steps - 1), "row"));
    }
    for (uint64_t i = 0; i < audit->info.validations && i < VALIDATIONS_PRINTED; i++) {
        const struct tokmap_source_info held_out = info_of_source(audit->run, audit->info.sources + i);
        cli_print("validation: %s, %.200s, %s; the run trains on none of it\n", held_out.name, held_out.data,
                  CLI_COUNTED(info_of_dataset(held_out.dataset).tokens, "token"));
    }
    if (audit->info.validations > VALIDATIONS_PRINTED)
        printf("... and %" PRIu64 " more validation sets; --json lists all\n",
               audit->info.validations - VALIDATIONS_PRINTED);
    if (audit->info.remainder)
        printf("remainder: %s of the last pass that no step shows\n", CLI_COUNTED(audit->info.remainder, "window"));
}

/* Reports what the sampled rows contain. */
static void samples_report(const struct audit *audit, struct cli_report *report)
{
    const struct row_samples *samples = &audit->samples;
    if (!audit->sampled) {
        cli_member(report, "sampled", cli_null());
        return;
    }
    if (!report->as_json) {
        printf("sampled: %s of %s%s\n", CLI_COUNTED(samples->rows, "row"), CLI_COUNTED(samples->steps, "step"),
               samples->all_ranks ? "" : ", of some of the ranks");
        printf("  work of a rank in a step (sum of squared document lengths): p50 %s, p99 %s, max %s\n",
               CLI_COUNT(samples->work_p50), CLI_COUNT(samples->work_p99), CLI_COUNT(samples->work_most));
        printf("  the most work of a rank in a step, divided by the step's mean: p50 %.3f, p99 %.3f, max %.3f\n",
               samples->slowest_p50, samples->slowest_p99, samples->slowest_most);
    }
    if (!report->as_json && samples->targets)
        printf("  targets that count: %.2f%% of %s\n", 100.0 * (double)samples->counted / (double)samples->targets,
               CLI_COUNT(samples->targets));
    cli_report_object(report, "sampled");
    cli_numbers(report, "steps|rows", samples->steps, samples->rows);
    cli_member(report, "all_ranks", cli_bool(samples->all_ranks));
    cli_numbers(report, "work_p50|work_p99|work_max", samples->work_p50, samples->work_p99, samples->work_most);
    cli_member(report, "slowest_p50", cli_real(samples->slowest_p50));
    cli_member(report, "slowest_p99", cli_real(samples->slowest_p99));
    cli_member(report, "slowest_max", cli_real(samples->slowest_most));
    cli_numbers(report, "documents_max|documents_bound|cu_seqlens|targets|targets_counted", samples->documents_most,
                samples->documents_bound, audit->call_rows_most * samples->documents_bound + 1, samples->targets,
                samples->counted);
    cli_report_close(report);
}

/* Reports what was proved, one line for each check. */
static void checks_report(const struct audit *audit, struct cli_report *report)
{
    cli_report_list(report, "checks", NULL);
    for (size_t i = 0; i < audit->check_count; i++) {
        const struct check *check = &audit->checks[i];
        cli_report_item(report);
        cli_member(report, "check", cli_text(check->name));
        cli_member(report, "ok", cli_bool(check->good));
        cli_member(report, "text", cli_text(check->text));
        cli_report_close(report);
        if (!report->as_json)
            printf("%-5s  %-8s  %s\n", check->good ? "ok" : "FAULT", check->name, check->text);
    }
    cli_report_close(report);
}

/* Prints the numbers of JSON before the checks. */
static void facts_json(const struct audit *audit, struct cli_report *report)
{
    uint64_t counted = 0;
    cli_member(report, "ok", cli_bool(audit_good(audit)));
    cli_numbers(report, "steps|delivered|draws|draws_counted|tokens|seq_len|batch", audit->steps, audit->delivered,
                audit->draws, draws_before(audit, audit->counted_steps, &counted) ? counted : 0, audit->tokens,
                audit->info.seq_len, audit->info.batch);
    cli_member(report, "windows", cli_number_if(audit->plain, audit->source.windows));
    cli_member(report, "tail", cli_number_if(audit->plain, audit->source.tail));
    cli_numbers(report, "remainder|ranks|calls|rank_rows_min|rank_rows_max", audit->info.remainder, audit->given->ranks,
                audit->calls_most, audit->rows_least, audit->rows_most);
    cli_report_array(report, "skipped");
    for (uint64_t i = 0; i < audit->skip_count && i < SKIPS_KEPT; i++)
        cli_member_pair(report, NULL, audit->skips[i].first, audit->skips[i].end);
    cli_report_close(report);
}

/* For people, a plain run has a table of its epochs, and any other has tables of its mixture. */
static void audit_report(const struct audit *audit)
{
    const bool json = audit->given->json;
    struct cli_report report;
    cli_report_begin(&report, json, NULL);
    cli_member(&report, audit->target->is_run_file ? "run" : "dataset", cli_text(audit->target->name));
    if (json)
        facts_json(audit, &report);
    else
        facts_print(audit);
    checks_report(audit, &report);
    if (!json)
        samples_report(audit, &report);
    cli_member(&report, "epoch_count", cli_number(audit->epoch_count));
    if (json || audit->plain)
        epochs_report(audit, &report);
    if (json || !audit->plain)
        mixture_report_add(&audit->report, &report);
    if (json) {
        run_about_validations(audit->run, &report);
        samples_report(audit, &report);
    }
    cli_report_end(&report);
}

/* ---- the audit ---- */

/* Finds the number of steps to audit: those of the run, or fewer if the arguments say so. Returns -1 to go on, or
 * prints a message and returns the exit status. */
static int end_find(struct audit *audit, const struct cli_command *command)
{
    const struct run_arguments *given = &audit->given->run;
    uint64_t steps = audit->info.steps;
    if (audit->target->is_run_file && given->steps_given)
        steps = min64(steps, given->steps);
    if (audit->target->is_run_file && given->passes_given) {
        uint64_t draws;
        if (!audit->plain)
            return cli_misused(command, "--passes needs a run of one source and one phase; choose an end with --steps");
        if (mul_overflows(given->passes, audit->source.windows, &draws))
            return cli_misused(command, "--passes %" PRIu64 " is too large: its draws do not fit in 64 bits",
                               given->passes);
        steps = min64(steps, draws / audit->info.batch);
    }
    if (steps == TOKMAP_FOREVER)
        return cli_misused(command, "'%s' has no end; choose one for the audit with --steps or --passes",
                           audit->target->name);
    if (!draws_before(audit, steps, &audit->draws))
        return cli_misused(command, "%" PRIu64 " steps are more than 2^63 draws; choose fewer with --steps", steps);
    audit->steps = steps;
    return -1;
}

static enum tokmap_status delivered_count(struct audit *audit, struct tokmap_error *error)
{
    struct tokmap_cursor cursor;
    audit->delivered = run_delivered_before(audit->run, audit->steps);
    const enum tokmap_status status = tokmap_run_cursor(audit->run, audit->steps, &cursor, error);
    audit->tokens = status ? 0 : cursor.tokens;
    return status;
}

static enum tokmap_status audit_checks(struct audit *audit, struct tokmap_error *error)
{
    char a[128], b[128];
    enum tokmap_status status = delivered_count(audit, error);
    if (!status)
        status = shares_check(audit, error);
    if (status)
        return status;
    skips_find(audit);
    status = coverage_check(audit, error);
    ranks_check(audit);
    if (!status && audit_good(audit)) {
        check_add(audit, "calls", !audit->calls_wrong, "%s per step on every rank, %s per call",
                  range_text(audit->calls_least, audit->calls_most, " to ", "call", a),
                  range_text(audit->call_rows_least, audit->call_rows_most, " to ", "row", b));
        status = loader_check(audit, error);
    }
    if (!status && audit_good(audit))
        status = samples_check(audit, error);
    return status;
}

static int audit_target(struct audit *audit, const struct cli_command *command)
{
    struct tokmap_error error = {0};
    audit->run = audit->target->run;
    audit->info = info_of_run(audit->run);
    audit->source = info_of_source(audit->run, 0);
    audit->source.tail = run_about_tail(&audit->info, &audit->source, audit->info.seq_len, audit->source.windows);
    audit->plain = audit->info.sources == 1 && audit->info.phases == 1;
    audit->remote = !audit->given->sample_given && run_is_remote(audit->run);
    int exit_status = end_find(audit, command);
    if (exit_status >= 0)
        return exit_status;
    audit->epoch_count = audit->plain ? div_ceil(audit->draws, audit->source.windows) : 0;
    audit->epoch_skipped = calloc(EPOCHS_KEPT, 8);
    enum tokmap_status status =
        audit->given->balance != 0 ? row_cost_scale(audit->given->balance, &audit->scale, &error) : TOKMAP_OK;
    if (!status)
        status =
            audit->epoch_skipped ? audit_checks(audit, &error) : error_set_memory(&error, "epochs", EPOCHS_KEPT * 8);
    if (status)
        exit_status = command_failed(command, &error);
    cli_signals_end(program, NULL);
    if (!status) {
        audit_report(audit);
        exit_status = audit_good(audit) ? CLI_DONE : CLI_FAILED;
    }
    mixture_report_free(&audit->report);
    free(audit->epoch_skipped);
    return exit_status;
}

static int name_audit(const struct cli_command *command, const struct audit_arguments *given, const char *name)
{
    struct target target = {0};
    struct audit state = {.given = given, .target = &target};
    cli_signals_catch();
    int exit_status = target_open(&target, command, name, &given->run, true);
    if (exit_status < 0)
        exit_status = audit_target(&state, command);
    target_close(&target);
    if (os_signal_caught())
        os_signal_die(os_signal_caught());
    return cli_finish(program, exit_status);
}

static int audit(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    const struct audit_arguments *given = user;
    if (operand_count != 1)
        return cli_misused(command, "expected one run file or dataset");
    if (!given->ranks)
        return cli_misused(command, "--ranks must be at least 1");
    if (!given->threads || given->threads > COVERAGE_THREADS_MOST)
        return cli_misused(command, "--threads must be between 1 and %u", COVERAGE_THREADS_MOST);
    if (given->run.steps_given && given->run.passes_given)
        return cli_misused(command, "--steps and --passes exclude each other");
    return name_audit(command, given, operands[0]);
}

int command_audit(int argc, char **argv)
{
    struct audit_arguments given = {
        .run = RUN_ARGUMENTS_INIT, .ranks = 1, .draws = COUNT_DRAWS, .sample_steps = SAMPLE_STEPS};
    given.threads = os_processors() < COVERAGE_THREADS_MOST ? os_processors() : COVERAGE_THREADS_MOST;
    const struct cli_option options[] = {
        CLI_HEADING("What is audited"),
        {'r', "ranks", CLI_NUMBER, &given.ranks, NULL, "R", "number of ranks that share the run (default: 1)", NULL},
        {0, "rows", CLI_NUMBER, &given.rows, NULL, "N",
         "the most rows of a call (default: the rank's whole slice of the global batch)", NULL},
        {0, "balance", CLI_REAL, &given.balance, NULL, "Q",
         "the loaders' option balance, with which loaders are then tried", NULL},
        {0, "nodes", CLI_NUMBER, &given.nodes, NULL, "N", "the loaders' option nodes, likewise", NULL},
        {0, "steps", CLI_NUMBER, &given.run.steps, &given.run.steps_given, "N",
         "audit the steps below N; required if the run has no end", NULL},
        {0, "passes", CLI_NUMBER, &given.run.passes, &given.run.passes_given, "P", "audit P passes over the dataset",
         NULL},
        {0, "draws", CLI_SIZE, &given.draws, NULL, "N",
         "the most draws that are counted one by one (default: 268435456); random ones are checked beyond that", NULL},
        {0, "sample-steps", CLI_NUMBER, &given.sample_steps, &given.sample_given, "N",
         "steps whose rows are read, to sample documents and masks (default: 16; of object storage 0: none)", NULL},
        CLI_HEADING("A run made from a dataset"),
        RUN_OPTIONS(given.run),
        CLI_HEADING("General"),
        {'j', "threads", CLI_NUMBER, &given.threads, NULL, "N",
         "number of threads that count (default: one per processor)", NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print a JSON object", NULL},
        CLI_OPTION_PROGRESS(given.progress),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "the same as --progress none", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "RUN [--ranks R] [OPTION]...\n"
                 "       tokmap audit DATASET --seq-len S --batch G --steps N|--passes P [-r R]\n"
                 "                    [--seed N] [OPTION]...",
        .summary =
            "Proves that a run shows every window of an epoch exactly once, that its ranks own disjoint rows which "
            "together are the global batch, and that loaders deliver exactly these rows. Of a mixture, it compares the "
            "share of each source in each phase with its weight, and lists epochs and repetitions.",
        .details = "The exit status is 1 if a line begins with FAULT.\n\n"
                   "Examples:\n"
                   "  tokmap audit train.run --ranks 1024 --rows 4\n"
                   "  tokmap audit train.run --ranks 64 --rows 4 --balance 2e-5\n"
                   "  tokmap audit data/web --seq-len 2048 --batch 512 --seed 1 --passes 2 "
                   "--ranks 8\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS | CLI_RUNS,
    };
    return cli_run(&command, argc, argv, audit, &given);
}
