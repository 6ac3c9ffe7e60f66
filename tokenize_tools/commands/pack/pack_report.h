/* SPDX-License-Identifier: MIT */
/* pack_report.h - the closing report of `tokmap pack`, for people and as JSON. */
#ifndef TOKMAP_COMMANDS_PACK_PACK_REPORT_H
#define TOKMAP_COMMANDS_PACK_PACK_REPORT_H

#include "also_arguments.h"
#include "cli/cli.h"
#include "commands/report/skip_report.h"
#include "pack/pack_output.h"

struct pack_report {
    const struct pack_options *options;
    const char *shown;    /* the name of the output, which may be an address */
    bool sets;            /* the output is one or several shard sets */
    bool tokenizer_given; /* -t was given */
    const struct pack_result *result;
    const struct skip_report *skips;
    const struct also_arguments *also; /* files of other projects; its count may be 0 */
    double seconds;
};

/* Prints on standard output: what was made, what was read, what was left out, and, for people, the next commands. */
void pack_report(const struct pack_report *report, bool json);

#endif
