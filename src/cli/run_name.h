/* SPDX-License-Identifier: MIT */
/* run_name.h - whether a name that was typed is that of a run file, a manifest, or another dataset. */
#ifndef TOKMAP_CLI_RUN_NAME_H
#define TOKMAP_CLI_RUN_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether `name` names a run file: a regular text file that is not a manifest and has no index beside it. Every
 * other name means a dataset: one that begins with "synthetic:", and one that does not exist. */
bool cli_names_run(const char *name);

/* Reads the beginning of a file. Returns false if it cannot be opened or read; *got is 0 then. */
bool cli_head_read(const char *path, char *head, size_t room, size_t *got);

/* Returns whether the file begins as a manifest does (FORMAT.md, "Names and writing"). Reads a few bytes, and does not
 * wait for the writer of a pipe. A file that cannot be opened or read is not a manifest. */
bool cli_is_manifest(const char *path);

#endif
