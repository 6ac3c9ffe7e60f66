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

/* Options of a struct with the members storage, cache_given, nodes_given, and prices. */
/* clang-format off */
#define STORAGE_OPTIONS(given) \
    CLI_HEADING("Remote storage"), \
    {0, "cache", CLI_SIZE, &(given).storage.cache, &(given).cache_given, "SIZE", \
     "simulate reads from remote storage through a cache of SIZE bytes on each node, such as 2T", NULL}, \
    {0, "nodes", CLI_NUMBER, &(given).storage.nodes, &(given).nodes_given, "N", \
     "number of nodes that the ranks are on (default: 1)", NULL}, \
    {0, "block", CLI_SIZE, &(given).storage.block, NULL, "SIZE", "bytes of a request (default: 4Mi)", NULL}, \
    {0, "horizon", CLI_NUMBER, &(given).storage.horizon, NULL, "N", \
     "rows of each rank that the cache knows ahead (default: 65536)", NULL}, \
    {0, "step-time", CLI_REAL, &(given).prices.step_time, NULL, "SECONDS", \
     "what a step takes: print the rates that it needs", NULL}, \
    {0, "price-request", CLI_REAL, &(given).prices.request, NULL, "X", \
     "what a request costs, such as 4e-7: print what the run costs", NULL}, \
    {0, "price-gib", CLI_REAL, &(given).prices.gib, NULL, "Y", "what a GiB read costs", NULL}
/* clang-format on */

/* Adds the member storage, which is null if nothing was simulated. */
void storage_report_add(const struct storage_cases *cases, const struct storage_options *options,
                        const struct storage_prices *prices, struct cli_report *report);

#endif
