/* SPDX-License-Identifier: MIT */
/*
 * cli.h - what the commands tokmap and tokmap-bench share. It is linked into commands only, never into the library.
 *
 * Rules for all of it: results go to standard output, messages to standard error; progress is a line that is redrawn on
 * a terminal, and a line a minute elsewhere; the exit status is 0 if the command is done, 1 if it failed, 2 if it was
 * misused. Unless a comment says otherwise, functions are called by the main thread.
 */
#ifndef TOKMAP_CLI_CLI_H
#define TOKMAP_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "arguments.h"
#include "complete.h"
#include "json_writer.h"
#include "messages.h"
#include "numbers.h"
#include "progress.h"
#include "report.h"
#include "whole_file.h"

#endif
