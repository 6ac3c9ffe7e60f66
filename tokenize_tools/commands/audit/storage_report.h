/* SPDX-License-Identifier: MIT */
/* storage_report.h - what simulated reads from remote storage come to, as text and JSON. */
#ifndef TOKMAP_COMMANDS_AUDIT_STORAGE_REPORT_H
#define TOKMAP_COMMANDS_AUDIT_STORAGE_REPORT_H

#include "cli/report.h"
#include "storage_cases.h"

/* 0: not given. */
struct storage_prices {
    double step_time; /* seconds */
    double request, gib;
};

/* Adds the member storage, which is null if nothing was simulated. */
void storage_report_add(const struct storage_cases *cases, const struct storage_options *options,
                        const struct storage_prices *prices, struct cli_report *report);

#endif
