/* SPDX-License-Identifier: MIT */
/* balance_report.c - see balance_report.h. */
#include "balance_report.h"

#include <stdio.h>

#include "cli/cli.h"

static void ratio_report(struct cli_report *report, const char *p50, const char *most,
                         const struct balance_ratio *ratio)
{
    cli_member(report, p50, cli_real(ratio->p50));
    cli_member(report, most, cli_real(ratio->most));
}

void balance_report_add(const struct balance_samples *of, double q, struct cli_report *report)
{
    if (!of->steps) {
        cli_member(report, "balance", cli_null());
        return;
    }
    if (!report->as_json) {
        printf("balance: %s of the run, q %g; the largest cost divided by the mean of the step\n",
               CLI_COUNTED(of->steps, "step"), q);
        printf("  of a call: p50 %.3f, max %.3f; balanced: p50 %.3f, max %.3f; lower bound: p50 %.3f, max "
               "%.3f\n",
               of->calls.p50, of->calls.most, of->balanced_calls.p50, of->balanced_calls.most, of->bound_calls.p50,
               of->bound_calls.most);
        printf("  if ranks wait in every call: p50 %.3f, max %.3f; balanced: p50 %.3f, max %.3f\n", of->waits.p50,
               of->waits.most, of->balanced_waits.p50, of->balanced_waits.most);
        printf("  if ranks wait once a step: p50 %.3f, max %.3f; balanced: p50 %.3f, max %.3f\n", of->ranks.p50,
               of->ranks.most, of->balanced_ranks.p50, of->balanced_ranks.most);
    }
    cli_report_object(report, "balance");
    cli_member(report, "q", cli_real(q));
    cli_member(report, "steps", cli_number(of->steps));
    cli_member(report, "rows", cli_number(of->rows));
    ratio_report(report, "calls_p50", "calls_max", &of->calls);
    ratio_report(report, "balanced_calls_p50", "balanced_calls_max", &of->balanced_calls);
    ratio_report(report, "bound_calls_p50", "bound_calls_max", &of->bound_calls);
    ratio_report(report, "waits_p50", "waits_max", &of->waits);
    ratio_report(report, "balanced_waits_p50", "balanced_waits_max", &of->balanced_waits);
    ratio_report(report, "ranks_p50", "ranks_max", &of->ranks);
    ratio_report(report, "balanced_ranks_p50", "balanced_ranks_max", &of->balanced_ranks);
    cli_report_close(report);
}
