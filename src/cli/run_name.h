/* run_name.h - whether the operand of a command names a run file or a dataset. */
#ifndef TOKMAP_CLI_RUN_NAME_H
#define TOKMAP_CLI_RUN_NAME_H

#include <stdbool.h>

/* Returns whether `name` names a run file: a regular text file that is not a manifest and has no index beside it. Every
 * other name means a dataset: one that begins with "synthetic:", and one that does not exist. */
bool cli_names_run(const char *name);

#endif
