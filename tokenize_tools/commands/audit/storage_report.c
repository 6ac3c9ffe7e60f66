/* SPDX-License-Identifier: MIT */
/* storage_report.c - see storage_report.h. */
#include "storage_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"

#define GIB 1073741824.0

static const char *bytes_text(double bytes, char text[32])
{
    return cli_bytes(bytes < 18e18 ? (uint64_t)bytes : UINT64_MAX, text);
}

static void name_print(const struct storage_case *of, char name[96])
{
    char order[64] = "as it is";
    if (!of->as_is)
        (void)snprintf(order, sizeof order, "order even %" PRIu64 " %" PRIu64, of->blocks, of->span);
    (void)snprintf(name, 96, "%s%s", order, of->affine ? ", nodes" : "");
}

static double money(const struct storage_case *of, const struct storage_prices *prices)
{
    return of->requests * prices->request + of->bytes / GIB * prices->gib;
}

static void case_print(const struct storage_case *of, const struct storage_options *options,
                       const struct storage_prices *prices)
{
    char name[96], a[32], b[32], c[32];
    name_print(of, name);
    printf("  %s: each byte is read %.2f times; %s in %.4g requests, %s a node; hit rate %.2f%%", name, of->factor,
           bytes_text(of->bytes, a), of->requests, bytes_text(of->bytes / (double)options->nodes, b),
           of->uses > 0 ? 100 * (1 - of->requests / of->uses) : 0);
    if (prices->request > 0 || prices->gib > 0)
        printf("; costs %.2f", money(of, prices));
    if (!of->whole || of->nodes < options->nodes)
        printf(" (from %s of %s)", CLI_COUNTED(of->steps, "step"), CLI_COUNTED(of->nodes, "node"));
    putchar('\n');
    if (prices->step_time > 0)
        printf(
            "    a node needs %s/s and %.3g requests/s, in its busiest 100 steps %s/s and %.3g; all nodes need %s/s\n",
            bytes_text(of->step_bytes / prices->step_time, a), of->step_requests / prices->step_time,
            bytes_text(of->most_bytes / prices->step_time, b), of->most_requests / prices->step_time,
            bytes_text(of->step_bytes * (double)options->nodes / prices->step_time, c));
}

static void case_add(const struct storage_case *of, const struct storage_options *options,
                     const struct storage_prices *prices, struct cli_report *report)
{
    const double seconds = prices->step_time;
    cli_report_item(report);
    cli_member(report, "as_is", cli_bool(of->as_is));
    cli_member(report, "blocks", cli_number(of->blocks));
    cli_member(report, "span", cli_number(of->span));
    cli_member(report, "by_node", cli_bool(of->affine));
    cli_member(report, "steps_simulated", cli_number(of->steps));
    cli_member(report, "nodes_simulated", cli_number(of->nodes));
    cli_member(report, "whole", cli_bool(of->whole));
    cli_member(report, "uses", cli_real(of->uses));
    cli_member(report, "requests", cli_real(of->requests));
    cli_member(report, "bytes", cli_real(of->bytes));
    cli_member(report, "bytes_per_node", cli_real(of->bytes / (double)options->nodes));
    cli_member(report, "hit_rate", cli_real(of->uses > 0 ? 1 - of->requests / of->uses : 0));
    cli_member(report, "factor", cli_real(of->factor));
    cli_member(report, "step_bytes_per_node", cli_real(of->step_bytes));
    cli_member(report, "step_requests_per_node", cli_real(of->step_requests));
    cli_member(report, "busiest_step_bytes_per_node", cli_real(of->most_bytes));
    cli_member(report, "busiest_step_requests_per_node", cli_real(of->most_requests));
    if (seconds > 0) {
        cli_member(report, "node_bytes_per_second", cli_real(of->step_bytes / seconds));
        cli_member(report, "node_requests_per_second", cli_real(of->step_requests / seconds));
        cli_member(report, "busiest_node_bytes_per_second", cli_real(of->most_bytes / seconds));
        cli_member(report, "busiest_node_requests_per_second", cli_real(of->most_requests / seconds));
    }
    cli_member(report, "cost", cli_real(money(of, prices)));
    cli_report_close(report);
}

/* Says which case reads least, and how much less than the run as it is. */
static void saving_print(const struct storage_cases *cases)
{
    const struct storage_case *best = &cases->of[0];
    char name[96], a[32];
    for (unsigned i = 1; i < cases->count; i++)
        if (cases->of[i].bytes < best->bytes)
            best = &cases->of[i];
    name_print(best, name);
    if (best != &cases->of[0] && best->bytes < 0.99 * cases->of[0].bytes)
        printf("  with '%s', the run would read %s (%.1f%%) less\n", name,
               bytes_text(cases->of[0].bytes - best->bytes, a), 100 * (1 - best->bytes / cases->of[0].bytes));
}

void storage_report_add(const struct storage_cases *cases, const struct storage_options *options,
                        const struct storage_prices *prices, struct cli_report *report)
{
    if (!cases->count) {
        cli_member(report, "storage", cli_null());
        return;
    }
    if (!report->as_json) {
        printf("storage: simulated, %s, each with a cache of %s, blocks of %s; the data has %s\n",
               CLI_COUNTED(options->nodes, "node"), CLI_BYTES(options->cache), CLI_BYTES(options->block),
               CLI_BYTES(cases->data_bytes));
        for (unsigned i = 0; i < cases->count; i++)
            case_print(&cases->of[i], options, prices);
        saving_print(cases);
    }
    cli_report_object(report, "storage");
    cli_member(report, "nodes", cli_number(options->nodes));
    cli_member(report, "cache", cli_number(options->cache));
    cli_member(report, "block", cli_number(options->block));
    cli_member(report, "horizon", cli_number(options->horizon));
    cli_member(report, "data_bytes", cli_number(cases->data_bytes));
    cli_report_list(report, "cases", NULL);
    for (unsigned i = 0; i < cases->count; i++)
        case_add(&cases->of[i], options, prices, report);
    cli_report_close(report);
    cli_report_close(report);
}
