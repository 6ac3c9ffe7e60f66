/* SPDX-License-Identifier: MIT */
/* balance_report.c - see balance_report.h. */
#include "balance_report.h"

#include <stdio.h>

#include "cli/cli.h"

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
