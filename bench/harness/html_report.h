/* SPDX-License-Identifier: MIT */
/* html_report.h - all results on one page that needs nothing else: tables, pictures, styles, and a script in one file.
 */
#ifndef TOKMAP_BENCH_HARNESS_HTML_REPORT_H
#define TOKMAP_BENCH_HARNESS_HTML_REPORT_H

#include <stddef.h>

#include "cli/cli.h"

/* Reads the results in `count` files and folders, or in bench/results if the count is 0, and writes the page. A section
 * has the rows of one command, case, and table. The page loads nothing, follows the reader's choice of light or dark,
 * and forbids scripts and requests other than its own, so that a text in a result can do nothing. Returns CLI_DONE,
 * CLI_FAILED, or CLI_MISUSED after a message. */
int html_report(const struct cli_command *command, const char *const *paths, size_t count, const char *output);

#endif
