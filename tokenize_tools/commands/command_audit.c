/*
 * command_audit.c - tokmap audit: proves, before a run is started, that it will deliver every window to exactly one
 * rank.
 *
 * Coverage: the windows of the first --draws draws are counted as coverage.h describes, if the bitmaps fit into
 * COUNT_BYTES. The rest of the run is sampled.
 *
 * Ranks: the slices of the ranks are compared with each other and with the global batch. Then real loaders are opened
 * for some ranks at some steps, and every place and every byte that they deliver is compared with what the run's
 * arithmetic predicts.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/shared/coverage.h"
#include "commands/shared/field_options.h"
#include "commands/shared/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "platform/process.h"

static const char program[] = "tokmap audit";

#define COUNT_BYTES ((uint64_t)1 << 30)  /* the most memory for bitmaps */
#define COUNT_DRAWS ((uint64_t)1 << 28)  /* default of --draws */
#define SAMPLES 100000u                  /* rows that are sampled if not all are counted */
#define LOADER_BYTES ((uint64_t)1 << 28) /* no loader is opened if a call would hold more */
#define EPOCHS_KEPT 1000u                /* epochs whose skipped windows are counted */
#define EPOCHS_PRINTED 8u
#define SKIPS_SOUGHT 100000u /* ranges of skipped steps that are counted at most */
#define SKIPS_KEPT 16u       /* of them, ranges that are printed */
#define CHECKS 5

struct audit_arguments {
    struct run_arguments run;
    uint64_t ranks, rows, draws, threads;
    bool ranks_given, json, quiet;
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
    struct tokmap_source_info source;
    struct tokmap_dataset_info dataset;
    uint64_t steps, draws;          /* steps that are audited, and their rows */
    uint64_t delivered;             /* of the steps, those that are not skipped */
    uint64_t counted_steps;         /* of the steps, those whose rows are counted */
    uint64_t calls;                 /* per step, on every rank */
    uint64_t rows_least, rows_most; /* of a rank */
    struct check checks[CHECKS];
    size_t check_count;
    uint64_t epoch_count;    /* epochs that the draws reach */
    uint64_t *epoch_skipped; /* for each of the first EPOCHS_KEPT epochs, its windows in skipped steps */
    struct cli_range skips[SKIPS_KEPT];
    uint64_t skip_count; /* ranges of skipped steps */
};

/* Keeps the first fault, which is the one that is printed. */
static void fault_set(char fault[200], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fault_set(char fault[200], const char *format, ...)
{
    va_list arguments;
    if (fault[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(fault, 200, format, arguments);
    va_end(arguments);
}

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
    /* Their draws, split at the ends of epochs. */
    const uint64_t windows = audit->source.windows, draws_end = end * audit->info.batch;
    for (uint64_t draw = first * audit->info.batch; draw < draws_end && draw / windows < EPOCHS_KEPT;) {
        const uint64_t part = min64(draws_end, (draw / windows + 1) * windows) - draw;
        audit->epoch_skipped[draw / windows] += part;
        draw += part;
    }
}

/* Returns the number of delivered steps below `step`. */
static uint64_t delivered_before(const struct audit *audit, uint64_t step)
{
    struct tokmap_cursor cursor;
    if (tokmap_run_cursor(audit->run, step, &cursor, NULL))
        return 0;
    return cursor.tokens / (audit->info.batch * audit->info.seq_len);
}

/* Returns the first step from `from` on that is delivered (delivered) or skipped (!delivered), or the number of
 * steps. The number of delivered steps before a step never decreases, and neither does that of skipped steps, so a
 * binary search finds it. */
static uint64_t step_find(const struct audit *audit, uint64_t from, bool delivered)
{
    const uint64_t before = delivered_before(audit, from);
    uint64_t low = from, high = audit->steps; /* the result is in [low, high] */
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const uint64_t since = delivered_before(audit, middle + 1) - before;
        const bool reached = delivered ? since > 0 : since < middle + 1 - from;
        if (reached)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void skips_find(struct audit *audit)
{
    uint64_t step_tokens, tokens;
    /* delivered_before() divides the token count of a cursor, which must not overflow. */
    if (mul_overflows(audit->info.batch, audit->info.seq_len, &step_tokens) ||
        mul_overflows(step_tokens, audit->steps, &tokens))
        return;
    uint64_t left = audit->steps - audit->delivered;
    for (uint64_t step = 0; left && step < audit->steps && audit->skip_count < SKIPS_SOUGHT;) {
        const uint64_t first = step_find(audit, step, false);
        step = step_find(audit, first, true);
        skip_add(audit, first, step);
        left -= min64(left, step - first);
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

/* ---- coverage ---- */

static enum tokmap_status coverage_check(struct audit *audit, struct tokmap_error *error)
{
    const uint64_t batch = audit->info.batch, windows = audit->source.windows;
    const struct coverage coverage = {audit->run,
                                      batch,
                                      windows,
                                      audit->info.seed,
                                      audit->given->quiet ? CLI_PROGRESS_NONE : audit->given->progress,
                                      (uint32_t)audit->given->threads};
    char fault[COVERAGE_FAULT] = "", a[64], b[64], c[64];
    uint64_t samples = 0;
    enum tokmap_status status = TOKMAP_OK;
    audit->counted_steps =
        coverage_bytes(&coverage) <= COUNT_BYTES ? min64(audit->steps, audit->given->draws / batch) : 0;
    if (audit->counted_steps)
        status = coverage_count(&coverage, audit->counted_steps, fault, error);
    if (!status && !fault[0] && audit->counted_steps < audit->steps)
        status = coverage_sample(&coverage, audit->counted_steps, audit->steps, SAMPLES, &samples, fault, error);
    if (status)
        return status;
    const uint64_t counted = audit->counted_steps * batch, full = counted / windows;
    if (fault[0])
        check_add(audit, "coverage", false, "%s", fault);
    else if (counted == audit->draws && full)
        check_add(audit, "coverage", true, "counted all %s: each of the %s appears once in %s%s%s",
                  cli_counted(audit->draws, "draw", a), cli_counted(windows, "window", b),
                  full > 1 ? "each of " : "the ", full > 1 ? cli_counted(full, "full epoch", c) : "full epoch",
                  counted % windows ? "; in the unfinished epoch after them, none appears twice" : "");
    else if (counted == audit->draws)
        check_add(audit, "coverage", true, "counted all %s: none of the %s appears twice in the unfinished epoch",
                  cli_counted(audit->draws, "draw", a), cli_counted(windows, "window", b));
    else
        check_add(
            audit, "coverage", true,
            "counted the first %s of %s: no window appears twice in an epoch; sampled %s of the rest: each leads back "
            "to its row",
            cli_count(counted, a), cli_counted(audit->draws, "draw", b), cli_count(samples, c));
    return TOKMAP_OK;
}

/* ---- ranks ---- */

static uint64_t slice_first(const struct audit *audit, uint64_t rank)
{
    return mul_div(rank, audit->info.batch, audit->given->ranks);
}

static void ranks_check(struct audit *audit)
{
    const uint64_t batch = audit->info.batch, ranks = audit->given->ranks;
    char fault[200] = "", a[64], b[64], c[64];
    uint64_t reached = 0;
    if (ranks > batch) {
        check_add(audit, "ranks", false, "%s cannot share a global batch of %s; use fewer ranks or a larger batch",
                  cli_counted(ranks, "rank", a), cli_counted(batch, "row", b));
        return;
    }
    const uint64_t share = div_ceil(batch, ranks);
    audit->calls = audit->given->rows ? div_ceil(share, audit->given->rows) : 1;
    audit->rows_least = batch;
    for (uint64_t rank = 0; rank < ranks && !fault[0]; rank++) {
        const uint64_t first = slice_first(audit, rank), end = slice_first(audit, rank + 1);
        if (first != reached || end <= first)
            fault_set(fault,
                      "rank %" PRIu64 " owns rows %" PRIu64 "..%" PRIu64 ", but the rank before it ends at %" PRIu64,
                      rank, first, end, reached);
        reached = end;
        audit->rows_least = min64(audit->rows_least, end - first);
        audit->rows_most = max64(audit->rows_most, end - first);
    }
    if (!fault[0] && reached != batch)
        fault_set(fault, "the rows of the ranks end at %" PRIu64 " of %" PRIu64, reached, batch);
    if (fault[0])
        check_add(audit, "ranks", false, "%s", fault);
    else
        check_add(audit, "ranks", true, "%s with %s%s%s each, disjoint, together the %s of a step",
                  cli_counted(ranks, "rank", a),
                  audit->rows_least == audit->rows_most ? "" : cli_count(audit->rows_least, b),
                  audit->rows_least == audit->rows_most ? "" : " or ", cli_counted(audit->rows_most, "row", c),
                  cli_counted(batch, "row", fault));
}

/* For every size of a slice: each call delivers at most --rows rows, and all calls together deliver the slice. */
static void calls_check(struct audit *audit)
{
    const uint64_t calls = audit->calls;
    uint64_t most = 0, least = UINT64_MAX;
    bool good = true;
    for (uint64_t rows = audit->rows_least; rows <= audit->rows_most; rows++) {
        uint64_t reached = 0;
        for (uint64_t call = 0; call < calls; call++) {
            const uint64_t end = mul_div(call + 1, rows, calls);
            good = good && mul_div(call, rows, calls) == reached && end >= reached;
            most = max64(most, end - reached);
            least = min64(least, end - reached);
            reached = end;
        }
        good = good && reached == rows;
    }
    good = good && (!audit->given->rows || most <= audit->given->rows);
    char a[64], b[32], c[64];
    check_add(audit, "calls", good, "%s per step on every rank, %s%s%s per call", cli_counted(calls, "call", a),
              least == most ? "" : cli_count(least, b), least == most ? "" : " to ", cli_counted(most, "row", c));
}

/* ---- real loaders ---- */

struct trial {
    struct audit *audit;
    uint8_t *copy; /* one row, as the dataset has it */
    uint64_t batches, rows;
    char fault[200];
};

static enum tokmap_status batch_compare(struct trial *trial, const struct tokmap_batch *batch, uint64_t rank,
                                        uint64_t step, uint64_t first, uint64_t count, struct tokmap_error *error)
{
    struct audit *audit = trial->audit;
    if (batch->step != step || batch->count != count || (count && batch->first_row != first))
        fault_set(trial->fault,
                  "rank %" PRIu64 " received rows %" PRIu64 "..%" PRIu64 " of step %" PRIu64 " instead of rows %" PRIu64
                  "..%" PRIu64 " of step %" PRIu64,
                  rank, batch->first_row, batch->first_row + batch->count, batch->step, first, first + count, step);
    for (uint64_t i = 0; i < count && !trial->fault[0]; i++) {
        struct tokmap_place place;
        enum tokmap_status status = tokmap_run_locate(audit->run, step, first + i, &place, error);
        const uint64_t tokens = audit->dataset.tokens, width = audit->dataset.width;
        for (uint64_t at = 0; at < place.tokens && !status;) {
            const uint64_t from = (place.first_token + at) % tokens;
            const uint64_t part = min64(place.tokens - at, tokens - from);
            status = tokmap_dataset_copy(audit->source.dataset, from, part, trial->copy + at * width, error);
            at += part;
        }
        if (status)
            return status;
        if (batch->places[i].draw != place.draw || batch->places[i].window != place.window ||
            memcmp(batch->rows[i], trial->copy, (size_t)(place.tokens * width)) != 0)
            fault_set(trial->fault, "rank %" PRIu64 " received wrong tokens in step %" PRIu64 " row %" PRIu64, rank,
                      step, first + i);
        trial->rows++;
    }
    trial->batches++;
    return TOKMAP_OK;
}

/* Opens a loader for one rank and one step and compares what it delivers. */
static enum tokmap_status rank_compare(struct trial *trial, uint64_t rank, uint64_t step, struct tokmap_error *error)
{
    struct audit *audit = trial->audit;
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader = NULL;
    struct tokmap_cursor cursor;
    char text[TOKMAP_CURSOR_TEXT];
    const uint64_t first = slice_first(audit, rank), rows = slice_first(audit, rank + 1) - first;
    enum tokmap_status status = tokmap_run_cursor(audit->run, step, &cursor, error);
    if (status)
        return status;
    tokmap_cursor_print(&cursor, text);
    options.rank = rank;
    options.world = audit->given->ranks;
    options.rows = audit->given->rows;
    options.fields = 0;
    options.threads = 0;
    options.resume = text;
    status = tokmap_loader_open(&loader, audit->run, &options, error);
    if (!status && tokmap_loader_calls(loader) != audit->calls)
        fault_set(trial->fault, "rank %" PRIu64 " makes %" PRIu64 " calls a step, not %" PRIu64, rank,
                  tokmap_loader_calls(loader), audit->calls);
    for (uint64_t call = 0; call < audit->calls && !status && !trial->fault[0]; call++) {
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        const uint64_t begin = mul_div(call, rows, audit->calls), end = mul_div(call + 1, rows, audit->calls);
        status = tokmap_loader_next(loader, NULL, NULL, &batch, error);
        if (!status)
            status = batch_compare(trial, &batch, rank, step, first + begin, end - begin, error);
    }
    tokmap_loader_close(loader);
    return status;
}

/* Moves *step on to the next delivered step. Returns false if no step from *step on is delivered. */
static bool step_delivered(const struct audit *audit, uint64_t *step)
{
    if (*step < audit->steps && !tokmap_run_delivers(audit->run, *step))
        *step = step_find(audit, *step, true);
    return *step < audit->steps && tokmap_run_delivers(audit->run, *step);
}

static enum tokmap_status loader_check(struct audit *audit, struct tokmap_error *error)
{
    const uint64_t ranks = audit->given->ranks;
    const uint64_t row_bytes = (audit->info.seq_len + audit->info.lookahead) * audit->dataset.width;
    const uint64_t call_rows = div_ceil(audit->rows_most, audit->calls);
    struct trial trial = {.audit = audit};
    enum tokmap_status status = TOKMAP_OK;
    char a[64], b[64];
    if (!audit->delivered)
        return TOKMAP_OK;
    if (row_bytes > LOADER_BYTES || call_rows > LOADER_BYTES / row_bytes) {
        check_add(audit, "loader", true, "not tried, because a call would deliver more than %s",
                  cli_bytes(LOADER_BYTES, a));
        return TOKMAP_OK;
    }
    trial.copy = malloc(row_bytes);
    if (!trial.copy)
        return error_set_memory(error, "a row", row_bytes);
    /* The first step, the step in which the first epoch ends, one in the middle, and the last one. */
    const uint64_t steps[] = {0, (audit->source.windows - 1) / audit->info.batch, audit->steps / 2, audit->steps - 1};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && !status; i++) {
        uint64_t step = steps[i];
        if (!step_delivered(audit, &step))
            continue;
        /* All ranks, or 16 of them, among them the first and the last. */
        const uint64_t tried = min64(ranks, 16);
        for (uint64_t k = 0; k < tried && !status && !trial.fault[0]; k++)
            status = rank_compare(&trial, tried == 1 ? 0 : mul_div(k, ranks - 1, tried - 1), step, error);
    }
    free(trial.copy);
    if (status)
        return status;
    if (trial.fault[0])
        check_add(audit, "loader", false, "%s", trial.fault);
    else
        check_add(audit, "loader", true, "%s with %s from real loaders: places and tokens are as computed",
                  cli_counted(trial.batches, "batch", a), cli_counted(trial.rows, "row", b));
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

static void epoch_print(const struct audit *audit, uint64_t number, struct cli_table *table)
{
    const struct epoch epoch = epoch_of(audit, number);
    char a[32], b[72], c[32], d[32], e[32];
    snprintf(b, sizeof b, "%s..%s", cli_count(epoch.first_step, d), cli_count(epoch.end_step, e));
    const char *const cells[] = {cli_count(epoch.number, a), b, cli_count(epoch.windows, c),
                                 number < EPOCHS_KEPT ? cli_count(epoch.skipped, d) : NULL};
    cli_table_row(table, cells);
}

/* Prints the first epochs and the last two, of which the last may be unfinished. */
static void epochs_print(const struct audit *audit)
{
    static const char *const rest[] = {"...", NULL, NULL, NULL};
    static const char *const head[] = {"epoch", "steps", "windows", "in skipped steps"};
    static const bool right[] = {true, true, true, true};
    struct cli_table *table = cli_table_new(4);
    cli_table_row(table, head);
    for (uint64_t i = 0; i < audit->epoch_count; i++) {
        if (i == EPOCHS_PRINTED && audit->epoch_count > EPOCHS_PRINTED + 2) {
            cli_table_row(table, rest);
            i = audit->epoch_count - 2;
        }
        epoch_print(audit, i, table);
    }
    if (audit->epoch_count) {
        putchar('\n');
        cli_table_print(table, right, stdout);
    }
    cli_table_free(table);
}

static void facts_print(const struct audit *audit)
{
    char a[64], b[64], c[64], d[64];
    uint64_t step_tokens = 0, tokens = 0;
    const bool huge = mul_overflows(audit->info.batch, audit->info.seq_len, &step_tokens) ||
                      mul_overflows(step_tokens, audit->delivered, &tokens);
    cli_print("%s: %s (last: %s), %s skipped; %s delivered\n", audit->target->name,
              cli_counted(audit->steps, "step", a), audit->steps ? cli_count(audit->steps - 1, b) : "none",
              cli_count(audit->steps - audit->delivered, c),
              huge ? "more than 2^64 tokens" : cli_counted(tokens, "token", d));
    for (uint64_t i = 0; i < audit->skip_count && i < SKIPS_KEPT; i++)
        printf("%s%" PRIu64 "..%" PRIu64 "%s", i ? ", " : "skipped: ", audit->skips[i].first, audit->skips[i].end,
               i + 1 == audit->skip_count ? "\n"
               : i + 1 == SKIPS_KEPT      ? ", ...\n"
                                          : "");
    printf("epoch: %s of %s; tail: %s that no row shows\n", cli_counted(audit->source.windows, "window", a),
           cli_counted(audit->info.seq_len, "token", b), cli_counted(audit->source.tail, "token", c));
    if (audit->info.remainder)
        printf("remainder: %s of the last pass that no step shows\n", cli_counted(audit->info.remainder, "window", a));
}

static void report_print(const struct audit *audit)
{
    facts_print(audit);
    for (size_t i = 0; i < audit->check_count; i++)
        printf("%-5s  %-8s  %s\n", audit->checks[i].good ? "ok" : "FAULT", audit->checks[i].name,
               audit->checks[i].text);
    epochs_print(audit);
}

static void report_json(const struct audit *audit)
{
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    target_json(audit->target, &json);
    cli_json_bool(&json, "ok", audit_good(audit));
    cli_json_number(&json, "steps", audit->steps);
    cli_json_number(&json, "delivered", audit->delivered);
    cli_json_number(&json, "draws", audit->draws);
    cli_json_number(&json, "draws_counted", audit->counted_steps * audit->info.batch);
    cli_json_number(&json, "seq_len", audit->info.seq_len);
    cli_json_number(&json, "batch", audit->info.batch);
    cli_json_number(&json, "windows", audit->source.windows);
    cli_json_number(&json, "tail", audit->source.tail);
    cli_json_number(&json, "remainder", audit->info.remainder);
    cli_json_number(&json, "ranks", audit->given->ranks);
    cli_json_number(&json, "calls", audit->calls);
    cli_json_number(&json, "rank_rows_min", audit->rows_least);
    cli_json_number(&json, "rank_rows_max", audit->rows_most);
    cli_json_array(&json, "skipped");
    for (uint64_t i = 0; i < audit->skip_count && i < SKIPS_KEPT; i++) {
        cli_json_array(&json, NULL);
        cli_json_number(&json, NULL, audit->skips[i].first);
        cli_json_number(&json, NULL, audit->skips[i].end);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_array(&json, "checks");
    for (size_t i = 0; i < audit->check_count; i++) {
        cli_json_object(&json, NULL);
        cli_json_text(&json, "check", audit->checks[i].name);
        cli_json_bool(&json, "ok", audit->checks[i].good);
        cli_json_text(&json, "text", audit->checks[i].text);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_number(&json, "epoch_count", audit->epoch_count);
    cli_json_array(&json, "epochs");
    for (uint64_t i = 0; i < audit->epoch_count && i < EPOCHS_KEPT; i++) {
        const struct epoch epoch = epoch_of(audit, i);
        cli_json_object(&json, NULL);
        cli_json_number(&json, "epoch", epoch.number);
        cli_json_number(&json, "first_step", epoch.first_step);
        cli_json_number(&json, "end_step", epoch.end_step);
        cli_json_number(&json, "windows", epoch.windows);
        cli_json_number(&json, "windows_skipped", epoch.skipped);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
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
        if (mul_overflows(given->passes, audit->source.windows, &draws))
            return cli_misused(command, "--passes %" PRIu64 " is too large: its draws do not fit in 64 bits",
                               given->passes);
        steps = min64(steps, draws / audit->info.batch);
    }
    if (steps == TOKMAP_FOREVER)
        return cli_misused(command, "'%s' has no end; choose one for the audit with --steps or --passes",
                           audit->target->name);
    if (mul_overflows(steps, audit->info.batch, &audit->draws) || audit->draws >> 63)
        return cli_misused(command, "%" PRIu64 " steps are more than 2^63 draws; choose fewer with --steps", steps);
    audit->steps = steps;
    return -1;
}

static void delivered_count(struct audit *audit)
{
    audit->delivered =
        audit->steps == audit->info.steps ? audit->info.delivered : delivered_before(audit, audit->steps);
}

static enum tokmap_status audit_checks(struct audit *audit, struct tokmap_error *error)
{
    skips_find(audit);
    enum tokmap_status status = coverage_check(audit, error);
    ranks_check(audit);
    if (!status && audit_good(audit)) {
        calls_check(audit);
        status = loader_check(audit, error);
    }
    return status;
}

static int audit_target(struct audit *audit, const struct cli_command *command)
{
    struct tokmap_error error = {0};
    audit->run = audit->target->run;
    audit->info.size = sizeof audit->info;
    audit->source.size = sizeof audit->source;
    audit->dataset.size = sizeof audit->dataset;
    if (tokmap_run_info(audit->run, &audit->info) || tokmap_run_source(audit->run, 0, &audit->source) ||
        tokmap_dataset_info(audit->source.dataset, &audit->dataset)) {
        cli_say(program, "the run cannot be described");
        return CLI_FAILED;
    }
    if (audit->info.sources != 1) {
        cli_say(program, "this version cannot audit runs with several sources");
        return CLI_FAILED;
    }
    int exit_status = end_find(audit, command);
    if (exit_status >= 0)
        return exit_status;
    delivered_count(audit);
    audit->epoch_count = div_ceil(audit->draws, audit->source.windows);
    audit->epoch_skipped = calloc(EPOCHS_KEPT, 8);
    enum tokmap_status status =
        audit->epoch_skipped ? audit_checks(audit, &error) : error_set_memory(&error, "epochs", EPOCHS_KEPT * 8);
    const bool interrupted = os_signals_release() != 0; /* name_audit() then ends by the signal */
    if (status)
        exit_status = command_failed(command, &error);
    else if (!interrupted && audit->given->json)
        report_json(audit);
    else if (!interrupted)
        report_print(audit);
    if (!status)
        exit_status = audit_good(audit) ? CLI_DONE : CLI_FAILED;
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
    if (!given->ranks_given || !given->ranks)
        return cli_misused(command, "--ranks is required and must be at least 1");
    if (!given->threads || given->threads > COVERAGE_THREADS_MOST)
        return cli_misused(command, "--threads must be between 1 and %u", COVERAGE_THREADS_MOST);
    if (given->run.steps_given && given->run.passes_given)
        return cli_misused(command, "--steps and --passes exclude each other");
    return name_audit(command, given, operands[0]);
}

int command_audit(int argc, char **argv)
{
    struct audit_arguments given = {.run = RUN_ARGUMENTS_INIT, .draws = COUNT_DRAWS};
    given.threads = os_processors() < COVERAGE_THREADS_MOST ? os_processors() : COVERAGE_THREADS_MOST;
    const struct cli_option options[] = {
        CLI_HEADING("What is audited"),
        {'r', "ranks", CLI_NUMBER, &given.ranks, &given.ranks_given, "R", "number of ranks that share the run", NULL},
        {0, "rows", CLI_NUMBER, &given.rows, NULL, "N",
         "the most rows of a call (default: the rank's whole slice of the global batch)", NULL},
        {0, "steps", CLI_NUMBER, &given.run.steps, &given.run.steps_given, "N",
         "audit the steps below N; required if the run has no end", NULL},
        {0, "passes", CLI_NUMBER, &given.run.passes, &given.run.passes_given, "P", "audit P passes over the dataset",
         NULL},
        {0, "draws", CLI_SIZE, &given.draws, NULL, "N",
         "the most draws that are counted one by one (default: 268435456); random ones are checked beyond that", NULL},
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
        .usage = "RUN --ranks R [OPTION]...\n"
                 "       tokmap audit DATASET --seq-len S --batch G --steps N|--passes P --ranks R\n"
                 "                    [--seed N] [OPTION]...",
        .summary =
            "Proves that a run shows every window of an epoch exactly once, that its ranks own disjoint rows which "
            "together are the global batch, and that loaders deliver exactly these rows.",
        .details = "The exit status is 1 if a line begins with FAULT.\n\n"
                   "Examples:\n"
                   "  tokmap audit train.run --ranks 1024 --rows 4\n"
                   "  tokmap audit data/web --seq-len 2048 --batch 512 --seed 1 --passes 2 "
                   "--ranks 8\n",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands = CLI_DATASETS | CLI_RUNS,
    };
    return cli_run(&command, argc, argv, audit, &given);
}
