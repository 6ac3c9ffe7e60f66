/* SPDX-License-Identifier: MIT */
/* balance_samples.c - see balance_samples.h. */
#include "balance_samples.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/process.h"
#include "run/assignment.h"
#include "run/run.h"

#define STEPS_MOST 1000
#define ROWS_MOST ((uint64_t)1 << 18) /* of all steps together */

struct sampler {
    struct assignment assignment;
    uint8_t *seen;                 /* by row of a step */
    balance_cost *of_rank;         /* its cost in the step */
    double *ratios[BALANCE_KINDS]; /* by step */
};

/* The sums of a step, balanced or not. */
struct sums {
    balance_cost call_most, rank_most, all;
    balance_cost wait; /* of the most in each call */
    uint64_t calls, call_rows_least;
};

static balance_cost most(balance_cost a, balance_cost b)
{
    return a > b ? a : b;
}

static struct sums sum_up(struct sampler *sampler, uint64_t batch, bool balanced)
{
    const struct assignment *assignment = &sampler->assignment;
    const struct assignment_rule *rule = &assignment->rule;
    const uint64_t calls = run_calls(batch, rule->world, rule->rows);
    struct sums sums = {.calls = rule->world * calls, .call_rows_least = UINT64_MAX};
    memset(sampler->of_rank, 0, rule->world * sizeof *sampler->of_rank);
    for (uint64_t call = 0; call < calls; call++) {
        balance_cost longest = 0;
        for (uint64_t rank = 0; rank < rule->world; rank++) {
            uint64_t first, count, at, rows;
            balance_cost of_call = 0;
            run_rank_rows(batch, rank, rule->world, &first, &count);
            run_call_rows(count, call, calls, &at, &rows);
            for (uint64_t i = first + at; i < first + at + rows; i++)
                of_call += assignment->cost[balanced ? assignment_row(assignment, i) : i];
            sums.call_rows_least = min64(sums.call_rows_least, rows);
            longest = most(longest, of_call);
            sampler->of_rank[rank] += of_call;
            sums.all += of_call;
        }
        sums.call_most = most(sums.call_most, longest);
        sums.wait += longest;
    }
    for (uint64_t rank = 0; rank < rule->world; rank++)
        sums.rank_most = most(sums.rank_most, sampler->of_rank[rank]);
    return sums;
}

/* Returns whether the balanced rows of the step are its rows, each once. */
static bool has_all(const struct sampler *sampler, uint64_t batch)
{
    memset(sampler->seen, 0, batch);
    for (uint64_t i = 0; i < batch; i++) {
        const uint64_t row = assignment_row(&sampler->assignment, i);
        if (row >= batch || sampler->seen[row]++)
            return false;
    }
    return true;
}

static void step_add(struct sampler *sampler, struct balance_samples *samples, uint64_t batch)
{
    const struct assignment *assignment = &sampler->assignment;
    const uint64_t number = samples->steps++;
    const struct sums before = sum_up(sampler, batch, false), after = sum_up(sampler, batch, true);
    const double call_mean = (double)before.all / (double)before.calls;
    const double rank_mean = (double)before.all / (double)assignment->rule.world;
    const balance_cost bound = balance_bound(assignment->sorted, batch, before.calls, before.call_rows_least);
    if (!has_all(sampler, batch) || after.all != before.all)
        samples->fault_step = min64(samples->fault_step, assignment->step);
    sampler->ratios[CALLS][number] = (double)before.call_most / call_mean;
    sampler->ratios[BALANCED_CALLS][number] = (double)after.call_most / call_mean;
    sampler->ratios[BOUND_CALLS][number] = (double)bound / call_mean;
    sampler->ratios[WAITS][number] = (double)before.wait / rank_mean;
    sampler->ratios[BALANCED_WAITS][number] = (double)after.wait / rank_mean;
    sampler->ratios[RANKS][number] = (double)before.rank_most / rank_mean;
    sampler->ratios[BALANCED_RANKS][number] = (double)after.rank_most / rank_mean;
    samples->rows += batch;
}

int compare_ratios(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static struct balance_ratio ratio_of(double *ratios, uint64_t count)
{
    qsort(ratios, count, sizeof *ratios, compare_ratios);
    return count ? (struct balance_ratio){ratios[(count - 1) / 2], ratios[count - 1]} : (struct balance_ratio){0, 0};
}

static enum tokmap_status sampler_open(struct sampler *sampler, const struct tokmap_run *run,
                                       const struct assignment_rule *rule, uint64_t batch_most, uint64_t count,
                                       struct tokmap_error *error)
{
    const enum tokmap_status status = assignment_init(&sampler->assignment, run, rule, error);
    if (status)
        return status;
    sampler->seen = malloc(batch_most);
    sampler->of_rank = calloc(rule->world, sizeof *sampler->of_rank);
    bool good = sampler->seen && sampler->of_rank;
    for (int i = 0; i < BALANCE_KINDS; i++)
        good = (sampler->ratios[i] = malloc(count * sizeof *sampler->ratios[i])) && good;
    return good ? TOKMAP_OK : error_set_memory(error, "the samples", batch_most + BALANCE_KINDS * 8 * count);
}

enum tokmap_status balance_samples_take(struct balance_samples *samples, const struct tokmap_run *run, uint64_t steps,
                                        uint64_t ranks, uint64_t rows, uint64_t scale, struct tokmap_error *error)
{
    struct sampler sampler = {.seen = NULL};
    struct tokmap_run_info info;
    run_describe(run, &info);
    *samples = (struct balance_samples){.fault_step = TOKMAP_FOREVER};
    const uint64_t count = min64(min64(steps, STEPS_MOST), max64(1, ROWS_MOST / info.batch_most));
    const struct assignment_rule rule = {ranks, rows, scale, 0};
    enum tokmap_status status = sampler_open(&sampler, run, &rule, info.batch_most, count, error);
    uint64_t next = 0;
    for (uint64_t i = 0; i < count && !status; i++) {
        const uint64_t step = run_next_step(run, max64(next, mul_div(i, steps, count)));
        if (step >= steps)
            break;
        next = step + 1;
        status = assignment_step(&sampler.assignment, step, error);
        if (!status)
            step_add(&sampler, samples, tokmap_run_rows(run, step));
        if (!status && os_signal_caught())
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted by a signal");
    }
    for (int i = 0; i < BALANCE_KINDS && !status; i++)
        samples->of[i] = ratio_of(sampler.ratios[i], samples->steps);
    assignment_free(&sampler.assignment);
    free(sampler.seen);
    free(sampler.of_rank);
    for (int i = 0; i < BALANCE_KINDS; i++)
        free(sampler.ratios[i]);
    return status;
}

void balance_report_add(const struct balance_samples *of, double q, struct cli_report *report)
{
    static const char *const kinds[][3] = {
        [CALLS] = {"calls_p50", "calls_max", "  of a call: "},
        [BALANCED_CALLS] = {"balanced_calls_p50", "balanced_calls_max", "; balanced: "},
        [BOUND_CALLS] = {"bound_calls_p50", "bound_calls_max", "; lower bound: "},
        [WAITS] = {"waits_p50", "waits_max", "\n  if ranks wait in every call: "},
        [BALANCED_WAITS] = {"balanced_waits_p50", "balanced_waits_max", "; balanced: "},
        [RANKS] = {"ranks_p50", "ranks_max", "\n  if ranks wait once a step: "},
        [BALANCED_RANKS] = {"balanced_ranks_p50", "balanced_ranks_max", "; balanced: "}};
    if (!of->steps) {
        cli_member(report, "balance", cli_null());
        return;
    }
    if (!report->as_json) {
        printf("balance: %s of the run, q %g; the largest cost divided by the mean of the step\n",
               CLI_COUNTED(of->steps, "step"), q);
        for (int i = 0; i < BALANCE_KINDS; i++)
            printf("%sp50 %.3f, max %.3f", kinds[i][2], of->of[i].p50, of->of[i].most);
        putchar('\n');
    }
    cli_report_object(report, "balance");
    cli_member(report, "q", cli_real(q));
    cli_member(report, "steps", cli_number(of->steps));
    cli_member(report, "rows", cli_number(of->rows));
    for (int i = 0; i < BALANCE_KINDS; i++) {
        cli_member(report, kinds[i][0], cli_real(of->of[i].p50));
        cli_member(report, kinds[i][1], cli_real(of->of[i].most));
    }
    cli_report_close(report);
}
