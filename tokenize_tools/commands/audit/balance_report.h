/* SPDX-License-Identifier: MIT */
/* balance_report.h - what the loaders' option balance changes, as text and JSON. */
#ifndef TOKMAP_COMMANDS_AUDIT_BALANCE_REPORT_H
#define TOKMAP_COMMANDS_AUDIT_BALANCE_REPORT_H

#include "balance_samples.h"
#include "cli/report.h"

/* Adds the member balance, which is null if no step was computed. q: the option. */
void balance_report_add(const struct balance_samples *of, double q, struct cli_report *report);

#endif
