/* SPDX-License-Identifier: MIT */
/* made_by.h - where a figure comes from: the command, the machine, and the date, for captions and rows of results. */
#ifndef TOKMAP_CLI_MADE_BY_H
#define TOKMAP_CLI_MADE_BY_H

#include <stddef.h>

/* Each writes at most `capacity` bytes with the zero byte, and returns `text`. What does not fit is left out. */

/* Returns the command line as it could be typed again: the name of the program, and the words argv[1 .. argc). Words
 * are quoted as a POSIX shell needs it, and what is not plain in them is in its visible form. */
const char *cli_command_line(const char *program, int argc, char *const *argv, char *text, size_t capacity);

/* Returns the machine: the model of its processor, the number of processors, the memory, and the kernel. Leaves out
 * what the system does not report. */
const char *cli_machine(char *text, size_t capacity);

/* The time now, in UTC: "2026-11-21T17:16:09Z". */
#define CLI_DATE 32
const char *cli_date(char text[CLI_DATE]);

#endif
